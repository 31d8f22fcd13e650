"""OpenGRIS Scaler: a scheduler, an object store and workers on this host; a task that makes tasks has a client too."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from scaler import Client, SchedulerClusterCombo

from benchmarks.peers.peer import Job, Peer, Visit

QUEUE_MAX = 10
"""Tasks that a worker holds, those that wait for tasks of their own included; its default is for flat work."""


def tree(client: Client, visit: Visit, problem: Any) -> int:
    """The task for one problem; while it waits, its worker starts another process."""
    value, below = visit(problem)
    children = [client.submit(tree, client, visit, child) for child in below]
    return value + sum(int(child.result()) for child in children)


class ScalerPeer(Peer):
    """A client pickles, as one of the same cluster."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Any:
        return self._client.submit(function, *arguments)

    def result(self, handle: Any) -> Any:
        return handle.result()

    def map(self, function: Callable[[Any], Any], items: Sequence[Any]) -> list[Any]:
        return list(self._client.map(function, items))

    def tree(self, visit: Visit, problem: Any) -> int:
        return int(self._client.submit(tree, self._client, visit, problem).result())


def serve(job: Job) -> None:
    """All on loopback."""
    cluster = SchedulerClusterCombo(
        n_workers=job.workers, per_worker_task_queue_size=QUEUE_MAX, logging_paths=(f"{job.folder}/scaler.log",)
    )
    try:
        with Client(address=cluster.get_address()) as client:
            job.run(ScalerPeer(client))
    finally:
        cluster.shutdown()
