"""What a ledger costs: the same tasks of ten milliseconds with and without one, in turn.

Paced tasks show the time, undisturbed by whatever else the machine does; computed ones the processor time, the nodes'
and the launcher's included, of which the start of the runs is a part.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks.figures import Budget, Figure
from benchmarks.launch import HDPHRS_RUN, PROGRAMS, Run, launch

COUNT = 400


def measure(repeat: int) -> Iterator[Figure]:
    """Both with a new ledger by those without any; and a run that finds everything in the ledger."""
    plain, times, processor, full = [], [], [], []
    for _ in range(repeat):
        without, kept, again = _run("paced")
        plain.append(float(without.last_line))
        times.append(float(kept.last_line) / float(without.last_line))
        full.append(float(again.last_line))
        without, kept, _ = _run("computed")
        processor.append(kept.cpu_s / without.cpu_s)
    yield Figure(f"{COUNT} tasks of 10 ms on 1 core", "s", tuple(plain))
    yield Figure("with a new ledger / without", "x", tuple(times), Budget(1.02))
    yield Figure("processor time, with / without", "x", tuple(processor))
    yield Figure("with the ledger of the last run", "s", tuple(full))


def _run(how: str) -> tuple[Run, Run, Run]:
    """Without a ledger, with a new one, and with that one again."""
    command, program = (*HDPHRS_RUN, "--cores", "1"), (str(PROGRAMS / "coarse.py"), str(COUNT), how)
    with tempfile.TemporaryDirectory() as folder:
        kept = ("--ledger", str(Path(folder, "ledger")))
        return launch([*command, *program]), launch([*command, *kept, *program]), launch([*command, *kept, *program])
