"""The paper's four benchmarks as programs of the simulator, with the costs that the real ones have.

What lives here: their trees of tasks, how the work is spread over these, and `PROFILE`, the quiet cluster in which
their figures are taken.  Costs come from counts: of iterations, of boards, of numbers.  What a second is worth is not
decided here: the mean cost of a task that does the work is `cost_us`.

Lazy runs spawn, eager ones (`eager=1`) place every task, a level of the tree in turn on all nodes, as the skeletons do.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import accumulate
from math import isqrt, log
from typing import TYPE_CHECKING

from hdphrs.config import CoreConfig

if TYPE_CHECKING:
    from hdphrs.sim.program import Program

SPAWN_NS = 10_000
"""Computing time of a task that divides, for each of its children."""

QUEENS_SIZE = 12
"""Of the board; the number of tasks decides down to which row boards are tasks."""

EULER_CHUNK = 100
"""Numbers of a task of Sum Euler."""

MANDELBROT_COLUMNS = 32
MANDELBROT_DEPTH = 256

BENCHMARKS = ("sum_euler", "liouville", "queens", "mandelbrot")

_CORE = CoreConfig()

QUIET = dict.fromkeys(
    (
        *("slow_pct", "skew_ppm", "placed_pct", "unsupervised_pct", "raising_pct", "forgotten_pct", "poison", "lifo"),
        "deadly",
        *("kills", "power_losses", "ambushes", "departures", "crashes", "blameless", "cuts", "one_way_cuts"),
        "cancels",
        *(
            "large_pct",
            "isolations",
            "stalls",
            "root_stalls",
            "crowds",
            "long_pct",
            "returns",
            "joins",
            "repeats_pct",
            "eager",
            "speculate",
        ),
    ),
    0,
)

PROFILE: dict[str, int] = QUIET | {
    "nodes": 9,
    "cores": 1,
    "latency_us": 100,
    "jitter_pct": 10,
    "byte_ns": 1,
    "local_us": 20,
    "detect_ms": 5000,
    "notice_us": 2000,
    "tasks": 5000,
    "depth_max": 64,
    "rounds": 1,
    "cost_us": 50_000,
    "payload_bytes": 100,
    "sampled_pct": 100,
    "attempts_max": _CORE.attempts_max,
    "fish_max": _CORE.fish_max,
    "want_max": _CORE.want_max,
    "start_max": _CORE.start_max,
    "room": 16,
    "guards_max": _CORE.guards_max,
    "parked_max": _CORE.parked_max,
    "give_bytes_max": _CORE.give_bytes_max,
    "remembered_crashes_max": _CORE.remembered_crashes_max,
    "piece_cost_us": round(_CORE.piece_cost_s * 1e6),
    "pieces_bytes_max": _CORE.pieces_bytes_max,
    "code_bytes_max": _CORE.code_bytes_max,
    "fair_us": 0,
    "park_ms": round(_CORE.park_s * 1000),
    "fish_deadline_ms": round(_CORE.fish_deadline_s * 1000),
    "backoff_max_ms": round(_CORE.backoff_max_s * 1000),
    "abrupt": 1,
}
"""What is not left to chance in a run of a benchmark; `--set` overrides it."""

Board = tuple[int, int, int]
"""What the queens attack in the next row, as bits: by columns, by diagonals down left, down right."""


Tree = tuple[tuple[int, ...], tuple[int, ...]]
"""By task, level by level: how many children it has, and how much work it does, in some unit; 0 if it divides."""


def tree_of(name: str, tasks: int) -> Tree:
    """A benchmark in about so many tasks."""
    match name:
        case "sum_euler":
            return _flat([_totients(number) for number in range(tasks)])
        case "liouville":
            return _flat([60 + isqrt(number) for number in range(tasks)])
        case "queens":
            return _queens(tasks)
        case _:
            return _mandelbrot(max(2, (tasks + 1) // 2))


def plant(program: Program, name: str, tasks: int) -> tuple[int, ...]:
    """Add the tasks of a benchmark; how much work each does."""
    fans, work = tree_of(name, tasks)
    program.add(None)
    for parent, fan in enumerate(fans):
        for _ in range(fan):
            program.add(parent)
    return work


def costs_ns(program: Program, work: Sequence[int], mean_us: int) -> list[int]:
    """What each task computes, such that `mean_us` is the mean of those that do not divide."""
    leaves = sum(not children for children in program.children)
    unit_ns = mean_us * 1000 * leaves / sum(work)
    return [
        round(units * unit_ns) + SPAWN_NS * len(children)
        for units, children in zip(work, program.children, strict=True)
    ]


def places(program: Program) -> list[int]:
    """Where eager tasks go: the children of the node numbered i, each level in turn (`skeletons/strategy.py`)."""
    place = [-1] * len(program.children)
    for parent, children in enumerate(program.children):
        first = len(children) * max(0, place[parent])
        for index, child in enumerate(children):
            place[child] = first + index
    return place


def heaviest_ns(program: Program, nodes: int, cores: int) -> int:
    """How long a run takes at least: by all the work, and by the work of the node that has most placed on it."""
    loads = [0] * nodes
    for place, cost_ns in zip(program.place, program.before_ns, strict=True):
        if place >= 0:
            loads[place % nodes] += cost_ns
    return max(max(loads), program.work_ns // nodes) // cores


# ---- flat: one task spawns all others ------------------------------------------------------------------------


def _flat(work: list[int]) -> Tree:
    return (len(work), *[0] * len(work)), (0, *work)


def _totients(number: int) -> int:
    """Of the chunk of this number: so many greatest common divisors, each a little dearer than the one before."""
    middle = EULER_CHUNK * number + EULER_CHUNK // 2
    return round(middle * (10 + 4 * log(middle)))


# ---- trees: each task spawns its children --------------------------------------------------------------------


@lru_cache(maxsize=4)
def _queens(tasks: int) -> Tree:
    """Boards down to the row at which there are about so many."""
    levels: list[list[Board]] = [[(0, 0, 0)]]
    count = 1
    while count < tasks and len(levels) <= QUEENS_SIZE:
        level = [board for parent in levels[-1] for board in _next_rows(parent)]
        if (count + len(level)) * count > tasks * tasks:  # the one row before is nearer
            break
        levels.append(level)
        count += len(level)
    fans: list[int] = []
    for upper in levels[:-1]:
        fans += [sum(1 for _ in _next_rows(board)) for board in upper]
    work = [0] * len(fans) + [_boards_below(board) for board in levels[-1]]
    return (*fans, *[0] * len(levels[-1])), tuple(work)


def _next_rows(board: Board) -> Iterator[Board]:
    columns, left, right = board
    free = ~(columns | left | right) & ((1 << QUEENS_SIZE) - 1)
    while free:
        queen = free & -free
        free ^= queen
        yield columns | queen, (left | queen) << 1, (right | queen) >> 1


def _boards_below(board: Board) -> int:
    return 1 + sum(map(_boards_below, _next_rows(board)))


@lru_cache(maxsize=4)
def _mandelbrot(bands: int) -> Tree:
    """Bands of rows, halved until they are single."""
    iterations = [0, *accumulate(_iterations(band, bands) for band in range(bands))]
    fans: list[int] = []
    work: list[int] = []
    level = [(0, bands)]
    while level:
        below: list[tuple[int, int]] = []
        for first, end in level:
            middle = (first + end) // 2
            is_single = end - first == 1
            fans.append(0 if is_single else 2)
            work.append(iterations[end] - iterations[first] if is_single else 0)
            if not is_single:
                below += [(first, middle), (middle, end)]
        level = below
    return tuple(fans), tuple(work)


def _iterations(band: int, bands: int) -> int:
    """Of a sample of the pixels of one band of the whole picture."""
    height = 2.4
    imaginary = height * ((band + 0.5) / bands - 0.5)
    total = 0
    for column in range(MANDELBROT_COLUMNS):
        c = complex(-0.65 + 3.2 * ((column + 0.5) / MANDELBROT_COLUMNS - 0.5), imaginary)
        z = 0j
        for _ in range(MANDELBROT_DEPTH):
            z = z * z + c
            total += 1
            if abs(z) > 32.0:
                break
    return total
