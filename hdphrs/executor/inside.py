"""Calls that a task submits: its children, which it gets when it wants them.

What lives here: the futures of an executor inside a task, and in sequential mode.  There is no desk and no room there:
a call is a spark from the beginning, and whoever waits for it runs it on the spot unless somebody has taken it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from time import monotonic
from typing import Any, TypeVar

from hdphrs.api import future as fast
from hdphrs.api.future import state
from hdphrs.errors import Cancelled

T = TypeVar("T")


class InsideFuture(Future[T]):
    """The future of a task's child.

    A task that asks for the outcome waits with `hdphrs.get`, so that it never holds its core.  If others wait for it
    (callbacks, event loops, `concurrent.futures.wait`), the port sees to it that it is completed.
    """

    def __init__(self, task: fast.Future[T]) -> None:
        super().__init__()
        self._task = task
        self._is_attended = False
        self._waiters: list[Any] = _Waiters(self)

    def settle(self, timeout: float | None = None) -> None:
        """Wait until it is done, if need be by running it.

        Raises:
            TimeoutError: it takes longer.
        """
        if super().done():
            return
        try:
            value = self._task.get(None if timeout is None else max(0.0, timeout))
        except BaseException as error:
            if isinstance(error, Cancelled) or not fast.is_outcome(error, self._task):
                raise  # the task that asks is to end, it takes longer, or a signal handler has raised
            self._finish(self.set_exception, error)
        else:
            self._finish(self.set_result, value)

    def result(self, timeout: float | None = None) -> T:
        self.settle(timeout)
        return super().result()

    def exception(self, timeout: float | None = None) -> BaseException | None:
        self.settle(timeout)
        return super().exception()

    def done(self) -> bool:
        if not super().done() and self._task.done():
            self._fill()
        return super().done()

    @property
    def is_settled(self) -> bool:
        """As `done`, for one who does not wait for it.

        Nothing is received for that, unlike by `Future.done`: what comes would fill other calls, and whoever is about
        to wait for several has counted them as pending (`wait_with`).
        """
        return super().done() or getattr(self._task, "_status", None) in (fast.DONE, fast.FAILED)

    def running(self) -> bool:
        return not self.done() and self._task._function is None

    def add_done_callback(self, fn: Callable[[Future[T]], object]) -> None:
        super().add_done_callback(fn)
        if not (super().done() or self._is_attended):
            self._is_attended = True
            state.port.attend(self._task, self._fill)

    def wait_with(self, waiter: Any) -> None:
        """`concurrent.futures` is about to wait for it, with others: let that be in our way, which holds no core."""
        if super().done():
            return  # it has been counted
        if self.is_settled and not self._is_attended:
            self._fill()
            return
        if hasattr(waiter, "event") and not isinstance(waiter.event, _Event):
            waiter.event = _Event(waiter.event.is_set())  # another one, just now, may have been enough
        if isinstance(event := getattr(waiter, "event", None), _Event):
            event.tasks.append(self._task)
        state.port.watch(self._task, self._fill_at_once)

    def cancel(self) -> bool:
        if super().done():
            return super().cancelled()
        if self._task._function is None or not self._task.cancel():
            return False
        super().cancel()
        self.set_running_or_notify_cancel()
        return True

    def abandon(self) -> None:
        """Cancel it wherever it is."""
        if not super().done():
            self._task.cancel()
            if super().cancel():
                self.set_running_or_notify_cancel()

    def _fill(self) -> None:
        """With what has become of its task, and make the callbacks."""
        try:
            value = fast.get(self._task)
        except BaseException as error:
            if not fast.is_outcome(error, self._task):
                raise
            self._finish(self.set_exception, error)
        else:
            self._finish(self.set_result, value)

    def _fill_at_once(self) -> None:
        """The same where nobody may be blocked: callbacks are made by others."""
        if not self._is_attended:
            self._fill()

    def _finish(self, fill: Callable[[Any], None], outcome: Any) -> None:
        with suppress(InvalidStateError):  # somebody else has been faster, or it is cancelled
            try:
                fill(outcome)
            except InvalidStateError:
                raise
            except BaseException as error:  # of a callback; the standard library has dealt with all others
                sys.excepthook(type(error), error, error.__traceback__)


class _Waiters(list[Any]):
    """The waiters of a future, which `concurrent.futures.wait` and `as_completed` extend before they block."""

    def __init__(self, future: InsideFuture[Any]) -> None:
        super().__init__()
        self._future = future

    def append(self, waiter: Any) -> None:
        super().append(waiter)
        self._future.wait_with(waiter)


def _index(task: fast.Future[Any]) -> int:
    return task._index


class _Event:
    """As `threading.Event`, for a task that leaves its core to others while it waits."""

    def __init__(self, is_set: bool) -> None:
        self.tasks: list[fast.Future[Any]] = []
        """Those that are waited for."""
        self._is_set = is_set
        self._bell = state.port.bell()

    def is_set(self) -> bool:
        return self._is_set

    def set(self) -> None:
        self._is_set = True
        self._bell.ring()

    def clear(self) -> None:
        self._is_set = False

    def wait(self, timeout: float | None = None) -> bool:
        until_s = None if timeout is None else monotonic() + timeout
        tasks, self.tasks = self.tasks, []
        untaken = [task for task in tasks if task._function is not None]
        fast.sparks.extend(sorted(untaken, key=_index, reverse=True))  # so that the loop runs them in order
        while not self._is_set:
            if not self._bell.wait(None if until_s is None else max(0.0, until_s - monotonic())):
                break
        return self._is_set
