"""`hdphrs.Executor`.

What lives here: the interface of `concurrent.futures.Executor`.  Where a call goes is decided where it is submitted: in
a program to the desk (`desk.py`), in a task to its children (`inside.py`).
"""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import BrokenExecutor, Future
from concurrent.futures import Executor as StandardExecutor
from itertools import islice
from time import monotonic
from types import TracebackType
from typing import Any, Literal, ParamSpec, TypeVar

from hdphrs.api import future as fast
from hdphrs.api.future import state
from hdphrs.api.port import Unattached
from hdphrs.executor.calls import Initializer, chunked
from hdphrs.executor.desk import Desk
from hdphrs.executor.inside import InsideFuture
from hdphrs.program.embedded import chosen_cores
from hdphrs.program.port import ProgramPort

T = TypeVar("T")
P = ParamSpec("P")

SWEEP_MIN = 64
"""Children of a task that are remembered before it is looked which are done."""


class Executor(StandardExecutor):
    """The cores of the cluster as an executor of `concurrent.futures`.

    Under `hdphrs run`, and in a program that has spawned before, calls run on the cluster that is there.  In any other
    program the executor starts a node on this host, in the background, and ends it when it is shut down.  Calls are
    tasks like any other: they may spawn, they run again if a node or a process dies, and must be idempotent.

    Any thread may submit, and an event loop (`loop.run_in_executor(executor, f)`).  A call that has not been handed to
    the cluster yet can be cancelled.  In a task, an executor makes children of it; see `docs/executor.md`.
    """

    def __init__(
        self,
        max_workers: int | None = None,
        *,
        initializer: Callable[..., object] | None = None,
        initargs: tuple[Any, ...] = (),
    ) -> None:
        """
        Args:
            max_workers: how many calls may run at a time; None for as many as there are cores.  A node of the
                executor's own gets so many schedulers.  Without meaning inside a task.
            initializer: called as `initializer(*initargs)` in each process that runs calls of this executor, before the
                first of them.  If it raises, the executor is broken.  It cannot spawn.

        Raises:
            ValueError: `max_workers` is not positive.
            TypeError: `initializer` cannot be called.
            CannotTravelError: it does not pickle.
        """
        if max_workers is not None and max_workers <= 0:
            raise ValueError("max_workers must be greater than 0")
        if initializer is not None and not callable(initializer):
            raise TypeError("initializer must be a callable")
        self._workers_max = max_workers
        self._initializer = None if initializer is None else Initializer(initializer, initargs)
        self._children: list[InsideFuture[Any]] = []
        self._swept = SWEEP_MIN
        self._closed = False
        self._desk: Desk | None = None
        if not is_inside():
            self._open_desk()

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Have `fn(*args, **kwargs)` called, and return the future of it.

        What does not pickle is the outcome of the call.

        Raises:
            BrokenExecutor: the root node is gone, or the initializer has failed.
            RuntimeError: after `shutdown`.
        """
        if self._closed:
            raise RuntimeError("cannot schedule new futures after shutdown")
        if is_inside():
            return self._submit_inside(fn, args, kwargs)
        return (self._desk or self._open_desk()).submit((fn, args, kwargs))

    def map(
        self,
        fn: Callable[..., T],
        *iterables: Iterable[Any],
        timeout: float | None = None,
        chunksize: int = 1,
        buffersize: int | None = None,
    ) -> Iterator[T]:
        """As the built-in `map`, with the calls made in any order, and the results in that of the items.

        Args:
            timeout: seconds from now within which results are waited for.
            chunksize: calls that make one task.
            buffersize: tasks that are submitted before the first of their results is taken; None for all at once.

        Raises:
            TimeoutError: (from the iterator) it took longer.
        """
        if chunksize < 1:
            raise ValueError("chunksize must be >= 1.")
        if buffersize is not None and not isinstance(buffersize, int):
            raise TypeError("buffersize must be an integer or None")
        if buffersize is not None and buffersize < 1:
            raise ValueError("buffersize must be None or > 0")
        deadline_s = None if timeout is None else monotonic() + timeout
        calls = zip(*iterables)  # noqa: B905 - as in the built-in map, the shortest counts
        if chunksize == 1:
            return self._stream(fn, calls, buffersize, deadline_s)
        chunks = ((chunk,) for chunk in iter(lambda: list(islice(calls, chunksize)), []))
        return _flatten(self._stream(chunked(fn), chunks, buffersize, deadline_s))

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Take no more calls, and free what they needed when they are done.

        Args:
            wait: return only then.
            cancel_futures: cancel what no core has been free for yet.
        """
        self._closed = True
        if self._desk is not None:
            self._desk.close(wait=wait, cancel_pending=cancel_futures)
        for child in self._children:
            if cancel_futures:
                child.cancel()
            if wait:
                child.settle()

    def abandon(self) -> None:
        """Take no more calls, and cancel all that there are.

        What runs ends as with `hdphrs.Future.cancel`: at its next `spawn` or `get`, or with its process after a second.
        Its future raises `concurrent.futures.CancelledError`.  Does not wait.
        """
        self._closed = True
        if self._desk is not None:
            self._desk.close(abandon=True)
        for child in self._children:
            child.abandon()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> Literal[False]:
        """Wait for all calls; a Ctrl-C ends them."""
        if isinstance(error, KeyboardInterrupt):
            self.abandon()
        self.shutdown(wait=True)
        return False

    @property
    def _max_workers(self) -> int:
        """How many calls can run at a time; Dask and joblib look at it, as that of the standard executors."""
        return self._workers_max or chosen_cores() if self._desk is None else self._desk.workers

    @property
    def _broken(self) -> BrokenExecutor | None:
        """Why nothing can be submitted any more; named as in the standard executors."""
        return None if self._desk is None else self._desk.broken

    def _open_desk(self) -> Desk:
        desk = self._desk = Desk(self._workers_max, self._initializer)
        weakref.finalize(self, desk.close).atexit = False
        return desk

    def _submit_inside(self, fn: Callable[..., T], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Future[T]:
        if self._initializer is not None:
            fn, args, kwargs = self._initializer.before((fn, args, kwargs))
        child = InsideFuture(fast.spawn(fn, *args, **kwargs))
        self._children.append(child)
        if len(self._children) > self._swept:
            self._children = [child for child in self._children if not child.is_settled]
            self._swept = SWEEP_MIN + 2 * len(self._children)
        return child

    def _stream(
        self, fn: Callable[..., T], calls: Iterator[tuple[Any, ...]], buffersize: int | None, deadline_s: float | None
    ) -> Iterator[T]:
        """Submit at once what is to be submitted at once; the iterator does the rest."""
        waiting = deque(self.submit(fn, *args) for args in islice(calls, buffersize))
        more = iter(()) if buffersize is None else calls
        return _results(waiting, more, fn, weakref.ref(self), deadline_s)


def is_inside() -> bool:
    """Whether calls are made by a task, or in sequential mode."""
    return fast.here.task is not None or not isinstance(state.port, Unattached | ProgramPort)


def _results(
    waiting: deque[Future[T]],
    more: Iterator[tuple[Any, ...]],
    fn: Callable[..., T],
    owner: weakref.ref[Executor],
    deadline_s: float | None,
) -> Iterator[T]:
    """The results in order; keeps alive neither those that are taken nor the executor."""
    try:
        while waiting:
            executor = owner()
            if executor is not None:
                waiting.extend(executor.submit(fn, *args) for args in islice(more, 1))
            del executor
            yield _result(waiting.popleft(), deadline_s)
    finally:
        for future in waiting:
            future.cancel()


def _result(future: Future[T], deadline_s: float | None) -> T:
    try:
        return future.result(None if deadline_s is None else deadline_s - monotonic())
    finally:
        future.cancel()  # does nothing if it is done
        del future  # from this frame, which an exception keeps


def _flatten(chunks: Iterator[list[T]]) -> Iterator[T]:
    """Item by item, none of which is kept."""
    for chunk in chunks:
        chunk.reverse()
        while chunk:
            yield chunk.pop()
