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
from benchmarks.launch import HDPHRS_RUN, PROGRAMS, BenchmarkError, Run, children_cpu_s, launch
from benchmarks.recovery import run_example
from benchmarks.spawn_get import PROGRAM as FIB

OWN = "hdphrs"
"""As a system: what it does in a task."""

RELIABLE = {
    "sum_euler": {FULL: ["14000"], TINY: ["300"]},
    "liouville": {FULL: ["400000000"], TINY: ["10000"]},
    "queens": {FULL: ["13"], TINY: ["6"]},
    "mandelbrot": {FULL: ["1200"], TINY: ["20"]},
}
"""Some seconds each: two runs a round, with the paper's lazy skeletons."""


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


def _first_steal(size: str, number: int) -> Figures:
    run = startup.first_steal()
    return {"seconds": float(run.last_line) - run.started_at}


def _reliable(name: str, size: str, number: int) -> Figures:
    """Either goes first in turn: a machine that gets slower favours nobody."""
    arguments = [*RELIABLE[name][size], "--skeleton", "par"]
    runs: dict[int, Run] = {}
    for options in [(), ("--unreliable",)][:: 1 if number % 2 else -1]:
        runs[len(options)] = run_example(name, arguments, *options)
    reliable, unreliable = runs[0], runs[1]
    return {"wall": reliable.seconds / unreliable.seconds, "cpu": reliable.cpu_s / unreliable.cpu_s}


OWN_WORKLOADS: dict[str, Callable[[str, int], Figures]] = {
    "spawn_get": _spawn_get,
    "node_trip": _node_trip,
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
