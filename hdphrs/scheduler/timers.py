"""Who is to be woken at a certain time.

What lives here: a heap of calls, each to be made once when its time has come.  The main thread adds and makes them,
when the running task lets it; the helper thread may ask whether one is late.
"""

from __future__ import annotations

from collections.abc import Callable
from heapq import heapify, heappop, heappush
from itertools import count
from time import monotonic

DROPPED_MAX = 64
"""Timers that are not wanted any more may stay in the heap until they are most of it, and so many."""


class Timers:
    """Those of one scheduler."""

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self.calls: dict[int, Callable[[], object]] = {}
        """By number, those that are set."""
        self._heap: list[tuple[float, int]] = []
        """(when, number)."""
        self._numbers = count()

    def add(self, for_s: float, call: Callable[[], object]) -> int:
        """Have `call()` made after so long; the number by which it can be dropped."""
        number = next(self._numbers)
        self.calls[number] = call
        heappush(self._heap, (self._clock() + for_s, number))
        return number

    def drop(self, number: int) -> None:
        """Have it not made after all."""
        self.calls.pop(number, None)
        if len(self._heap) > 2 * len(self.calls) + DROPPED_MAX:
            self._heap = [timer for timer in self._heap if timer[1] in self.calls]
            heapify(self._heap)

    def fire(self) -> None:
        """Make all calls that are due."""
        now_s = self._clock()
        while self._heap and self._heap[0][0] <= now_s:
            call = self.calls.pop(heappop(self._heap)[1], None)
            if call is not None:
                call()

    def left_s(self) -> float | None:
        """How long until the next is due; None for never.  It may be one that was dropped."""
        if not self.calls:
            return None
        try:
            return max(0.0, self._heap[0][0] - self._clock())
        except IndexError:  # the main thread has just made the last one
            return None
