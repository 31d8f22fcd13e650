"""The processes of one job: all that inherited its mark in their environment, whoever started them."""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from pathlib import Path

MARK_VARIABLE = "HDPHRS_BENCHMARK_JOB"


def marked(mark: str) -> list[int]:
    """Their process ids."""
    wanted = f"{MARK_VARIABLE}={mark}".encode()
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal():
            with suppress(OSError):
                if wanted in (folder / "environ").read_bytes().split(b"\0"):
                    found.append(int(folder.name))
    return sorted(found)


def memory_bytes(mark: str) -> int:
    """What they occupy together; pages that several share count once (proportional set size)."""
    total = 0
    for pid in marked(mark):
        with suppress(OSError):
            for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
                if line.startswith("Pss:"):
                    total += int(line.split()[1]) * 1024
    return total


def cpu_s(mark: str) -> float:
    """The processor time that those who live have used, and their children that they have seen end."""
    ticks = 0
    for pid in marked(mark):
        with suppress(OSError):
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            ticks += sum(map(int, fields[11:15]))
    return ticks / os.sysconf("SC_CLK_TCK")


def kill_marked(mark: str) -> None:
    """End them all, and those that they start meanwhile."""
    while pids := marked(mark):
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        for pid in pids:
            with suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)
