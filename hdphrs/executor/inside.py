"""Calls that a task submits: its children, which it gets when it wants them.

What lives here: the futures of an executor inside a task, and in sequential mode.  There is no desk and no room there:
a call is a spark from the beginning, and whoever waits for it runs it on the spot unless somebody has taken it.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeVar

from hdphrs.api import future as fast
from hdphrs.errors import Cancelled

T = TypeVar("T")


class InsideFuture(Future[T]):
    """The future of a task's child.

    Nothing is waited for without `hdphrs.get`, so that a waiting task never holds its core: whoever asks for the
    outcome settles it first.  Callbacks are called when somebody has asked.
    """

    def __init__(self, task: fast.Future[T]) -> None:
        super().__init__()
        self._task = task
        self._waiters: list[Any] = _Settling(self.settle)

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
            if not super().done():  # else another task has been faster
                self.set_exception(error)
        else:
            if not super().done():
                self.set_result(value)

    def result(self, timeout: float | None = None) -> T:
        self.settle(timeout)
        return super().result()

    def exception(self, timeout: float | None = None) -> BaseException | None:
        self.settle(timeout)
        return super().exception()

    def done(self) -> bool:
        if not super().done() and self._task.done():
            self.settle()
        return super().done()

    def running(self) -> bool:
        return not self.done() and self._task._function is None

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
            super().cancel()
            self.set_running_or_notify_cancel()


class _Settling(list[Any]):
    """The waiters of a future, which `concurrent.futures.wait` and `as_completed` extend before they block."""

    def __init__(self, settle: Callable[[], None]) -> None:
        super().__init__()
        self._settle = settle

    def append(self, waiter: Any) -> None:
        super().append(waiter)
        self._settle()
