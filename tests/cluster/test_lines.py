"""Lines from other hosts."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from hdphrs.cluster.lines import LINE_BYTES_MAX, TAIL_LINES_MAX, LineReader, Tail


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    reading, writing = os.pipe()
    yield reading, writing
    os.close(reading)


def test_lines_are_handed_on_whole_however_they_come(pipe: tuple[int, int]) -> None:
    reading, writing = pipe
    lines: list[bytes] = []
    reader = LineReader(reading, lines.append)
    assert reader.read()
    os.write(writing, b"one\ntw")
    assert reader.read()
    assert lines == [b"one\n"]
    os.write(writing, b"o\n\nthree")
    assert reader.read()
    assert lines == [b"one\n", b"two\n", b"\n"]
    os.close(writing)
    assert not reader.read()
    assert lines[3:] == [b"three\n"]
    assert not reader.read()
    assert len(lines) == 4


def test_a_line_without_end_is_handed_on_in_parts(pipe: tuple[int, int]) -> None:
    reading, writing = pipe
    lines: list[bytes] = []
    reader = LineReader(reading, lines.append)
    sent = 0
    while not lines:
        sent += os.write(writing, b"x" * 4096)
        assert reader.read()
    assert sent <= LINE_BYTES_MAX + 4096
    assert lines[0].count(b"x") == sent
    os.close(writing)


def test_the_tail_forgets_the_oldest_lines_and_blank_ones() -> None:
    tail = Tail()
    for number in range(TAIL_LINES_MAX + 5):
        tail.add(f"line {number}\n".encode())
        tail.add(b" \n")
    assert tail.lines == [f"line {number}" for number in range(5, TAIL_LINES_MAX + 5)]
    tail.add(b"\xff\n")
    assert tail.lines[-1] == "\ufffd"
