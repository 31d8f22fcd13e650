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

_STATE, _FLAGS, _USER, _SYSTEM = 0, 6, 11, 12
"""Where these are behind the name."""


class Stat(NamedTuple):
    """Of one process."""

    state: str
    """One letter."""
    ticks: int
    """Processor time that it has had, in ticks of the system's clock."""
    is_ending: bool


def stat_of(pid: int) -> Stat | None:
    """What there is to say of this process; None if there is none, or no word of it."""
    try:
        words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        ticks = int(words[_USER]) + int(words[_SYSTEM])
        return Stat(words[_STATE], ticks, words[_STATE] in _ENDED or int(words[_FLAGS]) & _EXITING != 0)
    except (OSError, LookupError, ValueError):
        return None
