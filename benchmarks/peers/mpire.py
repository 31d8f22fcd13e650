"""mpire."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mpire import WorkerPool

from benchmarks.peers.peer import Job, Peer


class MpirePeer(Peer):
    """Its own `map` cannot be used after `apply_async` (2.10.2: tasks get their index as one argument more)."""

    def __init__(self, pool: Any) -> None:
        self._pool = pool

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Any:
        return self._pool.apply_async(function, arguments)

    def result(self, handle: Any) -> Any:
        return handle.get()


def serve(job: Job) -> None:
    """Forked workers."""
    with WorkerPool(n_jobs=job.workers) as pool:
        job.run(MpirePeer(pool))
