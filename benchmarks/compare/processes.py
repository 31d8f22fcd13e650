"""The processes of one job, whoever started them: those that inherited its folder, in their environment or as the
folder that they are in (some write their title over their environment, some change the folder)."""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from pathlib import Path

FOLDER_VARIABLE = "HDPHRS_BENCHMARK_FOLDER"


def members(folder: str) -> list[int]:
    """Their process ids."""
    wanted = f"{FOLDER_VARIABLE}={folder}".encode()
    found = []
    for process in Path("/proc").iterdir():
        if process.name.isdecimal():
            with suppress(OSError):
                is_inside = os.readlink(process / "cwd").startswith(folder)
                if is_inside or wanted in (process / "environ").read_bytes().split(b"\0"):
                    found.append(int(process.name))
    return sorted(found)


def memory_bytes(folder: str) -> int:
    """What they occupy together; pages that several share count once (proportional set size)."""
    total = 0
    for pid in members(folder):
        with suppress(OSError):
            for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
                if line.startswith("Pss:"):
                    total += int(line.split()[1]) * 1024
    return total


def cpu_s(folder: str) -> float:
    """The processor time that those who live have used, and their children that they have seen end."""
    ticks = 0
    for pid in members(folder):
        with suppress(OSError):
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            ticks += sum(map(int, fields[11:15]))
    return ticks / os.sysconf("SC_CLK_TCK")


def busy_s() -> float:
    """The processor time that all processes of this machine have used since it started."""
    user, nice, system, _, _, interrupts, soft_interrupts = map(int, _cpu_line()[:7])
    return (user + nice + system + interrupts + soft_interrupts) / os.sysconf("SC_CLK_TCK")


def _cpu_line() -> list[str]:
    return Path("/proc/stat").read_text().splitlines()[0].split()[1:]


def kill_members(folder: str) -> None:
    """End them all, and those that they start meanwhile."""
    while pids := members(folder):
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        for pid in pids:
            with suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)
