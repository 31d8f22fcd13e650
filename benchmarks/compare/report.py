"""Tables of results, in Markdown: a system a line, a workload a column."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.compare.results import Board, Result
from benchmarks.compare.systems import SYSTEMS
from benchmarks.compare.workloads import FULL

PLAIN, IDEAL = "plain", "ideal"
NOTHING = "–"
TROUBLE_CHARS_MAX = 40

SAME_WORK = frozenset({"queens_nested", "mandelbrot_nested", "uts_t1", "uts_t3"})
"""Nested workloads of which a smaller size has fewer tasks, but not less work."""


@dataclass(frozen=True, slots=True)
class Column:
    """One figure of one workload."""

    heading: str
    workload: str
    figure: str
    with_ratio: bool = False
    """Whether to show shares, too: of the ideal's speed, and of the processor time that goes into the work itself."""


TABLES: dict[str, Sequence[Column]] = {
    "What a task costs (* measured on fewer tasks, ~ while others used the machine)": (
        Column("flat no-ops, tasks/s", "noops", "tasks_per_s"),
        Column("processor, µs each", "noops", "cpu_us_per_task"),
        Column("round trip, µs", "round_trip", "median_us"),
        Column("95 of 100 below, µs", "round_trip", "p95_us"),
        Column("fib, each call a task, µs each", "fib", "us_per_task"),
        Column("processor, µs each", "fib", "cpu_us_per_task"),
        Column("2,000 that wait for one each, µs a task", "all_wait", "us_per_task"),
        Column("500 arrays of 1 MB, ms", "arrays_1mb", "milliseconds"),
    ),
    "Tasks of known length: seconds · share of the ideal's speed · share of the processor time that is work": (
        Column("0.1 ms, 10,000 flat", "spin_100us", "seconds", True),
        Column("1 ms, 2,000 flat", "spin_1ms", "seconds", True),
        Column("10 ms, 200 flat", "spin_10ms", "seconds", True),
        Column("1 ms, 2,048 nested", "spin_1ms_nested", "seconds", True),
    ),
    "The paper's programs, flat: seconds · share of the ideal's speed · share of the processor time that is work": (
        Column("Sum Euler, 1,000 tasks", "sum_euler", "seconds", True),
        Column("Liouville, 200", "liouville", "seconds", True),
        Column("Queens 13, 1,030", "queens", "seconds", True),
        Column("Mandelbrot, 480", "mandelbrot", "seconds", True),
    ),
    "As many tasks, of fixed processor times: seconds · share of the ideal's speed": (
        Column("Sum Euler", "sum_euler_timed", "seconds", True),
        Column("Liouville", "liouville_timed", "seconds", True),
        Column("Mandelbrot", "mandelbrot_timed", "seconds", True),
    ),
    "Nested: seconds · share of the ideal's speed · share of the processor time that is work (* in fewer tasks)": (
        Column("Queens 13, 7,580 tasks", "queens_nested", "seconds", True),
        Column("Mandelbrot, 959", "mandelbrot_nested", "seconds", True),
        Column("UTS T1", "uts_t1", "seconds", True),
        Column("UTS T3", "uts_t3", "seconds", True),
    ),
    "Starting and standing by": (
        Column("start to first result, s", "startup", "seconds"),
        Column("memory of all processes, MB", "startup", "memory_mb"),
        Column("processes", "startup", "processes"),
        Column("processor when idle, %", "startup", "idle_cpu_percent"),
        Column("a waiting task, bytes", "waiting", "bytes_per_task"),
        Column("to submit it, µs", "waiting", "submit_us"),
    ),
    "100 tasks of 0.1 s, one of two workers killed when 30 are done; 40 tasks of which one kills its process": (
        Column("nobody killed, s", "no_recovery", "seconds"),
        Column("killed, s", "recovery", "seconds"),
        Column("tasks run again", "recovery", "run_again"),
        Column("poison, s", "poison", "seconds"),
        Column("attempts beyond the first", "poison", "run_again"),
    ),
}


def markdown(results: Sequence[Result]) -> str:
    """All tables that have something in them."""
    board = Board(results)
    parts = []
    for title, columns in TABLES.items():
        rows = [(name, [_cell(board, name, column) for column in columns]) for name in board.systems()]
        rows = [(name, cells) for name, cells in rows if any(cell != NOTHING for cell in cells)]
        if rows:
            lines = [_row("", [column.heading for column in columns]), "|---" * (len(columns) + 1) + "|"]
            lines += [_row(SYSTEMS[name].name if name in SYSTEMS else name, cells) for name, cells in rows]
            parts.append(f"**{title}**\n\n" + "\n".join(lines) + "\n")
    return "\n".join(parts)


def _row(first: str, cells: Sequence[str]) -> str:
    return f"| {first} | {' | '.join(cells)} |"


def _cell(board: Board, system: str, column: Column) -> str:
    value = _value(board, system, column)
    if value is None:
        trouble = board.trouble(system, column.workload)
        return NOTHING if not trouble or trouble.startswith("skipped") else _shortened(trouble)
    star = "" if board.size(system, column.workload) == FULL else "*"
    disturbed = board.disturbed(system, column.workload)
    text = f"{figure(value)}{star}{'~' if disturbed else ''}"
    if column.with_ratio and (not star or column.workload in SAME_WORK):
        share = board.ratio(system, column.workload, IDEAL)
        if disturbed or board.disturbed(IDEAL, column.workload):
            share = None
        work = board.ratio(system, column.workload, PLAIN, "cpu_s")
        text = " · ".join((text, *(NOTHING if ratio is None else f"{ratio:.2f}" for ratio in (share, work))))
    return text


def _value(board: Board, system: str, column: Column) -> float | None:
    if column.figure == "milliseconds":
        seconds = board.median(system, column.workload, "seconds")
        return None if seconds is None else 1000 * seconds
    return board.median(system, column.workload, column.figure)


def _shortened(trouble: str) -> str:
    """The exception's name, or the first words."""
    return trouble.removeprefix("failed: ").partition(":")[0][:TROUBLE_CHARS_MAX]


def figure(value: float) -> str:
    """Three digits that count."""
    if value == 0:
        return "0"
    if abs(value) >= 1000:
        return f"{round(value, 2 - len(str(int(abs(value)))) + 1):,.0f}"
    return f"{value:.3g}"
