"""Another user of this host, for tests that run as root."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pytest

NOBODY = 65534

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")


@dataclass(frozen=True, slots=True)
class OtherUser:
    """A process of another user."""

    user: int
    process: int
    _words: int

    def hear(self) -> bytes:
        """What it says next; empty at its end."""
        return os.read(self._words, 1 << 16)


@contextmanager
def as_another_user(act: Callable[[int, int], None]) -> Iterator[OtherUser]:
    """Have another user do something until the block ends.

    Args:
        act: is given a descriptor on which it says something, and one that ends when it should.
    """
    hears, says = os.pipe()
    waits, ends = os.pipe()
    process = os.fork()
    if not process:
        status = 1
        try:
            os.close(hears)
            os.close(ends)
            os.setresuid(NOBODY, NOBODY, NOBODY)
            act(says, waits)
            status = 0
        finally:
            os._exit(status)
    os.close(says)
    os.close(waits)
    try:
        yield OtherUser(NOBODY, process, hears)
    finally:
        os.close(ends)
        os.waitpid(process, 0)
        os.close(hears)
