"""Dask: a local cluster of processes with one thread each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from distributed import Client, LocalCluster, worker_client

from benchmarks.peers.peer import Job, Peer, Visit


def tree(visit: Visit, problem: Any) -> int:
    """The task for one problem; while it waits, its worker starts another thread."""
    value, below = visit(problem)
    if below:
        with worker_client() as client:
            children = [client.submit(tree, visit, child, pure=False) for child in below]
            value += sum(client.gather(children))
    return value


class DaskPeer(Peer):
    """Every call is a new task, even with arguments that were seen before."""

    def __init__(self, client: Any) -> None:
        self._client = client

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Any:
        return self._client.submit(function, *arguments, pure=False)

    def result(self, handle: Any) -> Any:
        return handle.result()

    def map(self, function: Callable[[Any], Any], items: Sequence[Any]) -> list[Any]:
        return list(self._client.gather(self._client.map(function, items, pure=False)))

    def tree(self, visit: Visit, problem: Any) -> int:
        return int(self.result(self.submit(tree, visit, problem)))


def serve(job: Job) -> None:
    """Without the dashboard."""
    with (
        LocalCluster(
            n_workers=job.workers,
            threads_per_worker=1,
            processes=True,
            dashboard_address=None,
            local_directory=job.folder,
        ) as cluster,
        Client(cluster) as client,
    ):
        job.run(DaskPeer(client))
