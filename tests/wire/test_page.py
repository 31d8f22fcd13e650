"""The page: what a scheduler says that it unpickles, which its node reads when it has died of that."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from hdphrs.protocol.paths import PATH_BYTES_MAX
from hdphrs.wire.page import ARGUMENTS, NOTHING, Label, Line, Page, Reading, label


@pytest.fixture
def lines() -> Iterator[list[Line]]:
    page = Page.create(3)
    yield page.all_lines()
    page.close()


@pytest.mark.parametrize("reading", Reading)
@pytest.mark.parametrize(("path", "name"), [(b"", ""), (b"\x00\x81\x01", "größer"), (bytes(PATH_BYTES_MAX), "f" * 100)])
def test_a_label_is_read_as_it_was_written(lines: list[Line], reading: Reading, path: bytes, name: str) -> None:
    lines[1].unpickle(label(reading, path, name))
    assert lines[1].unpickles == Label(reading, path, name)
    assert lines[0].unpickles == lines[2].unpickles == Label()


def test_a_name_that_is_too_long_is_cut_and_stays_in_its_line(lines: list[Line]) -> None:
    lines[1].unpickle(label(Reading.VALUE, bytes(PATH_BYTES_MAX), "ö" * 256))
    _, path, name = lines[1].unpickles
    assert path == bytes(PATH_BYTES_MAX)
    assert len(name) > 90
    assert set(name) == {"ö"}
    assert lines[2].unpickles == Label()


def test_what_comes_in_the_middle_of_another_load_is_named_and_then_that_one_again(lines: list[Line]) -> None:
    line = lines[0]
    value = label(Reading.VALUE, b"a", "f")
    assert line.unpickle(ARGUMENTS) == NOTHING
    before = line.unpickle(value)
    assert line.unpickles == Label(Reading.VALUE, b"a", "f")
    assert line.unpickle(before) == value
    assert line.unpickles.reading is Reading.ARGUMENTS
    line.unpickle(NOTHING)
    assert line.unpickles == Label()


@pytest.mark.parametrize("written", [b"\xff" * 3, b"\x02\xff\xff"])
def test_what_a_task_has_written_over_it_does_no_harm(lines: list[Line], written: bytes) -> None:
    lines[2].unpickle(written)
    assert lines[2].unpickles.reading in Reading
