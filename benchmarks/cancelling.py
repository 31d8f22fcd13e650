"""The end of unwanted work: from `cancel` of a tree of 10,000 tasks on four local nodes to the last free core."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.figures import Budget, Figure
from benchmarks.launch import HDPHRS_RUN, PROGRAMS, launch

COMMAND = (*HDPHRS_RUN, "--local-nodes", "4", "--cores", "1", str(PROGRAMS / "cancel_tree.py"))


def measure(repeat: int) -> Iterator[Figure]:
    """Milliseconds, medians of one run each."""
    runs = [launch(COMMAND) for _ in range(repeat)]
    yield Figure("cancel to all cores free", "ms", tuple(1000 * float(run.last_line) for run in runs), Budget(100))
