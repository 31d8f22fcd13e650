"""The standard error of schedulers: passed on whole, its end remembered."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path

import pytest
import trio

import hdphrs
from hdphrs.node.last_words import READ_BYTES, REMEMBERED_BYTES_MAX, REMEMBERED_LINES_MAX, LastWords

PACKAGE = Path(hdphrs.__file__).parent


def test_what_is_written_is_passed_on_and_its_end_remembered(capfd: pytest.CaptureFixture[str]) -> None:
    reading, writing = os.pipe()
    words = LastWords(reading)
    lines = "".join(f"line {number}\n" for number in range(REMEMBERED_BYTES_MAX))

    async def main() -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(words.relay)
            await trio.to_thread.run_sync(partial(write_all, writing, lines.encode()))

    trio.run(main)
    words.close()
    assert len(lines) < READ_BYTES
    assert capfd.readouterr().err == lines
    assert words.text().splitlines() == lines.splitlines()[-REMEMBERED_LINES_MAX:]


def test_what_is_left_at_the_end_is_passed_on_too(capfd: pytest.CaptureFixture[str]) -> None:
    reading, writing = os.pipe()
    words = LastWords(reading)
    os.write(writing, b"Fatal Python error: \xff\n")  # the writer stays open, as a grandchild may keep it
    words.close()
    os.close(writing)
    assert words.text() == "Fatal Python error: \N{REPLACEMENT CHARACTER}"
    assert capfd.readouterr().err.startswith("Fatal Python error")


def test_relay_that_is_cancelled_between_reading_and_writing_loses_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    reading, writing = os.pipe()
    words = LastWords(reading)
    os.write(writing, b"about to die\n")

    async def cancelled_when_it_has_read() -> None:
        with trio.CancelScope() as scope:
            read = words._read

            def read_and_cancel() -> bytes | None:
                data = read()
                scope.cancel()
                return data

            words._read = read_and_cancel  # type: ignore[method-assign]
            await words.relay()
            raise AssertionError("it was cancelled")
        words._read = read  # type: ignore[method-assign]

    trio.run(cancelled_when_it_has_read)
    assert capfd.readouterr().err == ""
    words.close()
    os.close(writing)
    assert capfd.readouterr().err == "about to die\n"


def test_frames_of_our_own_are_not_remembered() -> None:
    reading, writing = os.pipe()
    words = LastWords(reading)
    theirs = '  File "/somewhere/prog.py", line 4 in bad'
    ours = f'  File "{PACKAGE}/scheduler/hub.py", line 280 in _call'
    os.write(writing, f"Stack (most recent call first):\n{theirs}\n{ours}\n".encode())
    words.close()
    os.close(writing)
    assert words.text() == f"Stack (most recent call first):\n{theirs}"


def write_all(descriptor: int, data: bytes) -> None:
    with open(descriptor, "wb") as stream:
        stream.write(data)
