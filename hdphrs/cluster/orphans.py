"""Whose child a process becomes whose parent has ended.

What lives here: taking such processes on, for a while.  The nodes that the root forks become ours in that way, so that
we are told when and how they end (decision 35).  So does anything else that is left alone below us meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

PR_SET_CHILD_SUBREAPER = 36


@contextmanager
def taking_on() -> Iterator[bool]:
    """Processes below this one whose parent ends while the block runs are our children from then on (Linux).

    Yields whether it is so; the system may have refused.
    """
    import ctypes  # which takes long, and most runs need not

    prctl = ctypes.CDLL(None).prctl
    try:
        yield prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0
    finally:
        prctl(PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)
