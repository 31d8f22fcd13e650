"""What becomes of a process whose parent has ended.

What lives here: having ours end with us, and taking such processes on, for a while.  The nodes that the root forks
become ours in that way, so that we are told when and how they end (decision 35).  So does anything else that is left
alone below us meanwhile.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

PR_SET_PDEATHSIG = 1
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


def ending_with_us() -> Callable[[], None] | None:
    """What a process that this one starts is to call before it becomes another program: then the kernel kills it when
    the thread that has started it ends, as it does when this process is killed (Linux; elsewhere there is no such
    thing).  An ssh whose network is gone would not see for long that nobody wants it any more.
    """
    if sys.platform != "linux":
        return None
    import ctypes

    prctl = ctypes.CDLL(None).prctl
    launcher = os.getpid()

    def end_with_launcher() -> None:
        prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != launcher:
            os._exit(1)

    return end_with_launcher
