"""Cost as the work grows: processor time and memory a task, for ever more tasks; and for ever more nodes, supervised or
not, which may do nothing at all.

What lives here: which sizes, and how flat the cost must stay.  Counted is the processor time of all processes of the
run while the work is done, so that others on the machine do not matter much; nodes may be many more than cores.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from itertools import chain
from json import loads
from pathlib import Path

from benchmarks.compare.processes import FOLDER_PREFIX, FOLDER_VARIABLE
from benchmarks.figures import Budget, Figure, table, write_json
from benchmarks.launch import HDPHRS_RUN, PROGRAMS, REPOSITORY, BenchmarkError, launch

PROGRAM = str(PROGRAMS / "growing.py")

KINDS = {
    "flat": ("flat in a task", 7),
    "divided": ("divide and conquer in a task", 7),
    "suspended": ("waiting tasks", 5),
    "program": ("flat from the program", 5),
}
"""Names for people, and the largest size by its number of zeros."""

SMALLEST, BASE, USUAL = 3, 4, 6
"""Numbers of zeros: of the least tasks, of those that others are compared with (of fewer, a task's share of what comes
once, and of looking at the clocks, is not small), and of the most."""

NODES = (1, 2, 4, 8, 16, 32, 64)
NODE_TASKS = 2000
"""Of a millisecond, whatever the number of nodes."""

SHAPES = ("flat", "tree")
TIMED_TASKS = 1000
"""Of a processor time of 2 ms each in either shape, whatever the number of nodes and the speed of the machine."""

IDLE_NODES = (1, 2, 4, 16)
IDLE_S = 8
"""For so long they do nothing before it is counted, and while it is counted."""

FLAT = Budget(1.5)
"""What a task costs in the largest size, by what it costs among 10,000: processor time."""

BOUNDED = Budget(8.0)
"""By how much memory divide and conquer may grow, in MB, whatever the number of tasks."""

CROWD = Budget(1.5)
"""What a task costs among the most nodes, by what it costs among two."""

SUPERVISION = Budget(1.05)
"""What work costs in a reliable run, by what it costs in an unreliable one, among the most nodes."""


def cost(kind: str, count: int, nodes: int = 1, *options: str) -> dict[str, float]:
    """Of one run, from when all nodes are there until the work is done.

    Args:
        options: of `hdphrs run`.

    Raises:
        BenchmarkError: it failed.
    """
    with tempfile.TemporaryDirectory(prefix=FOLDER_PREFIX) as folder:
        way = os.pathsep.join([str(REPOSITORY), os.environ.get("PYTHONPATH", "")])
        command = [*HDPHRS_RUN, "--local-nodes", str(nodes), "--cores", "1", *options]
        command += [PROGRAM, kind, str(count), str(nodes)]
        found: dict[str, float] = loads(launch(command, more={FOLDER_VARIABLE: folder, "PYTHONPATH": way}).last_line)
        return found


def measure_tasks(repeat: int, most: int) -> Iterator[Figure]:
    """More and more tasks, on one core."""
    for kind, (name, limit) in KINDS.items():
        sizes = range(SMALLEST, min(most, limit) + 1)
        each_us: dict[int, tuple[float, ...]] = {}
        for zeros in sizes:
            count = 10**zeros
            runs = [cost(kind, count) for _ in range(repeat)]
            each_us[zeros] = tuple(run["cpu_s"] / count * 1e6 for run in runs)
            grown_mb = tuple(run["grown_mb"] for run in runs)
            yield Figure(f"{name}, 10^{zeros}", "us", each_us[zeros])
            is_last = kind == "divided" and zeros == sizes[-1]
            yield Figure(f"{name}, 10^{zeros}: memory", "MB", grown_mb, BOUNDED if is_last else None)
        base = min(BASE, sizes[-1])
        yield Figure(f"{name}, a task of 10^{sizes[-1]} / of 10^{base}", "x", _ratios(each_us, base), FLAT)


def measure_nodes(repeat: int, most: int) -> Iterator[Figure]:
    """The same work among more and more nodes of one core each."""
    each_us: dict[int, tuple[float, ...]] = {}
    for nodes in (number for number in NODES if number <= most):
        runs = [cost("spins", NODE_TASKS, nodes) for _ in range(repeat)]
        each_us[nodes] = tuple(run["cpu_s"] / NODE_TASKS * 1e6 for run in runs)
        yield Figure(f"{NODE_TASKS} tasks of 1 ms, {nodes} nodes", "us", each_us[nodes])
    least = min(2, max(each_us))
    yield Figure(f"a task among {max(each_us)} nodes / among {least}", "x", _ratios(each_us, least), CROWD)


def measure_supervision(repeat: int, most: int) -> Iterator[Figure]:
    """What supervision adds among more and more nodes: reliable and unreliable runs in turn, either first."""
    numbers = [number for number in NODES if number <= most]
    for nodes in numbers:
        reliable: list[dict[str, float]] = []
        unreliable: list[dict[str, float]] = []
        for turn in range(repeat):
            for is_reliable in (True, False)[:: -1 if turn % 2 else 1]:
                options = () if is_reliable else ("--unreliable",)
                (reliable if is_reliable else unreliable).append(cost("timed", TIMED_TASKS, nodes, *options))
        for shape in SHAPES:
            what = f"{shape}, {TIMED_TASKS} tasks of 2 ms, {nodes} nodes"
            yield Figure(f"{what}: unreliable", "us", tuple(run[shape] / TIMED_TASKS * 1e6 for run in unreliable))
            ratios = tuple(run[shape] / other[shape] for run, other in zip(reliable, unreliable, strict=True))
            yield Figure(f"{what}: reliable / unreliable", "x", ratios, SUPERVISION if nodes == numbers[-1] else None)


def measure_idle(repeat: int, most: int) -> Iterator[Figure]:
    """The share of a core that it takes all processes of nodes of one core each to do nothing."""
    for nodes in (number for number in IDLE_NODES if number <= most):
        shares = tuple(cost("idle", IDLE_S, nodes)["cpu_s"] / IDLE_S * 100 for _ in range(repeat))
        yield Figure(f"{nodes} idle nodes", "% of a core", shares)


def _ratios(each_us: dict[int, tuple[float, ...]], base: int) -> tuple[float, ...]:
    """The largest by the base, run by run."""
    return tuple(large / small for small, large in zip(each_us[base], each_us[max(each_us)], strict=True))


AMONG_NODES = measure_nodes, measure_supervision, measure_idle


def main(arguments: Sequence[str]) -> int:
    """Exit status: 0 flat enough, 1 not, 2 a program failed."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks growth", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--repeat", type=int, default=3, help="runs of each size (default %(default)s)")
    parser.add_argument("--zeros", type=int, default=USUAL, help="of the largest number of tasks (default %(default)s)")
    parser.add_argument("--nodes", type=int, default=NODES[-1], help="at most; 0 for none (default %(default)s)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures with all samples to FILE")
    options = parser.parse_args(arguments)
    if options.repeat < 1 or options.zeros < SMALLEST or options.nodes < 0:
        parser.error(f"--repeat is at least 1, --zeros at least {SMALLEST}, --nodes not negative")
    figures: list[Figure] = []
    try:
        for figure in measure_tasks(options.repeat, options.zeros):
            _tell(figure, figures)
        if options.nodes:
            nodes = options.nodes
            for figure in chain.from_iterable(part(options.repeat, nodes) for part in AMONG_NODES):
                _tell(figure, figures)
    except BenchmarkError as error:
        print(f"benchmarks: {error}", file=sys.stderr)
        return 2
    print(table(figures))
    if options.json:
        write_json(options.json, figures)
    return 1 if any(figure.verdict == "MISSED" for figure in figures) else 0


def _tell(figure: Figure, figures: list[Figure]) -> None:
    print(f"{figure.name}: {figure.value:.3g} {figure.unit}", file=sys.stderr, flush=True)
    figures.append(figure)
