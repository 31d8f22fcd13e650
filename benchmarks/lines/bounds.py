"""The lines: what must hold, of which figures it is made, and with whom hdphrs is compared.

What lives here: data.  Peers that are known to be slower by orders of magnitude take no part in a line, so that all of
it is done in half an hour.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.figures import Budget
from benchmarks.lines.own import BARE, OWN, RELIABLE

IDEAL = "ideal"
IN_TASK, PROGRAM = "hdphrs", "hdphrs_program"
POOLS = ("pool", "process_pool", "loky", "mpire")
FLAT_PEERS = (*POOLS, "scoop")
NESTED_PEERS = ("scoop",)
TINY_TASK_PEERS = ("scoop", "charm")
RECOVERING_PEERS = ("ray", "dask")

PROGRAMS = {
    "sum_euler": "Sum Euler",
    "liouville": "Liouville",
    "queens": "Queens",
    "mandelbrot": "Mandelbrot",
    "queens_nested": "Queens, nested",
    "mandelbrot_nested": "Mandelbrot, nested",
    "uts_t1": "UTS T1",
    "uts_t3": "UTS T3",
}

TIMED = {f"{name}_timed": PROGRAMS[name] for name in ("sum_euler", "liouville", "mandelbrot")}
"""The same, where tasks compute for fixed processor times: a real one's time differs by a tenth from run to run."""

TURNS = 2
"""Of a round, in what is compared by the clock."""

_IN_TURNS = {"noops", "spin_1ms", "spin_1ms_nested", "round_trip", *PROGRAMS, *TIMED} - {"uts_t1", "uts_t3"}
"""Runs of about a second: one that meets a slow moment of the machine is slow as a whole.  UTS takes three or four."""

RUNNERS_UP = 2
"""Of the others of a line, so many have further turns: who was fastest in the first."""

RATE, RATIO, DIFFERENCE = "rate", "ratio", "difference"
"""How hdphrs is compared with the best of the others: its rate by theirs; their time by its; its time less theirs."""


@dataclass(frozen=True, slots=True)
class Quantity:
    """One figure of one workload."""

    workload: str
    figure: str


@dataclass(frozen=True, slots=True)
class Line:
    """One thing that must hold."""

    what: str
    unit: str
    budget: Budget | None
    """None: nothing is bound; it says what could be reached at most."""
    system: str
    ours: Quantity
    others: tuple[str, ...] = ()
    """Nobody: the figure itself is what counts."""
    theirs: Quantity | None = None
    """If it is not the same as ours."""
    how: str = RATIO


def at_least(limit: float) -> Budget:
    """A bound from below."""
    return Budget(limit, at_most=False)


def _spawn_get() -> Sequence[Line]:
    ours = Quantity("spawn_get", "us")
    what = "spawn + get, not stolen"
    return (
        Line(what, "µs", Budget(0.8), OWN, ours),
        Line(
            f"{what}, against a nested task",
            "×",
            at_least(200),
            OWN,
            ours,
            TINY_TASK_PEERS,
            Quantity("fib", "us_per_task"),
        ),
    )


def _noops() -> Sequence[Line]:
    rate = Quantity("noops", "tasks_per_s")
    return (
        Line("20,000 flat no-ops from the program", "×", at_least(3), PROGRAM, rate, POOLS, how=RATE),
        Line("20,000 flat no-ops in a task", "×", at_least(20), IN_TASK, rate, POOLS, how=RATE),
    )


def _programs() -> Sequence[Line]:
    lines = []
    for workload, name in PROGRAMS.items():
        time = Quantity(workload, "seconds")
        nested = workload.endswith("_nested") or workload.startswith("uts")
        lines += [
            Line(f"{name}: of the ideal split", "×", at_least(0.95), IN_TASK, time, (IDEAL,)),
            Line(
                f"{name}: of the best peer", "×", at_least(1.0), IN_TASK, time, NESTED_PEERS if nested else FLAT_PEERS
            ),
        ]
    return lines


def _timed() -> Sequence[Line]:
    lines = []
    for workload, name in TIMED.items():
        time, what = Quantity(workload, "seconds"), f"{name}, fixed processor times"
        lines += [
            Line(f"{what}: of the ideal split", "×", at_least(0.95), IN_TASK, time, (IDEAL,)),
            Line(f"{what}: of the best peer", "×", at_least(1.0), IN_TASK, time, POOLS),
        ]
    return lines


def _milliseconds() -> Sequence[Line]:
    flat, nested = Quantity("spin_1ms", "seconds"), Quantity("spin_1ms_nested", "seconds")
    return (
        Line("1 ms tasks, flat in a task: of the ideal split", "×", at_least(0.9), IN_TASK, flat, (IDEAL,)),
        Line("1 ms tasks, flat from the program: of the ideal split", "×", at_least(0.9), PROGRAM, flat, (IDEAL,)),
        Line("1 ms tasks, nested: of the ideal split", "×", at_least(0.95), IN_TASK, nested, (IDEAL,)),
    )


def _standing_by() -> Sequence[Line]:
    trip = Quantity("round_trip", "median_us")
    waiting = Quantity("waiting", "memory_mb")
    return (
        Line("round trip, idle, same host", "µs", Budget(140), PROGRAM, trip),
        Line("round trip, of ProcessPoolExecutor", "×", at_least(1.0), PROGRAM, trip, ("process_pool",)),
        Line("round trip, idle, node to node", "µs", Budget(350), OWN, Quantity("node_trip", "median_us")),
        *(
            Line(
                f"the least: {count} bare processes in a row, there and back",
                "µs",
                None,
                OWN,
                Quantity(name, "least_us"),
            )
            for name, count in BARE.items()
        ),
        Line("start to first stolen result", "s", Budget(0.4), OWN, Quantity("first_steal", "seconds")),
        Line("idle memory of everything", "MB", Budget(100), PROGRAM, Quantity("startup", "memory_mb")),
        Line("100,000 waiting sparks of a task", "MB", Budget(60), IN_TASK, waiting),
        Line("100,000 waiting sparks of the program", "MB", Budget(60), PROGRAM, waiting),
    )


def _recovery() -> Sequence[Line]:
    lines = []
    for system, name in ((IN_TASK, "in a task"), (PROGRAM, "from the program")):
        beyond, longer = Quantity("recovery", "beyond_s"), Quantity("recovery", "longer_s")
        what = f"one of two workers killed, {name}"
        lines += [
            Line(f"{what}: longer, but for the lost work", "s", Budget(0.2), system, beyond),
            Line(f"{what}: less long than others", "s", Budget(0.0), system, longer, RECOVERING_PEERS, how=DIFFERENCE),
        ]
    return lines


def _reliability() -> Sequence[Line]:
    lines = []
    for name in RELIABLE:
        for figure, kind in (("wall", "time"), ("cpu", "processor time")):
            quantity = Quantity(f"reliable_{name}", figure)
            lines.append(Line(f"reliable / unreliable, {name}, {kind}", "×", Budget(1.01), OWN, quantity))
    return lines


LINES: tuple[Line, ...] = (
    *_spawn_get(),
    *_noops(),
    *_programs(),
    *_timed(),
    *_milliseconds(),
    *_standing_by(),
    *_recovery(),
    *_reliability(),
)


def turns_of(workload: str) -> int:
    """How often a round has it."""
    return TURNS if workload in _IN_TURNS else 1


def plan(lines: Sequence[Line]) -> dict[str, list[str]]:
    """What a round must have for these lines: systems by workload."""
    wanted: dict[str, list[str]] = {}
    for line in lines:
        theirs = line.theirs or line.ours
        for workload, systems in ((line.ours.workload, (line.system,)), (theirs.workload, line.others)):
            for needed in (workload, "no_recovery") if workload == "recovery" else (workload,):
                known = wanted.setdefault(needed, [])
                known += [system for system in systems if system not in known]
    return wanted
