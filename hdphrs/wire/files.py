"""How many files, sockets and pieces of memory this process may have open.

What lives here: raising that bound, and the words for what has gone beyond it.
"""

from __future__ import annotations

import errno
import resource
from contextlib import suppress
from typing import Final

OPEN_MAX: Final = 1 << 16
"""Enough for a node of a thousand others and for large payloads; more may be in the way of what tasks start."""

EXHAUSTED: Final = {errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM}
"""There is room for no connection more."""


def allow_many() -> None:
    """Let this process, and those that it starts, open as many files as the system allows it, up to `OPEN_MAX`."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = OPEN_MAX if hard == resource.RLIM_INFINITY else min(OPEN_MAX, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with suppress(ValueError, OSError):  # macOS has one more bound, and does not say where
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def how_exhausted(error: OSError) -> str:
    """What is lacking, and what to do about it."""
    how = error.strerror or str(error)
    if error.errno != errno.EMFILE:
        return how
    return f"{how}: this process may have {resource.getrlimit(resource.RLIMIT_NOFILE)[0]}, raise `ulimit -n`"
