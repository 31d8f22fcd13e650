"""What the kernel says of a process, in one line of text (proc(5)); nothing where there is no such file system."""

from __future__ import annotations

from pathlib import Path
from typing import Final, NamedTuple

STOPPED: Final = "T"
"""State of a process that a signal has stopped, until SIGCONT."""

TRACED: Final = "t"
"""State of one that a debugger holds."""

_ENDED: Final = ("Z", "X")
_EXITING: Final = 0x4
"""A flag of a process: it is about to end."""

_STATE, _FLAGS, _USER, _SYSTEM, _THREADS = 0, 6, 11, 12, 17
"""Where these are behind the name."""


class Stat(NamedTuple):
    """Of one process."""

    state: str
    """One letter."""
    ticks: int
    """Processor time that it has had, in ticks of the system's clock."""
    is_ending: bool
    threads: int = 1


OURS: Final = 1
"""Threads of a scheduler beside that which runs tasks: the helper, which mostly sleeps."""


def threads_beyond(pid: int, share: int) -> int:
    """How many threads a scheduler's process has beyond its share of the cores, be they at work or not.

    Args:
        share: the threads that it may have for tasks, see `hdphrs/scheduler/native_threads.py`.
    """
    stat = stat_of(pid)
    return 0 if stat is None else max(0, stat.threads - OURS - share)


def stat_of(pid: int) -> Stat | None:
    """What there is to say of this process; None if there is none, or no word of it."""
    try:
        words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        ticks = int(words[_USER]) + int(words[_SYSTEM])
        return Stat(
            words[_STATE], ticks, words[_STATE] in _ENDED or int(words[_FLAGS]) & _EXITING != 0, int(words[_THREADS])
        )
    except (OSError, LookupError, ValueError):
        return None
