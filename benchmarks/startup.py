"""The delay: from the start of `hdphrs run` with two local nodes to the first result of a stolen task."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.figures import Budget, Figure
from benchmarks.launch import HDPHRS_RUN, PROGRAMS, launch

COMMAND = (*HDPHRS_RUN, "--local-nodes", "2", "--cores", "1", str(PROGRAMS / "first_steal.py"))


def measure(repeat: int) -> Iterator[Figure]:
    """Seconds to the first stolen result, and to the end of the whole command."""
    runs = [launch(COMMAND) for _ in range(repeat)]
    first_s = tuple(float(run.last_line) - run.started_at for run in runs)
    yield Figure("start to first stolen result", "s", first_s, Budget(0.6))
    yield Figure("start to end of that program", "s", tuple(run.seconds for run in runs))
