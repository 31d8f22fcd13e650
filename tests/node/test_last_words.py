"""The standard error of schedulers: passed on whole, its end remembered."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from typing import cast

import pytest
import trio

import hdphrs
from hdphrs.console import Outlet
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


class Crowded:
    """Stands in for the outlet of a stream that nobody reads."""

    has_room = False

    def __init__(self) -> None:
        self.offered = self.taken = b""

    def put(self, data: bytes) -> None:
        self.taken += data

    def offer(self, data: bytes) -> None:
        self.offered += data


def test_relay_that_is_cancelled_while_there_is_no_room_loses_nothing() -> None:
    reading, writing = os.pipe()
    words = LastWords(reading)
    outlet = Crowded()
    words._outlet = cast(Outlet, outlet)
    os.write(writing, b"about to die\n")

    async def cancelled_when_it_has_read() -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(words.relay)
            while not words._unwritten:
                await trio.lowlevel.checkpoint()
            os.write(writing, b"dead\n")  # it is not read before there is room: who writes so much waits
            for _ in range(10):
                await trio.lowlevel.checkpoint()
            nursery.cancel_scope.cancel()

    trio.run(cancelled_when_it_has_read)
    assert outlet.offered == b""
    words.close()
    os.close(writing)
    assert outlet.offered == b"about to die\ndead\n"


def test_end_of_a_run_while_there_is_no_room_loses_nothing_and_writes_nothing_twice() -> None:
    reading, writing = os.pipe()
    words = LastWords(reading)
    outlet = Crowded()
    words._outlet = cast(Outlet, outlet)
    os.write(writing, b"first\n")

    async def drained_when_it_has_read() -> None:
        with trio.fail_after(10.0):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(words.relay)
                while not words._unwritten:
                    await trio.lowlevel.checkpoint()
                os.write(writing, b"last\n")
                words.drain()
                os.close(writing)  # the relay ends

    trio.run(drained_when_it_has_read)
    words.close()
    assert outlet.taken == b"first\nlast\n"
    assert outlet.offered == b""


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
