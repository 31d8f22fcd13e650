"""The processes of one job, whoever started them: those that inherited its folder, in their environment or as the
folder that they are in (some write their title over their environment, some change the folder)."""

from __future__ import annotations

import os
import signal
import tempfile
import time
from contextlib import suppress
from pathlib import Path

FOLDER_VARIABLE = "HDPHRS_BENCHMARK_FOLDER"

FOLDER_PREFIX = "hdphrs-peer-"
"""Of the names of the folders of jobs, all of which are directly in the folder for temporary files."""

DISTURBED_CORES = 0.25
"""A job is disturbed if others use more than so much of the machine meanwhile."""

LOOK_S = 0.3


def members(folder: str) -> list[int]:
    """Their process ids.

    Raises:
        ValueError: this is not the folder of a job; an empty or a common one would make strangers members.
    """
    if Path(folder).parent != Path(tempfile.gettempdir()) or not Path(folder).name.startswith(FOLDER_PREFIX):
        raise ValueError(f"not the folder of a job: {folder!r}")
    wanted = f"{FOLDER_VARIABLE}={folder}".encode()
    found = []
    for process in Path("/proc").iterdir():
        if process.name.isdecimal():
            with suppress(OSError):
                where = os.readlink(process / "cwd").removesuffix(" (deleted)")
                is_inside = where == folder or where.startswith(f"{folder}/")
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


def cpu_ns(folder: str) -> int:
    """The processor time of the threads that live now; finer than `cpu_s`, but what has ended is not in it."""
    total = 0
    for pid in members(folder):
        for thread in Path(f"/proc/{pid}/task").glob("*/schedstat"):
            with suppress(OSError):
                total += int(thread.read_text().split()[0])
    return total


def peak_bytes(folder: str) -> int:
    """The most that each of them has ever had resident, added up."""
    total = 0
    for pid in members(folder):
        with suppress(OSError):
            for line in Path(f"/proc/{pid}/status").read_text().splitlines():
                if line.startswith("VmHWM:"):
                    total += int(line.split()[1]) * 1024
    return total


def busy_s() -> float:
    """The processor time that this machine's processes, and others on the same host, have taken since it started."""
    fields = Path("/proc/stat").read_text().splitlines()[0].split()[1:9]
    user, nice, system, _, _, interrupts, soft_interrupts, stolen = map(int, fields)
    return (user + nice + system + interrupts + soft_interrupts + stolen) / os.sysconf("SC_CLK_TCK")


def wait_for_quiet(patience_s: float) -> None:
    """Return when nobody else uses the machine to speak of, or when `patience_s` have passed."""
    give_up_s = time.monotonic() + patience_s
    while time.monotonic() < give_up_s:
        before_s, since_s = busy_s(), time.monotonic()
        time.sleep(LOOK_S)
        if busy_s() - before_s < DISTURBED_CORES * (time.monotonic() - since_s):
            return


def kill_members(folder: str) -> None:
    """End them all, and those that they start meanwhile."""
    while pids := members(folder):
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        for pid in pids:
            with suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)
