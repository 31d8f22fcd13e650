"""SCOOP, started by `python -m scoop -n WORKERS`: the program itself is the first task, on one of the workers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from scoop import futures

from benchmarks.peers.peer import Job, Peer, Visit


def tree(visit: Visit, problem: Any) -> int:
    """The task for one problem."""
    value, below = visit(problem)
    children = [futures.submit(tree, visit, child) for child in below]
    return value + sum(int(child.result()) for child in children)


class ScoopPeer(Peer):
    """Its futures wait by running other tasks."""

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Any:
        return futures.submit(function, *arguments)

    def result(self, handle: Any) -> Any:
        return handle.result()

    def map(self, function: Callable[[Any], Any], items: Sequence[Any]) -> list[Any]:
        return list(futures.map(function, items))

    def tree(self, visit: Visit, problem: Any) -> int:
        return tree(visit, problem)


def serve(job: Job) -> None:
    """The workers are there already."""
    job.run(ScoopPeer())
