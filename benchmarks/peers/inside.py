"""hdphrs, used as its documents say: `hdphrs.run` makes the first task, and that one makes the others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import hdphrs
from benchmarks.peers.peer import Job, Peer, Visit


def tree(visit: Visit, problem: Any) -> int:
    """The task for one problem."""
    value, below = visit(problem)
    children = [hdphrs.spawn(tree, visit, child) for child in below]
    return value + sum(map(hdphrs.get, children))


class HdphrsPeer(Peer):
    """`spawn` and `get`, wherever they are called."""

    def submit(self, function: Callable[..., Any], *arguments: Any) -> hdphrs.Future[Any]:
        return hdphrs.spawn(function, *arguments)

    def result(self, handle: hdphrs.Future[Any]) -> Any:
        return hdphrs.get(handle)

    def map(self, function: Callable[[Any], Any], items: Sequence[Any]) -> list[Any]:
        futures = [hdphrs.spawn(function, item) for item in items]
        return [hdphrs.get(future) for future in futures]

    def tree(self, visit: Visit, problem: Any) -> int:
        return hdphrs.get(hdphrs.spawn(tree, visit, problem))


def main(job: Job) -> None:
    """The first task."""
    job.run(HdphrsPeer())


def serve(job: Job) -> None:
    """One local node; the first task is run again if its process is killed."""
    hdphrs.run(main, job)
