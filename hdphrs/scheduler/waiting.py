"""Who waits for which future of this scheduler.

What lives here: waiting tasks, by their greenlets, calls that are to be made when a future is full, and the bell.  The
main thread waits; other threads may leave calls here, and wake it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from greenlet import getcurrent, greenlet

from hdphrs.api.future import AWAY, DONE, FAILED, Future, Status
from hdphrs.scheduler.timers import Timers

RUNNING = Status("running")
"""Runs in a greenlet of its own; whoever waits for it is woken.  (A task that runs in place has no status.)"""


class Waiting:
    """The waiting room of one scheduler."""

    def __init__(self, resume: Callable[[greenlet], None]) -> None:
        """`resume` has a greenlet go on."""
        self.in_place: list[tuple[Future[Any], greenlet | None]] = []
        """Those that wait for tasks that run in place in some other stack: nothing wakes them but `look`; None for
        calls that are to be made."""
        self._resume = resume
        self._waiters: dict[Future[Any], list[greenlet]] = {}
        self.calls: dict[Future[Any], list[Callable[[], object]]] = {}
        """To be made when these are full, be they in the deque still."""
        self._watching = threading.RLock()
        """Held by who adds calls, or takes some back; who wakes them takes them all at once."""

    def enter(self, future: Future[Any]) -> bool:
        """The running task waits for a taken future; False if that is full."""
        status = getattr(future, "_status", None)
        if status is None:
            self.in_place.append((future, getcurrent()))
        elif status is AWAY or status is RUNNING:
            waiter = getcurrent()
            self._waiters.setdefault(future, []).append(waiter)
            if is_full(future):  # another thread has filled it a moment ago, and may have woken this one or not
                with suppress(ValueError):
                    self._waiters.get(future, []).remove(waiter)
                    return False
        else:
            return False
        return True

    def watch(self, future: Future[Any], call: Callable[[], object]) -> None:
        """See `Port.watch`."""
        if is_full(future):
            call()
            return
        with self._watching:
            self.calls.setdefault(future, []).append(call)
        if is_full(future):  # as in `enter`
            with suppress(ValueError):
                self.calls.get(future, []).remove(call)
                call()
        elif future._function is None and getattr(future, "_status", None) is None:
            self.in_place.append((future, None))

    def unwatch(self, future: Future[Any], call: Callable[[], object]) -> None:
        """See `Port.unwatch`."""
        with self._watching, suppress(ValueError, KeyError):
            calls = self.calls[future]
            calls.remove(call)
            if not calls:
                del self.calls[future]

    def wake(self, future: Future[Any]) -> None:
        """This future is full."""
        for waiter in self._waiters.pop(future, ()):
            self._resume(waiter)
        if self.calls:
            for call in self.calls.pop(future, ()):
                call()

    def wake_all(self) -> None:
        """Some futures were filled by a cancellation, or could not leave."""
        awaited = (*self._waiters, *self.calls)
        for future in [one for one in awaited if getattr(one, "_status", None) in (DONE, FAILED)]:
            self.wake(future)

    def look(self) -> None:
        """See what has become of tasks that ran in place."""
        watched, self.in_place = self.in_place, []
        for future, waiter in watched:
            status = getattr(future, "_status", None)
            if status is None:
                self.in_place.append((future, waiter))
            elif waiter is None:
                if is_full(future):
                    self.wake(future)
            elif status is AWAY or status is RUNNING:
                self._waiters.setdefault(future, []).append(waiter)
            else:
                self._resume(waiter)


def is_full(future: Future[Any]) -> bool:
    """Whether it has a value or an exception."""
    status = getattr(future, "_status", None)
    return status is DONE or status is FAILED


class TaskBell:
    """For one task, in the main thread."""

    def __init__(
        self,
        resume: Callable[[greenlet], None],
        suspend: Callable[[], None],
        check: Callable[[], None],
        timers: Timers,
    ) -> None:
        """`check` raises if the running task is to end."""
        self._resume = resume
        self._suspend = suspend
        self._check = check
        self._timers = timers
        self._rung = False
        self._waiter: greenlet | None = None

    def ring(self) -> None:
        """See `Bell.ring`."""
        self._rung = True
        self._wake()

    def wait(self, for_s: float | None = None) -> bool:
        """See `Bell.wait`."""
        self._check()
        if not self._rung and for_s != 0.0:
            timer = None if for_s is None else self._timers.add(for_s, self._wake)
            self._waiter = getcurrent()
            if (
                not self._rung or not self._take()
            ):  # another thread may have rung a moment ago, and woken this one or not
                self._suspend()
            if timer is not None:
                self._timers.drop(timer)
        rung, self._rung = self._rung, False
        self._check()
        return rung

    def _wake(self) -> None:
        if (waiter := self._take()) is not None:
            self._resume(waiter)

    def _take(self) -> greenlet | None:
        """Whoever waits, who is to be woken by the caller then: no thread comes in between the two (decision 2)."""
        waiter, self._waiter = self._waiter, None
        return waiter
