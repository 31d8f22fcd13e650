"""The descriptors of this process: how many it may have, and that none of ours takes the place of a standard one.

What lives here: raising that bound, and which numbers descriptors of ours have; the numbers 0, 1 and 2, which a process
may find closed (`2>&-`), and a program may close at any time.  What does not: what to say when the bound is reached
(`hdphrs/room.py`).
"""

from __future__ import annotations

import fcntl
import os
import resource
from contextlib import suppress
from typing import Final

OPEN_MAX: Final = 1 << 16
"""Enough for a node of a thousand others and for large payloads; more may be in the way of what tasks start."""

OUT_OF_THE_WAY: Final = 512
"""From this number on the descriptors of our links are kept, or from half of what the process may have open: those that
are opened get the lowest free numbers, so a task, or a program, that has closed ours by their numbers does not get them
for its own."""


def allow_many() -> None:
    """Let this process, and those that it starts, open as many files as the system allows it, up to `OPEN_MAX`."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = OPEN_MAX if hard == resource.RLIM_INFINITY else min(OPEN_MAX, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with suppress(ValueError, OSError):  # macOS has one more bound, and does not say where
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def out_of_the_way(descriptor: int) -> int:
    """A copy of this descriptor, which children do not inherit, with a high number; the original is closed.  The
    original itself if there is no room."""
    room = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    first = OUT_OF_THE_WAY if room == resource.RLIM_INFINITY else min(OUT_OF_THE_WAY, room // 2)
    try:
        copy = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, first)
    except OSError:
        os.set_inheritable(descriptor, False)
        return descriptor
    os.close(descriptor)
    return copy


STANDARD_MAX: Final = 2
"""The standard descriptors are those from 0 up to this one."""


def occupy_standard(*, inherited: bool = True) -> None:
    """Open the null device for each standard descriptor that is closed, before this process opens anything else: that
    would get the number, and whoever writes to the standard error would write there.

    Args:
        inherited: whether processes that this one starts have it too; else the descriptor is as closed to them as it
            was here.
    """
    for number in range(STANDARD_MAX + 1):
        try:
            os.fstat(number)
        except OSError:
            opened = os.open(os.devnull, os.O_RDWR)
            if opened == number:
                os.set_inheritable(number, inherited)
            else:  # another thread of the program was faster
                os.close(opened)


def identity(descriptor: int) -> tuple[int, int] | None:
    """What a descriptor stands for, among all files and sockets; None if it is closed.  A program may have closed one
    of ours by its number, and opened something else since."""
    try:
        found = os.fstat(descriptor)
    except OSError:
        return None
    return found.st_dev, found.st_ino


def beyond_standard(descriptor: int) -> int:
    """The same open file under a number that is no standard one; a program may have closed one of those meanwhile."""
    if descriptor > STANDARD_MAX:
        return descriptor
    moved = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, STANDARD_MAX + 1)
    os.close(descriptor)
    return moved
