"""What hdphrs takes beside its tasks, on two cores, where tasks compute for a fixed processor time each.

A machine whose speed changes by the minute changes the work of other benchmarks too, by more than what is looked for.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from benchmarks.figures import Budget, Figure
from benchmarks.launch import HDPHRS_RUN, PROGRAMS, Run, launch

CORES = 2


class Shape(NamedTuple):
    """Tasks, and which share of the ideal they must reach."""

    shape: str
    tasks: int
    milliseconds: float
    share: float


SHAPES = (
    Shape("flat", 200, 10.0, 0.95),
    Shape("flat", 1000, 2.0, 0.95),
    Shape("flat", 2000, 1.0, 0.90),
    Shape("tree", 1024, 2.0, 0.95),
    Shape("tree", 4096, 0.5, 0.95),
)


def measure(repeat: int) -> Iterator[Figure]:
    """The ideal is half of the tasks' time; reliable and unreliable runs in turn, either first."""
    for shape in SHAPES:
        shares, times, processor = [], [], []
        for number in range(repeat):
            runs = [run(shape, *options) for options in ((), ("--unreliable",))[:: 1 if number % 2 else -1]]
            reliable, unreliable = runs if number % 2 else runs[::-1]
            shares.append(shape.tasks * shape.milliseconds / 1e3 / CORES / float(reliable.last_line))
            times.append(float(reliable.last_line) / float(unreliable.last_line))
            processor.append(reliable.cpu_s / unreliable.cpu_s)
        what = f"{shape.shape}, {shape.tasks} tasks of {shape.milliseconds:g} ms"
        yield Figure(f"{what}: of the ideal", "x", tuple(shares), Budget(shape.share, at_most=False))
        yield Figure(f"{what}: reliable / unreliable, time", "x", tuple(times), Budget(1.01))
        yield Figure(f"{what}: reliable / unreliable, processor time", "x", tuple(processor), Budget(1.01))


def run(shape: Shape, *options: str) -> Run:
    """One run; its last line is the time in seconds, its processor time that of all processes, their start included."""
    program = (str(PROGRAMS / "timed.py"), shape.shape, str(shape.tasks), str(shape.milliseconds))
    return launch([*HDPHRS_RUN, "--cores", str(CORES), *options, *program])
