"""A backend for joblib, registered when this is imported: `joblib.parallel_config(backend="hdphrs")`.

What lives here: `_HdphrsBackend` for a program, over an executor, and `_InsideBackend` for nested calls of
`joblib.Parallel`, whose batches are children of the task that makes them, so that all levels share the cores.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from queue import Empty
from typing import Any

from joblib import parallel, register_parallel_backend
from joblib._parallel_backends import AutoBatchingMixin, FallbackToBackend, ParallelBackendBase, SequentialBackend

import hdphrs
from hdphrs.executor.batch import run_batch
from hdphrs.executor.executor import Executor, is_inside
from hdphrs.program.attach import attach

Batch = Callable[[], list[Any]]
Job = tuple[hdphrs.Future[list[Any]], Callable[[Any], None]]


class _HdphrsBackend(AutoBatchingMixin, ParallelBackendBase):  # type: ignore[misc]
    """Batches are calls of an executor on the cluster of the program, or on a node that the program gets."""

    supports_retrieve_callback = True

    _executor: Executor | None = None

    def effective_n_jobs(self, n_jobs: int | None) -> int:
        """As many as are asked for, even if there are fewer cores."""
        return _jobs(n_jobs)

    def configure(
        self, n_jobs: int | None = 1, parallel: Any = None, prefer: Any = None, require: Any = None, **options: Any
    ) -> int:
        """Begin a call of `Parallel`, or several in a row; `initializer` and `initargs` are the executor's."""
        if is_inside():
            raise FallbackToBackend(_InsideBackend(nesting_level=self.nesting_level))
        jobs = self.effective_n_jobs(n_jobs)
        if jobs == 1:
            raise FallbackToBackend(SequentialBackend(nesting_level=self.nesting_level))
        self.parallel = parallel
        workers_max = min(jobs, attach().cores)  # so that the executor needs no node of its own
        given = {**self.backend_kwargs, **options}
        self._executor = Executor(workers_max, initializer=given.get("initializer"), initargs=given.get("initargs", ()))
        return jobs

    def submit(self, func: Batch, callback: Callable[[Future[list[Any]]], object]) -> Future[list[Any]]:
        """Have a batch run; `callback` may submit the next one."""
        assert self._executor is not None
        future = self._executor.submit(run_batch, func)
        future.add_done_callback(callback)
        return future

    def retrieve_result_callback(self, future: Future[list[Any]]) -> list[Any]:
        """The results of a batch that is done."""
        return future.result()

    def get_nested_backend(self) -> tuple[_InsideBackend, None]:
        """For `Parallel` in a batch; as many jobs as that asks for itself."""
        return _InsideBackend(nesting_level=(self.nesting_level or 0) + 1), None

    def abort_everything(self, ensure_ready: bool = True) -> None:
        """Cancel what waits and what runs."""
        if self._executor is not None:
            self._executor.abandon()
            self._executor = None
        with self.parallel._lock, suppress(Empty):  # else joblib would run these in the next call
            while True:
                self.parallel._ready_batches.get_nowait()
        if ensure_ready:
            self.configure(n_jobs=self.parallel.n_jobs, parallel=self.parallel, **self.parallel._backend_kwargs)

    def terminate(self) -> None:
        """End it; the node stays for the next."""
        if self._executor is not None:
            self._executor.shutdown(wait=False)
            self._executor = None
        self.reset_batch_stats()


class _InsideBackend(ParallelBackendBase):  # type: ignore[misc]
    """Batches are children of the running task; whoever wants the results of one runs it, if nobody has stolen it."""

    _waiting: dict[hdphrs.Future[list[Any]], None]

    def effective_n_jobs(self, n_jobs: int | None) -> int:
        """As many as are asked for, even if there are fewer cores."""
        return _jobs(n_jobs)

    def configure(self, n_jobs: int | None = 1, parallel: Any = None, **options: Any) -> int:
        """Begin a call of `Parallel`."""
        jobs = self.effective_n_jobs(n_jobs)
        if jobs == 1:
            raise FallbackToBackend(SequentialBackend(nesting_level=self.nesting_level))
        self.parallel = parallel
        self._waiting = {}
        return jobs

    def submit(self, func: Batch, callback: Callable[[Any], None]) -> Job:
        """Spawn a batch."""
        future = hdphrs.spawn(run_batch, func)
        self._waiting[future] = None
        return future, callback

    def retrieve_result(self, out: Job, timeout: float | None = None) -> list[Any]:
        """The results of a batch, which is run here unless it has been stolen; then the next may be submitted."""
        future, callback = out
        with _set_aside():
            results = hdphrs.get(future)
        del self._waiting[future]
        callback(results)
        return results

    def get_nested_backend(self) -> tuple[_InsideBackend, None]:
        """For `Parallel` in a batch of this one."""
        return _InsideBackend(nesting_level=(self.nesting_level or 0) + 1), None

    def abort_everything(self, ensure_ready: bool = True) -> None:
        """Cancel what has not been retrieved."""
        for future in self._waiting:
            future.cancel()
        self._waiting.clear()


def _jobs(n_jobs: int | None) -> int:
    """What joblib's `n_jobs` means: None is 1, -1 all cores, -2 all but one."""
    if n_jobs == 0:
        raise ValueError("n_jobs == 0 in Parallel has no meaning")
    if n_jobs is None or n_jobs == 1:
        return 1
    if n_jobs > 0:
        return n_jobs
    cores = sum(info.slots for info in hdphrs.node_infos())
    return max(cores + 1 + n_jobs, 1)


@contextmanager
def _set_aside() -> Iterator[None]:
    """Keep the running task's configuration of joblib, which joblib takes for the thread's, from the tasks that run in
    this thread meanwhile, and theirs from it."""
    config = vars(parallel._backend).pop("config", None)
    try:
        yield
    finally:
        vars(parallel._backend).pop("config", None)
        if config is not None:
            parallel._backend.config = config


register_parallel_backend("hdphrs", _HdphrsBackend)
