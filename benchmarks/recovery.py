"""What deaths cost: work done again against work lost, and the time against the ideal; and what reliability costs.

Nodes are killed (kill -9) at drawn moments under the paper's benchmarks in their paced form, whose tasks wait instead
of computing (`programs/paced.py`): so nine nodes on a few cores go on like nine machines, and seconds are seconds.  The
cost of reliability without a failure is measured on these and on the real programs, in processor seconds too.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from benchmarks.figures import Budget, Figure
from benchmarks.launch import EXAMPLES, HDPHRS_RUN, PROGRAMS, BenchmarkError, Run, launch
from hdphrs.sim.paper import tree_of

NODES = 9


class Size(NamedTuple):
    """Of a paced program."""

    tasks: int
    """About."""
    cost_s: float
    """Mean, of those that do not divide."""


USUAL = Size(1000, 0.05)
SHORT = Size(1000, 0.01)
MANY = Size(20_000, 0.005)

NAMES = ("sum_euler", "liouville", "queens", "mandelbrot")
SKELETONS = {"par": "lazy", "push": "eager"}
BUDGETS = {1: Budget(1.1), 8: Budget(1.3)}
"""Work done again / work lost, by deaths."""

START_S = 0.6
"""The program needs so long until it begins."""

RELIABLY: tuple[str, ...] = ()
UNRELIABLY = ("--unreliable",)

RELIABLE = {
    "sum_euler": (["20000"], Budget(1.01)),
    "liouville": (["1000000000"], Budget(1.01)),
    "queens": (["14"], Budget(1.01)),
    "mandelbrot": (["1600"], Budget(1.01)),
    "queens in 65234 tasks": (["14", "--threshold", "5"], Budget(1.02)),
}


def measure(repeat: int) -> Iterator[Figure]:
    """Ratios of work and of time under deaths, then ratios of time without."""
    for name in NAMES:
        for skeleton in SKELETONS:
            for deaths in BUDGETS:
                yield from _measure_deaths(name, skeleton, deaths, repeat, USUAL)
    yield from _measure_deaths("queens", "push", 8, repeat, MANY)


def measure_reliability(repeat: int) -> Iterator[Figure]:
    """Reliable against unreliable runs in which nobody dies, in turn: paced, and then the real programs."""
    for name in NAMES:
        for skeleton in SKELETONS:
            yield from _measure_added(name, skeleton, repeat)
    for name, (arguments, budget) in RELIABLE.items():
        for skeleton in SKELETONS:
            yield from _measure_reliability(name, [*arguments, "--skeleton", skeleton], budget, repeat)


# ---- deaths --------------------------------------------------------------------------------------------------


def _measure_deaths(name: str, skeleton: str, deaths: int, repeat: int, size: Size) -> Iterator[Figure]:
    reports = [_run_with_deaths(name, skeleton, deaths, seed, size) for seed in range(repeat)]
    label = f"{name} {SKELETONS[skeleton]}, {reports[0]['tasks']} tasks, {deaths} of {NODES} nodes die"
    lost_s = tuple(report["lost_s"] for report in reports)
    again_s = tuple(report["recomputed_s"] for report in reports)
    yield Figure(f"{label}: lost", "s", lost_s)
    yield Figure(f"{label}: done again", "s", again_s)
    yield Figure(f"{label}: done again / lost, all runs", "x", (sum(again_s) / sum(lost_s),), BUDGETS[deaths])
    spans = tuple(report["took_s"] / ideal_s(report) for report in reports)
    yield Figure(f"{label}: time / ideal", "x", spans, Budget(1.6) if deaths == 8 else None)


def _run_with_deaths(name: str, skeleton: str, deaths: int, seed: int, size: Size) -> dict[str, Any]:
    """The report of one run, with what the program said."""
    chance = Random(f"{name} {skeleton} {deaths} {seed}")
    span_s = size.cost_s * tree_of(name, size.tasks)[0].count(0) / NODES
    kills = ",".join(f"{START_S + chance.uniform(0.0, 0.9) * span_s:.3f}" for _ in range(deaths))
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "report.json"
        options = ["--seed", str(seed), "--kill-at", kills, "--report", str(file)]
        run = _run_paced(name, skeleton, size, NODES, *options)
        report: dict[str, Any] = json.loads(file.read_text()) | json.loads(run.last_line)
    if sum(bool(node["died"]) for node in report["nodes"]) != deaths:
        raise BenchmarkError(f"{name} {skeleton}, seed {seed}: not all of {deaths} nodes died before the end")
    return report


def _run_paced(name: str, skeleton: str, size: Size, nodes: int, *options: str) -> Run:
    sizes = ["--tasks", str(size.tasks), "--cost", str(size.cost_s)]
    program = [str(PROGRAMS / "paced.py"), name, "--skeleton", skeleton, *sizes]
    return launch([*HDPHRS_RUN, "--local-nodes", str(nodes), "--cores", "1", *options, *program])


def ideal_s(report: dict[str, Any]) -> float:
    """How long the nodes that live at each moment need for all tasks once."""
    begin_s = report["wall_s"] - report["took_s"]
    died_s = sorted(max(0.0, node["died"] - begin_s) for node in report["nodes"] if node["died"])
    left_s, cores = report["work_s"], len(report["nodes"])
    for since_s, until_s in pairwise([0.0, *died_s]):
        if cores * (until_s - since_s) >= left_s:
            return float(since_s + left_s / cores)
        left_s -= cores * (until_s - since_s)
        cores -= 1
    return float(max([0.0, *died_s]) + left_s / cores)


# ---- no deaths -----------------------------------------------------------------------------------------------


def _measure_added(name: str, skeleton: str, repeat: int) -> Iterator[Figure]:
    """What reliability adds to work that always takes equally long: a machine's speed changes by more than that."""
    times, processor = [], []
    for number in range(repeat):
        runs = [_run_paced(name, skeleton, SHORT, 2, *options) for options in (RELIABLY, UNRELIABLY)[:: _turn(number)]]
        reliable, unreliable = runs[:: _turn(number)]
        facts, others = json.loads(reliable.last_line), json.loads(unreliable.last_line)
        times.append(facts["took_s"] / others["took_s"])
        processor.append((facts["work_s"] + reliable.cpu_s) / (others["work_s"] + unreliable.cpu_s))
    label = f"{name} {SKELETONS[skeleton]}, tasks that wait for {SHORT.cost_s * 1000:.0f} ms: reliable / unreliable"
    yield Figure(f"{label}, time", "x", tuple(times), Budget(1.01))
    yield Figure(f"{label}, work and processor time", "x", tuple(processor), Budget(1.01))


def _turn(number: int) -> int:
    """Either goes first in turn: a machine that gets slower favours nobody."""
    return 1 if number % 2 else -1


def _measure_reliability(name: str, arguments: list[str], budget: Budget, repeat: int) -> Iterator[Figure]:
    pairs = []
    for number in range(repeat):
        runs = [run_example(name, arguments, *options) for options in (RELIABLY, UNRELIABLY)[:: _turn(number)]]
        pairs.append(runs[:: _turn(number)])
    label = f"{name} {SKELETONS[arguments[-1]]}: reliable / unreliable"
    yield Figure(f"{label}, wall time", "x", tuple(one.seconds / other.seconds for one, other in pairs), budget)
    yield Figure(f"{label}, processor time", "x", tuple(one.cpu_s / other.cpu_s for one, other in pairs), budget)


def run_example(name: str, arguments: list[str], *options: str) -> Run:
    """One of the paper's programs on two local nodes of one core."""
    example = str(EXAMPLES / f"{name.split()[0]}.py")
    with tempfile.TemporaryDirectory() as folder:  # where Mandelbrot leaves its picture
        return launch([*HDPHRS_RUN, "--local-nodes", "2", "--cores", "1", *options, example, *arguments], Path(folder))
