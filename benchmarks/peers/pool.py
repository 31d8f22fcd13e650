"""multiprocessing.Pool."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from multiprocessing.pool import AsyncResult, Pool
from typing import Any

from benchmarks.peers.peer import Job, Peer


class PoolPeer(Peer):
    """With chunks of one task."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    def submit(self, function: Callable[..., Any], *arguments: Any) -> AsyncResult[Any]:
        return self._pool.apply_async(function, arguments)

    def result(self, handle: AsyncResult[Any]) -> Any:
        return handle.get()

    def map(self, function: Callable[[Any], Any], items: Sequence[Any]) -> list[Any]:
        return self._pool.map(function, items, chunksize=1)


def serve(job: Job) -> None:
    """Forked workers."""
    with Pool(job.workers) as pool:
        job.run(PoolPeer(pool))
