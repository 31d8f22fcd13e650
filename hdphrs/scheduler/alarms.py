"""Alarms that tasks have set: each has its own, as if it had a process of its own (decision 49).

What lives here: `signal.alarm`, `setitimer` and `getitimer`, many over the one that the process has.  What does not:
what is done when one rings (`handlers.py`).
"""

from __future__ import annotations

import errno
import os
import signal
from collections.abc import Callable
from math import ceil, inf
from operator import index
from time import monotonic
from typing import Any, Final

from hdphrs.api import future as fast
from hdphrs.api.future import Future
from hdphrs.errors import UsageError

SOON_S: Final = 1e-6
"""What the process's own alarm is set to at least: 0 would stop it."""

EARLY_S: Final = 1e-3
"""So much before its time an alarm counts as rung."""

_alarm, _setitimer, _getitimer = signal.alarm, signal.setitimer, signal.getitimer


class Alarms:
    """Those of one scheduler."""

    def __init__(self, has_ended: Callable[[Future[Any]], bool], clock: Callable[[], float] = monotonic) -> None:
        """`has_ended` tells whether a task has."""
        self._has_ended = has_ended
        self._clock = clock
        self._set: dict[Future[Any] | None, tuple[float, float]] = {}
        """By task, when it rings, and how often from then on; 0 for once."""

    def install(self, expect: Callable[[], None]) -> None:
        """From now on, in this process.  `expect` is called before the first alarm is set."""
        self._expect = expect
        signal.alarm = self.alarm
        signal.setitimer = self.setitimer
        signal.getitimer = self.getitimer
        os.register_at_fork(after_in_child=self._fork)

    def alarm(self, seconds: int, /) -> int:
        """`signal.alarm`."""
        return ceil(self.setitimer(signal.ITIMER_REAL, index(seconds))[0])

    def setitimer(self, which: int, seconds: float, interval: float = 0.0) -> tuple[float, float]:
        """`signal.setitimer`.

        Raises:
            UsageError: it is another timer than the real one: those count what the whole process does.
        """
        before = self.getitimer(which)
        if seconds < 0 or interval < 0:
            raise signal.ItimerError(errno.EINVAL, os.strerror(errno.EINVAL))
        task = fast.here.task
        self._set.pop(task, None)
        if seconds > 0:
            self._expect()
            self._set[task] = self._clock() + seconds, interval
        self._arm()
        return before

    def getitimer(self, which: int) -> tuple[float, float]:
        """`signal.getitimer`, and its error."""
        if which != signal.ITIMER_REAL:
            raise UsageError(
                "a task can set signal.ITIMER_REAL only, since the others count the time of all tasks in its process"
            )
        at_s, interval = self._set.get(fast.here.task, (0.0, 0.0))
        return (max(SOON_S, at_s - self._clock()) if at_s else 0.0), interval

    def due(self) -> list[Future[Any] | None]:
        """The tasks whose alarms ring now."""
        now_s = self._clock() + EARLY_S
        rung = []
        for task, (at_s, interval) in list(self._set.items()):
            if task is not None and self._has_ended(task):
                del self._set[task]
            elif at_s <= now_s:
                rung.append(task)
                if interval:
                    self._set[task] = max(at_s + interval, now_s), interval
                else:
                    del self._set[task]
        self._arm()
        return rung

    def set_aside(self, task: Future[Any] | None) -> tuple[float, float] | None:
        """This task has none for a while, which goes on all the same."""
        alarm = self._set.pop(task, None)
        if alarm is not None:
            self._arm()
        return alarm

    def put_back(self, task: Future[Any] | None, alarm: tuple[float, float] | None) -> None:
        """It has this one again."""
        if alarm is not None:
            self._set[task] = alarm
            self._arm()

    def _arm(self) -> None:
        first_s = min((at_s for at_s, _ in self._set.values()), default=inf)
        _setitimer(signal.ITIMER_REAL, 0.0 if first_s == inf else max(SOON_S, first_s - self._clock()))

    def _fork(self) -> None:
        """A child of a task has no tasks, and no alarms."""
        signal.alarm, signal.setitimer, signal.getitimer = _alarm, _setitimer, _getitimer
