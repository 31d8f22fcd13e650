"""A figure: one measured number, its budget, and how figures are shown and stored."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median


@dataclass(frozen=True, slots=True)
class Budget:
    """What a figure must not exceed, or must reach."""

    limit: float
    at_most: bool = True

    def is_kept(self, value: float) -> bool:
        """Whether `value` is within the budget."""
        return value <= self.limit if self.at_most else value >= self.limit

    def __str__(self) -> str:
        return f"{'<=' if self.at_most else '>='} {self.limit:g}"


@dataclass(frozen=True, slots=True)
class Figure:
    """One line of the table: the median of `samples`."""

    name: str
    unit: str
    samples: tuple[float, ...]
    budget: Budget | None = None

    @property
    def value(self) -> float:
        """The median, in `unit`."""
        return median(self.samples)

    @property
    def verdict(self) -> str:
        """For people: whether the budget is kept."""
        if self.budget is None:
            return ""
        return "ok" if self.budget.is_kept(self.value) else "MISSED"


def table(figures: Sequence[Figure]) -> str:
    """The figures as aligned plain text."""
    head = ("what", "median", "unit", "min", "max", "budget", "")
    rows = [
        (
            figure.name,
            f"{figure.value:.3g}",
            figure.unit,
            f"{min(figure.samples):.3g}",
            f"{max(figure.samples):.3g}",
            str(figure.budget or ""),
            figure.verdict,
        )
        for figure in figures
    ]
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    lines = ("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in (head, *rows))
    return "\n".join(line.rstrip() for line in lines)


def write_json(path: Path, figures: Sequence[Figure]) -> None:
    """The figures with all samples, and the machine they were measured on."""
    document = {
        "machine": platform.machine(),
        "python": platform.python_version(),
        "cores": len(os.sched_getaffinity(0)),
        "figures": [{**asdict(figure), "median": figure.value, "verdict": figure.verdict} for figure in figures],
    }
    path.write_text(json.dumps(document, indent=2) + "\n")
