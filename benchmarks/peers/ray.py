"""Ray."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ray

from benchmarks.peers.peer import Job, Peer, Visit


@ray.remote
def call(function: Callable[..., Any], *arguments: Any) -> Any:
    """The task."""
    return function(*arguments)


@ray.remote
def tree(visit: Visit, problem: Any) -> int:
    """The task for one problem; while it waits, Ray may start another worker."""
    value, below = visit(problem)
    shares: list[int] = ray.get([tree.remote(visit, child) for child in below])
    return value + sum(shares)


class RayPeer(Peer):
    """One remote function for all."""

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Any:
        return call.remote(function, *arguments)

    def result(self, handle: Any) -> Any:
        return ray.get(handle)

    def tree(self, visit: Visit, problem: Any) -> int:
        return int(ray.get(tree.remote(visit, problem)))


def serve(job: Job) -> None:
    """Without the dashboard."""
    ray.init(num_cpus=job.workers, include_dashboard=False, log_to_driver=False, _temp_dir=job.folder)
    job.run(RayPeer())
    ray.shutdown()
