"""The delay: from the start of `hdphrs run` with two local nodes to the first result of a stolen task.

What lives here: that of an installed package (`installed.py`), whose modules pip has compiled.  From sources that
nobody has compiled, or where PYTHONDONTWRITEBYTECODE forbids to keep that, each process of a run compiles all that it
loads.
"""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.figures import Budget, Figure
from benchmarks.launch import HDPHRS_RUN, PROGRAMS, Run, launch

COMMAND = (*HDPHRS_RUN, "--local-nodes", "2", "--cores", "1", str(PROGRAMS / "first_steal.py"))


def measure(repeat: int) -> Iterator[Figure]:
    """Seconds to the first stolen result, and to the end of the whole command."""
    runs = [first_steal() for _ in range(repeat)]
    first_s = tuple(float(run.last_line) - run.started_at for run in runs)
    yield Figure("start to first stolen result", "s", first_s, Budget(0.6))
    yield Figure("start to end of that program", "s", tuple(run.seconds for run in runs))


def first_steal() -> Run:
    """One run, whose last line is the time of the first stolen result."""
    return launch(COMMAND)
