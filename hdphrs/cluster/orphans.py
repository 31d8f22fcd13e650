"""Whose child a process becomes whose parent has ended.

What lives here: taking such processes on, for a moment.  The nodes that the root forks become ours in that way, so that
we are told when and how they end (decision 35).  So would anything else that is left alone below us in that moment.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

PR_SET_CHILD_SUBREAPER = 36


@contextmanager
def taking_on(*, wanted: bool) -> Iterator[None]:
    """Processes below this one whose parent ends while the block runs are our children from then on (Linux).

    Args:
        wanted: else the block is as any other.
    """
    if not wanted or sys.platform != "linux":
        yield
        return
    import ctypes

    prctl = ctypes.CDLL(None, use_errno=True).prctl
    prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    try:
        yield
    finally:
        prctl(PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)
