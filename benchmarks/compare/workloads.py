"""What is measured: each workload by name, in several sizes.

A size is for all systems, but where a system is slower by orders of magnitude it gets a smaller one (`systems.py`), and
only what is counted per task is compared.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

from benchmarks.kernels import paper, small, uts
from benchmarks.peers.peer import Visit

FULL, LESS, LEAST, TINY = "full", "less", "least", "tiny"
"""Sizes: for the table; for systems that need a hundred times as long for a task, or ten thousand times; for tests."""


@dataclass(frozen=True, slots=True)
class Flat:
    """A function over items, a task each."""

    function: Callable[[Any], Any]
    items: Sequence[Any]
    answer: int
    """The sum of the values."""


@dataclass(frozen=True, slots=True)
class Nested:
    """A tree of problems, a task each."""

    visit: Visit
    problem: Any
    answer: int
    tasks: int
    """0 where nobody knows before."""


@dataclass(frozen=True, slots=True)
class RoundTrip:
    """One empty task after the other."""

    count: int


@dataclass(frozen=True, slots=True)
class StartUp:
    """From nothing to the first result, and what a system takes while it has nothing to do."""

    idle_s: float


@dataclass(frozen=True, slots=True)
class Waiting:
    """Tasks that wait because all workers are busy."""

    count: int


@dataclass(frozen=True, slots=True)
class Recovery:
    """Tasks that take a while, and a worker that is killed when `kill_after` of them are done (0: nobody is)."""

    count: int
    seconds: float
    kill_after: int


@dataclass(frozen=True, slots=True)
class Poison:
    """Tasks one of which ends its process, whoever runs it."""

    count: int
    seconds: float
    poison: int


Workload: TypeAlias = Flat | Nested | RoundTrip | StartUp | Waiting | Recovery | Poison


def _noops(count: int) -> Flat:
    return Flat(small.noop, range(count), count * (count - 1) // 2)


def _spins(steps: int, count: int) -> Flat:
    return Flat(small.spin, [steps] * count, small.spin(steps) * count)


def _nested_spins(steps: int, leaves: int) -> Nested:
    return Nested(partial(small.visit_spins, steps), leaves, leaves, 2 * leaves - 1)


def _fib(number: int) -> Nested:
    values = [0, 1]
    while len(values) <= number + 1:
        values.append(values[-2] + values[-1])
    return Nested(small.visit_fib, number, values[number], 2 * values[number + 1] - 1)


def _all_wait(parents: int) -> Nested:
    return Nested(small.visit_waiting, (2, parents), parents, 2 * parents + 1)


def _sum_euler(size: int, chunk: int, answer: int) -> Flat:
    return Flat(paper.sum_totients, paper.ranges(size, chunk), answer)


def _liouville(size: int, chunk: int, answer: int) -> Flat:
    return Flat(paper.sum_liouville, paper.ranges(size, chunk), answer)


def _queens(size: int, threshold: int, answer: int) -> Flat:
    return Flat(partial(paper.count_queens, size), paper.boards_with(size, threshold), answer)


def _nested_queens(size: int, threshold: int, answer: int) -> Nested:
    tasks = sum(len(paper.boards_with(size, rows)) for rows in range(threshold + 1))
    return Nested(partial(paper.visit_queens, size, threshold), paper.EMPTY, answer, tasks)


def _mandelbrot(width: int, rows: int, answer: int) -> Flat:
    return Flat(partial(paper.count_iterations, width, 256), paper.bands(width * 3 // 4, rows), answer)


def _nested_mandelbrot(width: int, threshold: int, answer: int) -> Nested:
    return Nested(partial(paper.visit_mandelbrot, width, 256, threshold), (0, width * 3 // 4), answer, 0)


def _uts(tree: uts.Tree, grain: int, answer: int) -> Nested:
    return Nested(partial(uts.visit_nodes, tree, grain), [uts.root_of(tree)], answer, 0)


def _timed(weights: Sequence[float], all_s: float) -> Flat:
    """Tasks of fixed processor times, in these proportions."""
    unit_s = all_s / sum(weights)
    return Flat(small.compute, [weight * unit_s for weight in weights], len(weights))


def _arrays(count: int, array_bytes: int) -> Flat:
    from numpy import arange, full, uint8

    items = [full(array_bytes, number % 256, uint8) for number in arange(count)]
    return Flat(small.add_up, items, sum(number % 256 for number in range(count)) * array_bytes)


MS = small.SPINS_PER_MS

TIMED_S = 2.8
"""Processor time of a program whose tasks have fixed ones: about what the real ones take."""

WORKLOADS: dict[str, dict[str, Callable[[], Workload]]] = {
    "noops": {
        FULL: lambda: _noops(20_000),
        LESS: lambda: _noops(2_000),
        TINY: lambda: _noops(20),
    },
    "round_trip": {FULL: lambda: RoundTrip(300), TINY: lambda: RoundTrip(5)},
    "startup": {FULL: lambda: StartUp(2.0), TINY: lambda: StartUp(0.1)},
    "waiting": {FULL: lambda: Waiting(100_000), LESS: lambda: Waiting(10_000), TINY: lambda: Waiting(100)},
    "fib": {
        FULL: lambda: _fib(25),
        LESS: lambda: _fib(16),
        LEAST: lambda: _fib(8),
        TINY: lambda: _fib(5),
    },
    "spin_100us": {
        FULL: lambda: _spins(MS // 10, 10_000),
        LESS: lambda: _spins(MS // 10, 2_000),
        TINY: lambda: _spins(MS // 10, 10),
    },
    "spin_1ms": {FULL: lambda: _spins(MS, 2_000), TINY: lambda: _spins(MS, 10)},
    "spin_10ms": {FULL: lambda: _spins(10 * MS, 200), TINY: lambda: _spins(10 * MS, 4)},
    "spin_1ms_nested": {
        FULL: lambda: _nested_spins(MS, 2_048),
        LEAST: lambda: _nested_spins(MS, 64),
        TINY: lambda: _nested_spins(MS, 4),
    },
    "all_wait": {
        FULL: lambda: _all_wait(2_000),
        LEAST: lambda: _all_wait(32),
        TINY: lambda: _all_wait(3),
    },
    "sum_euler": {
        FULL: lambda: _sum_euler(6_000, 6, 10_943_164),
        TINY: lambda: _sum_euler(100, 20, 3044),
    },
    "liouville": {
        FULL: lambda: _liouville(50_000_000, 250_000, -7608),
        TINY: lambda: _liouville(1000, 100, -14),
    },
    "queens": {FULL: lambda: _queens(13, 3, 73_712), TINY: lambda: _queens(6, 2, 4)},
    "mandelbrot": {FULL: lambda: _mandelbrot(640, 1, 16_977_376), TINY: lambda: _mandelbrot(16, 3, 9_588)},
    "queens_nested": {
        FULL: lambda: _nested_queens(13, 4, 73_712),
        LEAST: lambda: _nested_queens(13, 2, 73_712),
        TINY: lambda: _nested_queens(6, 2, 4),
    },
    "mandelbrot_nested": {
        FULL: lambda: _nested_mandelbrot(640, 1, 16_977_376),
        LEAST: lambda: _nested_mandelbrot(640, 8, 16_977_376),
        TINY: lambda: _nested_mandelbrot(16, 3, 9_588),
    },
    "uts_t1": {
        FULL: lambda: _uts(uts.T1, 2_000, uts.T1_SIZE),
        LEAST: lambda: _uts(uts.T1, 50_000, uts.T1_SIZE),
        TINY: lambda: _uts(uts.Geometric(4, 3, 19), 50, 254),
    },
    "uts_t3": {
        FULL: lambda: _uts(uts.T3, 2_000, uts.T3_SIZE),
        LEAST: lambda: _uts(uts.T3, 50_000, uts.T3_SIZE),
        TINY: lambda: _uts(uts.Binomial(20, 8, 0.1, 42), 50, 93),
    },
    "sum_euler_timed": {
        FULL: lambda: _timed([sum(numbers) for numbers in paper.ranges(6_000, 6)], TIMED_S),
        TINY: lambda: _timed(range(1, 5), 0.004),
    },
    "liouville_timed": {FULL: lambda: _timed([1] * 200, TIMED_S), TINY: lambda: _timed([1] * 4, 0.004)},
    "mandelbrot_timed": {
        FULL: lambda: _timed(paper.iterations_by_row(), TIMED_S),
        TINY: lambda: _timed(paper.iterations_by_row()[:4], 0.004),
    },
    "arrays_1mb": {FULL: lambda: _arrays(500, 1 << 20), TINY: lambda: _arrays(4, 1 << 10)},
    "recovery": {FULL: lambda: Recovery(100, 0.1, 30), TINY: lambda: Recovery(10, 0.02, 3)},
    "no_recovery": {FULL: lambda: Recovery(100, 0.1, 0), TINY: lambda: Recovery(10, 0.02, 0)},
    "poison": {FULL: lambda: Poison(40, 0.05, 10), TINY: lambda: Poison(6, 0.01, 2)},
}
"""By name and size; made when it is needed."""


def build(name: str, size: str) -> Workload:
    """The workload; in the full size where there is no such one."""
    sizes = WORKLOADS[name]
    return sizes.get(size, sizes[FULL])()
