"""The kernel's word on memory: whether it has killed a process of this node for want of it.

What lives here: reading the counters of the cgroup (version 1 or 2), and of the host.  The kernel does not say which
process it killed, so a process that died by SIGKILL while the counter rose is taken for the one.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

CGROUP = Path("/proc/self/cgroup")
CGROUPS = Path("/sys/fs/cgroup")
HOST = Path("/proc/vmstat")

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


def _files() -> list[Path]:
    files = [HOST]
    for line in _text(CGROUP).splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers == "":
            files.append(CGROUPS / path.lstrip("/") / "memory.events")
        elif "memory" in controllers.split(","):
            files.append(CGROUPS / "memory" / path.lstrip("/") / "memory.oom_control")
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
