"""What only hdphrs does, so that nobody is compared with it: one sample each, shaped as a job of the comparison.

What lives here: how each is run, from outside, as a user would.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from time import perf_counter

from benchmarks import startup
from benchmarks.compare.job import RIGHT, Figures
from benchmarks.compare.launch import Outcome
from benchmarks.compare.processes import busy_s
from benchmarks.compare.workloads import FULL, TINY
from benchmarks.installed import as_installed
from benchmarks.launch import HDPHRS_RUN, PROGRAMS, BenchmarkError, children_cpu_s, launch
from benchmarks.spawn_get import PROGRAM as FIB

OWN = "hdphrs"
"""As a system: what it does in a task."""

RELIABLE: dict[str, dict[str, tuple[int, float]]] = {
    "sum_euler": {FULL: (140, 0.036), TINY: (10, 0.001)},
    "liouville": {FULL: (800, 0.0066), TINY: (10, 0.001)},
    "queens": {FULL: (2000, 0.0025), TINY: (10, 0.001)},
    "mandelbrot": {FULL: (512, 0.02), TINY: (10, 0.001)},
}
"""About how many tasks, and the mean processor time of those that do not divide, in seconds: as the programs have them
when they take two or three seconds, with the paper's lazy skeletons."""

BARE = {"bare_trip": 3, "bare_node_trip": 4}
"""Processes in a row: program, node and scheduler; scheduler, node, other node and its scheduler."""

PAIRS = 3
"""Of runs, in each round."""


def _spawn_get(size: str, number: int) -> Figures:
    fib = {FULL: "24", TINY: "12"}[size]
    run = launch([*HDPHRS_RUN, "--cores", "1", FIB, fib, "--repeat", "3"])
    facts = json.loads(run.last_line)
    spawned_s, plain_s = min(facts["spawned_s"]), min(facts["plain_s"])
    return {"us": (spawned_s - plain_s) / facts["calls"] * 1e6, "ratio": spawned_s / plain_s}


def _node_trip(size: str, number: int) -> Figures:
    count = {FULL: "300", TINY: "5"}[size]
    run = launch([*HDPHRS_RUN, "--local-nodes", "2", "--cores", "1", str(PROGRAMS / "node_trip.py"), count])
    figures: Figures = json.loads(run.last_line)
    return figures


def _bare_trip(processes: int, size: str, number: int) -> Figures:
    """What nobody can do without: the same processes, handing on what would be handed on."""
    count = {FULL: "1000", TINY: "5"}[size]
    run = launch([str(PROGRAMS / "bare_trip.py"), str(processes), count])
    figures: Figures = json.loads(run.last_line)
    return {**figures, "least_us": min(figures.values())}


def _first_steal(size: str, number: int) -> Figures:
    run = startup.first_steal()
    return {"seconds": float(run.last_line) - run.started_at}


def _reliable(name: str, size: str, number: int) -> Figures:
    """The paper's programs with tasks of a fixed processor time: that of a real one differs by a tenth from run to run,
    and what is looked for is a hundredth.  Either goes first in turn: a machine that gets slower favours nobody."""
    tasks, cost_s = RELIABLE[name][size]
    program = [str(PROGRAMS / "paced.py"), name, "--compute", "--tasks", str(tasks), "--cost", str(cost_s)]
    wall_s, cpu_s = [0.0, 0.0], [0.0, 0.0]
    for turn in range(PAIRS):
        for which in (0, 1)[:: 1 if (number + turn) % 2 else -1]:
            options = ((), ("--unreliable",))[which]
            run = launch([*HDPHRS_RUN, "--local-nodes", "2", "--cores", "1", *options, *program])
            wall_s[which] += json.loads(run.last_line)["took_s"]
            cpu_s[which] += run.cpu_s
    return {"wall": wall_s[0] / wall_s[1], "cpu": cpu_s[0] / cpu_s[1]}


OWN_WORKLOADS: dict[str, Callable[[str, int], Figures]] = {
    "spawn_get": _spawn_get,
    "node_trip": _node_trip,
    **{name: partial(_bare_trip, processes) for name, processes in BARE.items()},
    "first_steal": _first_steal,
    **{f"reliable_{name}": partial(_reliable, name) for name in RELIABLE},
}
"""By name, given the size and the number of the round."""


def run_own(workload: str, size: str, number: int) -> Outcome:
    """One sample.

    Args:
        number: of the round.
    """
    all_s, ours_s, began_s = busy_s(), children_cpu_s(), perf_counter()
    try:
        with as_installed():
            figures, outcome = OWN_WORKLOADS[workload](size, number), RIGHT
    except BenchmarkError as error:
        figures, outcome = {}, f"failed: {str(error).splitlines()[0]}"
    all_s, ours_s = busy_s() - all_s, children_cpu_s() - ours_s
    figures = {**figures, "others_cores": max(0.0, all_s - ours_s) / (perf_counter() - began_s)}
    return Outcome(OWN, workload, size, outcome, figures)
