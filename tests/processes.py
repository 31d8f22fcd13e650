"""Looking at processes that may end at any moment, and killing them: having ended is an answer here, not an error."""

from __future__ import annotations

import os
import signal
from math import inf
from pathlib import Path


def stat(pid: int) -> list[str]:
    """What the kernel tells of a process behind its name (proc(5)): state, parent, ...; nothing if there is none."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []


def started(pid: int) -> tuple[float, int]:
    """Sorts by age, for process ids begin anew now and then; one that has ended meanwhile comes after all others."""
    told = stat(pid)
    return float(told[19]) if told else inf, pid


def gone(pid: int) -> bool:
    """Whether it has ended, though its parent may not have been told yet."""
    return (stat(pid) or "Z")[0] == "Z"


def send(pid: int, what: signal.Signals) -> bool:
    """Send a signal; False if there is nobody any more to get it."""
    try:
        os.kill(pid, what)
    except ProcessLookupError:
        return False
    return True
