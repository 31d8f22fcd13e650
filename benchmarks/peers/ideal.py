"""The ideal: as many forked processes as workers, each with its perfect share of the work, known before.

How long each task takes is measured first, alone, and does not count; once for the jobs of one round.  What is not a
task (who makes which, and who waits for whom) is done by nobody.  No system can do better but by luck.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from heapq import heapify, heapreplace
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from time import perf_counter
from typing import Any, TypeAlias

from benchmarks.peers.peer import Job, Peer, UnsupportedError, Visit

Costs: TypeAlias = list[float]


def shares_of(costs: Costs, workers: int) -> list[list[int]]:
    """Which tasks each worker does: the dearest first, each to whoever has least."""
    loads = [(0.0, worker) for worker in range(workers)]
    heapify(loads)
    shares: list[list[int]] = [[] for _ in range(workers)]
    for task in sorted(range(len(costs)), key=costs.__getitem__, reverse=True):
        load, worker = loads[0]
        shares[worker].append(task)
        heapreplace(loads, (load + costs[task], worker))
    return shares


class Ideal(Peer):
    """Does what it has rehearsed."""

    def __init__(self, workers: int, memory: str) -> None:
        self._workers = workers
        self._memory = memory
        self._problems: Sequence[Any] = []
        self._shares: list[list[int]] = []

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Any:
        raise UnsupportedError("there is no ideal for a single task")

    def result(self, handle: Any) -> Any:
        raise UnsupportedError("there is no ideal for a single task")

    def rehearse_map(self, function: Callable[[Any], Any], items: Sequence[Any]) -> None:
        self._rehearse(lambda: _costs_of_items(function, items))

    def rehearse_tree(self, visit: Visit, problem: Any) -> None:
        self._rehearse(lambda: _costs_of_tree(visit, problem))

    def _rehearse(self, measure: Callable[[], tuple[Sequence[Any], Costs]]) -> None:
        """Unless an earlier job of the same work has left what it found."""
        kept = Path(self._memory, "rehearsal") if self._memory else None
        if kept and kept.exists():
            self._problems, self._shares = pickle.loads(kept.read_bytes())
            return
        self._problems, costs = measure()
        self._shares = shares_of(costs, self._workers)
        if kept:
            kept.write_bytes(pickle.dumps((self._problems, self._shares)))

    def map(self, function: Callable[[Any], Any], items: Sequence[Any]) -> list[Any]:
        context = get_context("fork")
        ends, processes = [], []
        for share in self._shares:
            ours, theirs = context.Pipe(duplex=False)
            processes.append(context.Process(target=_work, args=(theirs, function, items, share)))
            processes[-1].start()
            theirs.close()
            ends.append(ours)
        values: list[Any] = [None] * len(items)
        for share, end in zip(self._shares, ends, strict=True):
            for task, value in zip(share, end.recv(), strict=True):
                values[task] = value
        for process in processes:
            process.join()
        return values

    def tree(self, visit: Visit, problem: Any) -> int:
        return sum(value for value, _ in self.map(visit, self._problems))


def _costs_of_items(function: Callable[[Any], Any], items: Sequence[Any]) -> tuple[Sequence[Any], Costs]:
    costs = []
    for item in items:
        started_s = perf_counter()
        function(item)
        costs.append(perf_counter() - started_s)
    return (), costs


def _costs_of_tree(visit: Visit, problem: Any) -> tuple[Sequence[Any], Costs]:
    costs: Costs = []
    problems, waiting = [], [problem]
    while waiting:
        problems.append(waiting.pop())
        started_s = perf_counter()
        _, below = visit(problems[-1])
        costs.append(perf_counter() - started_s)
        waiting += below
    return problems, costs


def _work(end: Connection, function: Callable[[Any], Any], items: Sequence[Any], share: list[int]) -> None:
    end.send([function(items[task]) for task in share])


def serve(job: Job) -> None:
    """Processes are forked when the work is there."""
    job.run(Ideal(job.workers, job.memory))
