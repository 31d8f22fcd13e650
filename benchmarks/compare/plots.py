"""Plots of results, as PNG: `python -m benchmarks.compare.plots FILE.json FOLDER`, by a Python that has matplotlib."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib as mpl

from benchmarks.compare.results import Board, read_results
from benchmarks.compare.systems import SYSTEMS, WORKERS

mpl.use("Agg")

from matplotlib import pyplot as plt

PLAIN, IDEAL, OURS = "plain", "ideal", "hdphrs"
PROGRAMS = {
    "sum_euler": "Sum Euler",
    "liouville": "Liouville",
    "queens": "Queens 13",
    "mandelbrot": "Mandelbrot",
    "queens_nested": "Queens 13, nested",
    "mandelbrot_nested": "Mandelbrot, nested",
    "uts_t1": "UTS T1",
    "uts_t3": "UTS T3",
}
TASKS_OF = ("spin_100us", "spin_1ms", "spin_10ms")
MARKERS = "os^vD<>pPX*hd8"
SIZE_INCHES = (9.0, 5.5)
DOTS_PER_INCH = 110


def plot_speedup(board: Board, path: Path) -> None:
    """How many times as fast as plain Python each system is; only what nobody disturbed."""
    rows = [workload for workload in PROGRAMS if board.right(PLAIN, workload) and not board.disturbed(PLAIN, workload)]

    def speedup(system: str, workload: str) -> float | None:
        return None if board.disturbed(system, workload) else board.ratio(system, workload, PLAIN)

    _plot_rows(board, rows, speedup, f"times as fast as plain Python, with {WORKERS} workers", WORKERS, path)


def plot_work(board: Board, path: Path) -> None:
    """What share of each system's processor time is the work itself; this says something on a busy machine, too."""
    rows = [workload for workload in PROGRAMS if board.right(PLAIN, workload)]

    def share(system: str, workload: str) -> float | None:
        return board.ratio(system, workload, PLAIN, "cpu_s")

    _plot_rows(board, rows, share, "share of all processor time that is work (plain Python = 1)", 1, path)


def _plot_rows(
    board: Board, rows: list[str], value: Callable[[str, str], float | None], label: str, mark: float, path: Path
) -> None:
    """A line of points for each workload, a marker for each system."""
    figure, axes = plt.subplots(figsize=SIZE_INCHES, layout="constrained")
    for number, system in enumerate(name for name in board.systems() if name != PLAIN):
        found = [(value(system, workload), row) for row, workload in enumerate(rows)]
        points = [(ratio, row + (number - 6) * 0.05) for ratio, row in found if ratio is not None]
        if points:
            size = 9 if system.startswith(OURS) else 5
            axes.plot(*zip(*points, strict=True), _marker(number), label=SYSTEMS[system].name, markersize=size)
    axes.set_yticks(range(len(rows)), [PROGRAMS[workload] for workload in rows])
    axes.invert_yaxis()
    axes.axvline(mark, color="grey", linewidth=0.8, linestyle=":")
    axes.set_xlabel(label)
    axes.set_xlim(left=0.0)
    axes.grid(axis="x", alpha=0.3)
    _finish(figure, axes, path)


def plot_overhead(board: Board, path: Path) -> None:
    """The share of processor time that is work, against the length of a task."""
    figure, axes = plt.subplots(figsize=SIZE_INCHES, layout="constrained")
    for number, system in enumerate(name for name in board.systems() if name not in (PLAIN, IDEAL)):
        points = []
        for workload in TASKS_OF:
            length_us = board.median(PLAIN, workload, "cpu_us_per_task")
            cost_us = board.median(system, workload, "cpu_us_per_task")
            if length_us and cost_us:
                points.append((length_us / 1000, length_us / cost_us))
        if points:
            width = 2.5 if system.startswith(OURS) else 1.0
            axes.plot(*zip(*points, strict=True), marker=_marker(number), linewidth=width, label=SYSTEMS[system].name)
    axes.set_xscale("log")
    axes.set_xlabel("length of a task, ms")
    axes.set_ylabel("share of all processor time that is work")
    axes.set_ylim(0.0, 1.1)
    axes.grid(which="both", alpha=0.3)
    _finish(figure, axes, path)


def _marker(number: int) -> str:
    return MARKERS[number % len(MARKERS)]


def _finish(figure: Any, axes: Any, path: Path) -> None:
    if not axes.get_legend_handles_labels()[0]:
        print(f"{path.name}: not drawn, there is nothing that nobody disturbed", file=sys.stderr)
        return
    axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), fontsize=8)
    figure.savefig(path, dpi=DOTS_PER_INCH)


def main() -> None:
    results, folder = Path(sys.argv[1]), Path(sys.argv[2])
    board = Board(read_results(results))
    folder.mkdir(parents=True, exist_ok=True)
    plot_speedup(board, folder / "speedup.png")
    plot_work(board, folder / "work.png")
    plot_overhead(board, folder / "task_length.png")


if __name__ == "__main__":
    main()
