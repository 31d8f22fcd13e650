"""Waiting for several futures: `wait`, `as_completed`, `get_any`, and `scope`, which leaves no task behind.

What lives here: what these mean, in terms of spawn, get, cancel and the port.  A future that nobody has taken is run in
place by whoever waits for it, as `get` does; the others ring a bell when they are full.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from types import TracebackType
from typing import Any, ParamSpec, TypeVar

from hdphrs.api.future import FAILED, Future, get, spawn, state
from hdphrs.errors import Cancelled, UsageError

T = TypeVar("T")
P = ParamSpec("P")


class _Arrivals:
    """Futures as they become full."""

    def __init__(self) -> None:
        self.full: deque[Future[Any]] = deque()
        self._bell = state.port.bell()
        self._calls: dict[Future[Any], Callable[[], object]] = {}

    def __len__(self) -> int:
        """How many are watched and have not been taken."""
        return len(self._calls)

    def watch(self, future: Future[Any]) -> None:
        """This one too; somebody has taken it."""
        self._calls[future] = call = partial(self._arrive, future)
        state.port.watch(future, call)

    def take(self) -> Future[Any]:
        """The next one; waits for it."""
        while not self.full:
            self._bell.wait()
        future = self.full.popleft()
        del self._calls[future]
        return future

    def close(self) -> None:
        """Nobody waits for the others any more."""
        for future, call in self._calls.items():
            state.port.unwatch(future, call)

    def _arrive(self, future: Future[Any]) -> None:
        self.full.append(future)
        self._bell.ring()


def as_completed(futures: Iterable[Future[T]]) -> Iterator[Future[T]]:
    """The futures, each when it is full; full ones come first, and what has been yielded is not kept.

    Raises:
        Cancelled: the calling task is about to end.
    """
    untaken: list[Future[T]] = []
    taken: deque[Future[T]] = deque()
    for future in dict.fromkeys(futures):
        (taken if future._function is None else untaken).append(future)
    waiting: deque[Future[T]] = deque()
    while taken:
        if taken[0].done():
            yield taken.popleft()
        else:
            waiting.append(taken.popleft())
    if not waiting and not untaken:
        return
    arrivals = _Arrivals()
    try:
        while waiting:
            arrivals.watch(waiting.popleft())
        while untaken:
            if _run(untaken[-1]):
                yield untaken.pop()
            else:
                arrivals.watch(untaken.pop())
            while arrivals.full:
                yield arrivals.take()
        while len(arrivals):
            yield arrivals.take()
    finally:
        arrivals.close()


def wait(futures: Iterable[Future[Any]]) -> None:
    """Until all are full, however they end.

    Raises:
        Cancelled: the calling task is about to end.
    """
    for _ in as_completed(futures):
        pass


def get_any(futures: Iterable[Future[T]]) -> T:
    """The value of the first that is full, or what its task has raised; the others go on, unless they are cancelled.

    Raises:
        UsageError: there are no futures.
        Cancelled: the calling task is about to end.
    """
    for future in as_completed(futures):
        return get(future)
    raise UsageError("get_any: there is no future to wait for")


class scope:  # noqa: N801 - it is used like a function
    """A block that no task outlives which it has spawned (structured fork/join).

        with hdphrs.scope() as tasks:
            left = tasks.spawn(f, x)
            right = tasks.spawn(g, y)
        print(hdphrs.get(left) + hdphrs.get(right))

    Leaving waits for all.  If the block raises, all tasks are cancelled; if a task does, those that were spawned after
    it, so that it is always the same one whose exception comes first, however long they take.  Tasks that were
    cancelled by somebody else count as ended.

    Raises:
        BaseException: what the block or the only failing task has raised.
        ExceptionGroup: several have failed: what the block has raised, and then the tasks in the order of their spawns.
            How many tasks after the first had failed before they were cancelled depends on time; `except*` takes one
            exception and a group alike.
    """

    def __init__(self) -> None:
        self._futures: list[Future[Any]] = []

    def spawn(self, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """`hdphrs.spawn`, of a task of this scope."""
        future = spawn(function, *args, **kwargs)
        self._futures.append(future)
        return future

    def __enter__(self) -> scope:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if error is None:
            try:
                self._wait()
            except BaseException:  # this task is to end
                self._cancel(self._futures)
                raise
        else:
            self._cancel(self._futures)
            if not isinstance(error, Cancelled):
                wait(self._futures)
        failures = [failure for failure in map(_failure, self._futures) if failure is not None]
        if not failures:
            return
        if error is None and len(failures) == 1:
            raise failures[0]
        raise BaseExceptionGroup(
            "several tasks of a scope have failed", [*([] if error is None else [error]), *failures]
        ) from None

    def _wait(self) -> None:
        """Until all have ended; those after the first that fails need not come to their end."""
        place = {future: index for index, future in enumerate(self._futures)}
        wanted = len(self._futures)
        for future in as_completed(self._futures):
            if place[future] < wanted and _failure(future) is not None:
                after, wanted = wanted, place[future]
                self._cancel(self._futures[wanted + 1 : after])

    def _cancel(self, futures: list[Future[Any]]) -> None:
        for future in reversed(futures):
            future.cancel()


def _run(future: Future[Any]) -> bool:
    """Run it in place, if nobody has taken it; whether it was run."""
    if future._function is None:
        return False
    try:
        get(future)
    except BaseException as error:
        if getattr(future, "_status", None) is not FAILED or future._content is not error:
            raise
    return True


def _failure(future: Future[Any]) -> BaseException | None:
    """What its task has raised, if it is full; None for a value, and for a cancelled one."""
    if not future.done():
        return None
    try:
        get(future)
    except Cancelled:
        return None
    except BaseException as error:
        return error
    return None
