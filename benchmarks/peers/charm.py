"""Charm4py's pool, started by charmrun; one process more than there are workers makes and schedules the tasks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from charm4py import charm, coro

from benchmarks.peers.peer import Job, Peer, Visit


def call(function: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    """The task: Charm4py finds functions by name, so what a partial holds must be an argument."""
    return function(*arguments)


@coro
def tree(visit: Visit, problem: Any) -> int:
    """The task for one problem; only a coroutine may wait."""
    value, below = visit(problem)
    if below:
        value += sum(charm.pool.map(tree, [(visit, child) for child in below]))
    return value


def call_one(function: Callable[[Any], Any], item: Any) -> Any:
    """The task of a map; the pool takes a tuple apart into arguments."""
    return function(item)


class CharmPeer(Peer):
    """Called from the first coroutine."""

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Any:
        return charm.pool.Task(call, (function, arguments), ret=True)

    def result(self, handle: Any) -> Any:
        value = handle.get()
        if isinstance(value, Exception):
            raise value
        return value

    def map(self, function: Callable[[Any], Any], items: Sequence[Any]) -> list[Any]:
        return list(charm.pool.map(call_one, [(function, item) for item in items]))

    def tree(self, visit: Visit, problem: Any) -> int:
        # Not `Task`: of coroutines it does not work (1.1: the worker gets itself as the function).
        return int(charm.pool.map(tree, [(visit, problem)])[0])


def serve(job: Job) -> None:
    """Called on each process; the first one runs the job."""

    def main(arguments: list[str]) -> None:
        job.run(CharmPeer())
        charm.exit()

    charm.start(main)
