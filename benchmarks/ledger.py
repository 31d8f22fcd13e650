"""What a ledger costs: the same tasks of ten milliseconds with and without one, in turn."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks.figures import Budget, Figure
from benchmarks.launch import HDPHRS_RUN, PROGRAMS, launch

COMMAND = (*HDPHRS_RUN, "--cores", "1")
PROGRAM = (str(PROGRAMS / "coarse.py"), "400")


def measure(repeat: int) -> Iterator[Figure]:
    """Seconds with a new ledger by those without any, and with a full one."""
    times, processor, plain, full = [], [], [], []
    for _ in range(repeat):
        with tempfile.TemporaryDirectory() as folder:
            kept = ("--ledger", str(Path(folder, "ledger")))
            without = launch([*COMMAND, *PROGRAM])
            with_ledger = launch([*COMMAND, *kept, *PROGRAM])
            again = launch([*COMMAND, *kept, *PROGRAM])
        plain.append(float(without.last_line))
        times.append(float(with_ledger.last_line) / float(without.last_line))
        processor.append(with_ledger.cpu_s / without.cpu_s)
        full.append(float(again.last_line))
    yield Figure("400 tasks of 10 ms on 1 core", "s", tuple(plain))
    yield Figure("with a new ledger / without", "x", tuple(times), Budget(1.02))
    yield Figure("processor time, with / without", "x", tuple(processor))
    yield Figure("with the ledger of the last run", "s", tuple(full))
