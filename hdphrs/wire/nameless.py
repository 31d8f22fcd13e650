"""Memory that processes share, and that has no name in any file system.

What lives here: making it, and what takes its place where the system refuses it: a file that is deleted before anybody
can have seen it, in memory if there is room.
"""

from __future__ import annotations

import os
import sys
import tempfile
from contextlib import suppress

SHARED_MEMORY = "/dev/shm"
"""A file system in memory, on Linux."""


def nameless(name: str, size: int | None = None) -> int:
    """A descriptor of new memory that children do not inherit.

    Args:
        name: for whoever looks at the descriptors of a process.
        size: in bytes; then it never gets another one, as far as the system can see to that.

    Raises:
        OSError: this process may have no descriptor more, or there is no room.
    """
    descriptor = _memory(name, sealed=size is not None)
    if descriptor is None:
        in_memory = os.access(SHARED_MEMORY, os.W_OK)
        with tempfile.TemporaryFile(dir=SHARED_MEMORY if in_memory else None) as file:
            descriptor = os.dup(file.fileno())
    if size is not None:
        os.ftruncate(descriptor, size)
        _seal_size(descriptor)
    return descriptor


def _memory(name: str, *, sealed: bool) -> int | None:
    if hasattr(os, "memfd_create"):
        with suppress(OSError):  # a sandbox may forbid it
            return os.memfd_create(name, os.MFD_CLOEXEC | (os.MFD_ALLOW_SEALING if sealed else 0))
    return None


def _seal_size(descriptor: int) -> None:
    if sys.platform == "linux":
        import fcntl

        with suppress(OSError):  # it is a file
            fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL)
