"""The kernel's word on memory: whether it has killed a process of this host for want of it, and what is said of that.

What lives here: reading the counters of the cgroup (version 1 or 2), and of the host.  The kernel does not say which
process it killed, so a process that died by SIGKILL while the counter rose is taken for the one.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

CGROUP = Path("/proc/self/cgroup")
CGROUPS = Path("/sys/fs/cgroup")
HOST = Path("/proc/vmstat")
MEMORY = Path("/proc/meminfo")

COUNTER = "oom_kill "


class OomWitness:
    """Looks at the counters of kills for want of memory."""

    def __init__(self, files: Iterable[Path] | None = None) -> None:
        """
        Args:
            files: where lines `oom_kill N` are; by default those of this process's cgroup and of the host.
        """
        self._files = list(_files() if files is None else files)
        self._seen = self._counts()

    def has_risen(self) -> bool:
        """Whether there was such a kill since the last time."""
        counts = self._counts()
        risen = counts != self._seen
        self._seen = counts
        return risen

    def _counts(self) -> list[int]:
        return [_count(file) for file in self._files]


def memory_word(held_bytes: int, resident: str = "") -> str:
    """What to say of a process that was killed for want of memory.

    Args:
        held_bytes: what this program has spawned and not got back.
        resident: what else is known of the size of the process, for people.
    """
    total = _total_bytes()
    room = f" of {total / 1e9:.1f} GB in all" if total else ""
    waiting = f"; the arguments of its unfinished calls took {held_bytes / 1e9:.2f} GB" if held_bytes >= 1 << 20 else ""
    return (
        f"because the system was out of memory{room}{resident}{waiting}.  Let a function capture large data that many "
        "tasks share, which then travel once, pass files or smaller pieces, or use fewer cores (HDPHRS_CORES)"
    )


def limit_of_memory(text: str) -> int:
    """The bytes of `MemTotal` in a text like /proc/meminfo; 0 if it is not there."""
    for line in text.splitlines():
        if line.startswith("MemTotal:"):
            return int(line.split()[1]) * 1024
    return 0


def _total_bytes() -> int:
    """What the processes of this host, or of this cgroup, may use; 0 if that is not known."""
    totals = [limit_of_memory(_text(MEMORY))]
    totals += [
        int(text) for file in _files("memory.max", "memory.limit_in_bytes") if (text := _text(file).strip()).isdigit()
    ]
    return min((total for total in totals if total), default=0)


def _files(unified: str = "memory.events", legacy: str = "memory.oom_control") -> list[Path]:
    files = [HOST]
    for line in _text(CGROUP).splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers == "":
            files.append(CGROUPS / path.lstrip("/") / unified)
        elif "memory" in controllers.split(","):
            files.append(CGROUPS / "memory" / path.lstrip("/") / legacy)
    return files


def _count(file: Path) -> int:
    for line in _text(file).splitlines():
        if line.startswith(COUNTER):
            return int(line.removeprefix(COUNTER))
    return 0


def _text(file: Path) -> str:
    try:
        return file.read_text()
    except OSError:
        return ""  # another kernel, or another way of mounting
