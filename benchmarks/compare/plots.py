"""Plots of results, as PNG: `python -m benchmarks.compare.plots FILE.json FOLDER`, by a Python that has matplotlib."""

from __future__ import annotations

import sys
from pathlib import Path

import matplotlib as mpl

from benchmarks.compare.results import Board, read_results
from benchmarks.compare.systems import SYSTEMS, WORKERS

mpl.use("Agg")

from matplotlib import pyplot as plt

PLAIN = "plain"
SPEEDUP_OF = {
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
    """How many times as fast as plain Python each system is."""
    figure, axes = plt.subplots(figsize=SIZE_INCHES, layout="constrained")
    rows = [workload for workload in SPEEDUP_OF if board.right(PLAIN, workload)]
    for number, system in enumerate(name for name in board.systems() if name != PLAIN):
        points = [(board.ratio(system, workload, PLAIN), row) for row, workload in enumerate(rows)]
        points = [(ratio, row) for ratio, row in points if ratio is not None]
        if points:
            axes.plot(
                [ratio for ratio, _ in points],
                [row + (number - 6) * 0.05 for _, row in points],
                MARKERS[number % len(MARKERS)],
                label=SYSTEMS[system].name,
                markersize=9 if system.startswith("hdphrs") else 5,
            )
    axes.set_yticks(range(len(rows)), [SPEEDUP_OF[workload] for workload in rows])
    axes.invert_yaxis()
    axes.axvline(1.0, color="grey", linewidth=0.8)
    axes.axvline(WORKERS, color="grey", linewidth=0.8, linestyle=":")
    axes.set_xlabel(f"times as fast as plain Python, with {WORKERS} workers")
    axes.set_xlim(left=0.0)
    axes.grid(axis="x", alpha=0.3)
    axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), fontsize=8)
    figure.savefig(path, dpi=DOTS_PER_INCH)


def plot_overhead(board: Board, path: Path) -> None:
    """What share of the workers' time goes into the tasks themselves, against the length of a task."""
    figure, axes = plt.subplots(figsize=SIZE_INCHES, layout="constrained")
    for number, system in enumerate(name for name in board.systems() if name != PLAIN):
        lengths_ms, shares = [], []
        for workload in TASKS_OF:
            length_us = board.median(PLAIN, workload, "us_per_task")
            took_us = board.median(system, workload, "us_per_task")
            if length_us is not None and took_us is not None:
                lengths_ms.append(length_us / 1000)
                shares.append(length_us / (WORKERS * took_us))
        if shares:
            marker = MARKERS[number % len(MARKERS)]
            width = 2.5 if system.startswith("hdphrs") else 1.0
            axes.plot(lengths_ms, shares, marker=marker, linewidth=width, label=SYSTEMS[system].name)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("length of a task, ms")
    axes.set_ylabel(f"speed-up / {WORKERS}")
    axes.grid(which="both", alpha=0.3)
    axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), fontsize=8)
    figure.savefig(path, dpi=DOTS_PER_INCH)


def main() -> None:
    results, folder = Path(sys.argv[1]), Path(sys.argv[2])
    board = Board(read_results(results))
    folder.mkdir(parents=True, exist_ok=True)
    plot_speedup(board, folder / "speedup.png")
    plot_overhead(board, folder / "task_length.png")


if __name__ == "__main__":
    main()
