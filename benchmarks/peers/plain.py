"""Plain Python: calls instead of tasks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from benchmarks.peers.peer import Job, Peer, Visit


class Plain(Peer):
    """Runs each task when it is submitted."""

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Any:
        return function(*arguments)

    def result(self, handle: Any) -> Any:
        return handle

    def tree(self, visit: Visit, problem: Any) -> int:
        value, below = visit(problem)
        for child in below:
            value += self.tree(visit, child)
        return value


def serve(job: Job) -> None:
    """Nothing is started."""
    job.run(Plain())
