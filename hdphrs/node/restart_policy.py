"""When a scheduler is started in the place of one that has ended, and when a node gives up.

What lives here: `RestartPolicy`, which counts by place, the number of a scheduler on its node.  It has no clock, and
starts nothing (`starts.py`).

A process that was killed from outside says nothing about its place: the next one is started at once, and only if places
are killed faster than once a second are there pauses.  A process that ends by itself before it is ready is a failure to
start: after `FAILURES_MAX` of them in a row at one place the node gives up.
"""

from __future__ import annotations

import signal
from enum import Enum, auto
from typing import Final

FAILURES_MAX: Final = 5
"""Failures to start at one place, one after the other, after which its node gives up."""

FAILURE_PAUSE_S: Final = 0.1
"""After the first failure; twice as long after each further one."""

QUICK_S: Final = 0.5
"""A process that ends within this time after its start has ended quickly."""

QUICK_MAX: Final = 3
"""Quick ends, one after the other, after which the next process is still started at once."""

QUICK_PAUSE_S: Final = 0.05
"""After one more; twice as long after each further one."""

PAUSE_MAX_S: Final = 2.0

OUTSIDE: Final = {-signal.SIGKILL, -signal.SIGTERM, -signal.SIGHUP, -signal.SIGINT, -signal.SIGQUIT}
"""How a process ends, as `subprocess` has it, that something else may have killed: a person, a supervisor of hosts."""


class End(Enum):
    """Of a scheduler process."""

    READY = auto()
    """It had been ready, whatever it died of."""
    KILLED = auto()
    """By one of the signals `OUTSIDE`, before it was ready."""
    NO_ROOM = auto()
    """It found no room for what it needs, before it was ready."""
    FAILED = auto()
    """In any other way before it was ready."""


class RestartPolicy:
    """Of the places of one node."""

    def __init__(self) -> None:
        self._failures: dict[int, int] = {}
        self._quick: dict[int, int] = {}

    def failures(self, place: int) -> int:
        """How often the place has failed since a scheduler was last ready there."""
        return self._failures.get(place, 0)

    def pause_s(self, place: int, end: End, lived_s: float) -> float | None:
        """How long to wait before the place gets its next process; None to give up.

        Args:
            place: the number of the scheduler.
            end: how its last process has ended.
            lived_s: how long after its start.
        """
        self._quick[place] = self._quick.get(place, 0) + 1 if lived_s < QUICK_S else 0
        if end is End.READY:
            self._failures.pop(place, None)
        if end is End.FAILED:
            failures = self._failures[place] = self.failures(place) + 1
            if failures >= FAILURES_MAX:
                return None
            return _doubled(FAILURE_PAUSE_S, failures - 1)
        more = self._quick[place] - QUICK_MAX
        if end is End.NO_ROOM:
            return _doubled(FAILURE_PAUSE_S, self._quick[place])
        return _doubled(QUICK_PAUSE_S, more - 1) if more > 0 else 0.0


def _doubled(first_s: float, times: int) -> float:
    return min(PAUSE_MAX_S, first_s * 2.0 ** min(times, 16))
