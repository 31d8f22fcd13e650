"""Pipes that nobody reads: what a process meets whose user has paused his pager, or whose log is read by nothing."""

from __future__ import annotations

import os
import select
from collections.abc import Iterator
from contextlib import contextmanager, suppress

FILLER = b"\0"


@contextmanager
def full_pipe() -> Iterator[tuple[int, int]]:
    """The reading and the writing end of a pipe without room; at the end whoever still waits for room has it."""
    reading, writing = os.pipe()
    fill(writing)
    try:
        yield reading, writing
    finally:
        os.set_blocking(reading, False)
        with suppress(BlockingIOError):
            while os.read(reading, 1 << 20):
                pass
        os.close(writing)
        os.close(reading)


def fill(writing: int) -> None:
    """Write until nothing more goes in."""
    os.set_blocking(writing, False)
    with suppress(BlockingIOError):
        while True:
            os.write(writing, FILLER * select.PIPE_BUF)
    os.set_blocking(writing, True)


def rest(reading: int, size: int) -> bytes:
    """The next bytes behind what has filled the pipe."""
    read = b""
    while len(read) < size:
        read += os.read(reading, 1 << 20).lstrip(FILLER)
    return read
