"""Does one kind of work in a run of its own; prints what it has cost all processes of the run, as JSON.

HDPHRS_BENCHMARK_FOLDER=... hdphrs run --cores 1 benchmarks/programs/growing.py flat 1000 1

The last number is that of the nodes.  The folder marks the processes of the run: see `benchmarks/compare/processes.py`.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable

from benchmarks.compare.processes import FOLDER_VARIABLE, cpu_ns, members, peak_bytes
from benchmarks.programs import timed
from hdphrs import all_nodes, get, my_node, run, spawn, spawn_at

SPIN_STEPS = 20_000
"""About a millisecond."""

TIMED_MS = 2.0
"""Processor time of each task, where it must not depend on the speed of the machine."""

WORK_BEFORE = 100
"""Tasks."""

GATHER_S = 60.0
POLL_S = 0.02


def noop(number: int) -> int:
    return number


def spin(number: int) -> int:
    state = 1
    for _ in range(SPIN_STEPS):
        state = state * 5 & 0xFFFF
    return number


def flat(count: int) -> int:
    """All spawned, then all got."""
    return sum(map(get, [spawn(noop, number) for number in range(count)]))


def divided(count: int) -> int:
    """A binary tree with so many leaves; each call a task."""
    if count == 1:
        return 1
    left = spawn(divided, count // 2)
    return divided(count - count // 2) + get(left)


def waiter(number: int) -> int:
    """A task that waits for one that is started when all others wait."""
    return get(spawn_at(my_node(), noop, number))


def suspended(count: int) -> int:
    """So many tasks that wait at once."""
    return sum(map(get, [spawn_at(my_node(), waiter, number) for number in range(count)]))


def spins(count: int) -> int:
    """Work that does not change, for whoever takes it; the last node has joined before."""
    return sum(map(get, [spawn(spin, number) for number in range(count)]))


IN_A_TASK: dict[str, Callable[[int], int]] = {
    "flat": flat,
    "divided": divided,
    "suspended": suspended,
    "spins": spins,
}


def measured(work: Callable[[int], object], count: int) -> dict[str, float]:
    """What the work costs everybody.

    Peaks are those of each process, added up.
    """
    folder = os.environ[FOLDER_VARIABLE]
    work(min(count, 100))
    before_ns, before_bytes = cpu_ns(folder), peak_bytes(folder)
    began_s = time.perf_counter()
    work(count)
    return {
        "seconds": time.perf_counter() - began_s,
        "cpu_s": (cpu_ns(folder) - before_ns) / 1e9,
        "grown_mb": (peak_bytes(folder) - before_bytes) / 1e6,
        "processes": len(members(folder)),
    }


def measured_in_a_task(name: str, count: int, nodes: int) -> dict[str, float]:
    """The first task, once all nodes are there."""
    gathered(nodes)
    return measured(IN_A_TASK[name], count)


def both_shapes(count: int, nodes: int) -> dict[str, float]:
    """The processor time of tasks that all take the same, first flat and then as the leaves of a tree."""
    gathered(nodes)
    flat_s = measured(lambda tasks: timed.flat(tasks, TIMED_MS), count)["cpu_s"]
    return {"flat": flat_s, "tree": measured(lambda tasks: timed.tree(tasks, TIMED_MS), count)["cpu_s"]}


def gathered(nodes: int) -> int:
    """How many nodes there are, once all are there, or it has taken too long."""
    give_up_s = time.monotonic() + GATHER_S
    while len(all_nodes()) < nodes and time.monotonic() < give_up_s:
        time.sleep(POLL_S)
    return len(all_nodes())


def idle(seconds: int, nodes: int) -> dict[str, float]:
    """What it costs that nobody has anything to do, as long after there was something."""
    run(gathered, nodes)
    run(spins, WORK_BEFORE)
    return measured(time.sleep, seconds)


if __name__ == "__main__":
    what, how_many, nodes = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    if what == "program":
        print(json.dumps(measured(flat, how_many)))
    elif what == "idle":
        print(json.dumps(idle(how_many, nodes)))
    elif what == "timed":
        print(json.dumps(run(both_shapes, how_many, nodes)))
    else:
        print(json.dumps(run(measured_in_a_task, what, how_many, nodes)))
