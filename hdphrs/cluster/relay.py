"""The way of what nodes on other hosts say to our own standard streams.

What lives here: `Relay`, which lets a node's stream wait while nobody reads ours.  So nothing of it is lost, and the
tasks that print wait as they would on this host; what the nodes themselves say they drop when it waits too long
(`hdphrs/console.py`).
"""

from __future__ import annotations

import os
import selectors
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import IO

from hdphrs.console import Outlet


class Relay:
    """That of one run; its callbacks are the `data` of keys in the launcher's selector."""

    def __init__(self, selector: selectors.BaseSelector) -> None:
        self._selector = selector
        self._woken, self._bell = os.pipe()
        for end in (self._woken, self._bell):
            os.set_blocking(end, False)
        selector.register(self._woken, selectors.EVENT_READ, self._resume)
        self._outlets: dict[int, Outlet] = {}
        self._held: dict[IO[bytes], Callable[[], None]] = {}
        self._lock = threading.Lock()
        self._is_closed = False

    def put(self, to: int, line: bytes) -> None:
        """Write a line to our standard output (1) or error (2)."""
        self._outlet(to).put(line)

    def has_room(self, to: int, stream: IO[bytes], read: Callable[[], None]) -> bool:
        """Whether more can be taken from `stream`, which is in the selector; if not, it is taken out of that until
        there is room, and `read` is its callback again."""
        if self._outlet(to).has_room:
            return True
        with suppress(KeyError, ValueError):  # taken out, or closed, already
            self._selector.unregister(stream)
            self._held[stream] = read
        return False

    @property
    def is_empty(self) -> bool:
        """Whether all that has come is written."""
        return not self._held and all(each.is_empty for each in self._outlets.values())

    @property
    def written(self) -> int:
        """Counts up as long as somebody reads."""
        return sum(each.written for each in self._outlets.values())

    def close(self) -> None:
        """Nothing more is to come; what nobody has read is dropped."""
        self._selector.unregister(self._woken)
        with self._lock:
            self._is_closed = True
            os.close(self._woken)
            os.close(self._bell)

    def _outlet(self, to: int) -> Outlet:
        if to not in self._outlets:
            self._outlets[to] = Outlet(to, self._ring)
        return self._outlets[to]

    def _ring(self) -> None:
        """In the thread of an outlet."""
        with self._lock, suppress(BlockingIOError):
            if not self._is_closed:
                os.write(self._bell, b".")

    def _resume(self) -> None:
        with suppress(BlockingIOError):
            os.read(self._woken, 4096)
        held, self._held = self._held, {}
        for stream, read in held.items():
            if not stream.closed:
                self._selector.register(stream, selectors.EVENT_READ, read)
