"""How large the stack of a main thread may become in which tasks run: they may recurse through spawn and get as deep as
plain recursion would.  Only what is used is ever allocated.

What lives here: the bounds.  A process gets that of its main thread from the one that starts it, since how much room
there is for a stack is decided when a program is loaded.
"""

from __future__ import annotations

import resource
from collections.abc import Iterator
from contextlib import contextmanager, suppress

STACK_BYTES = 512 << 20

THREAD_STACK_BYTES = 8 << 20
"""Of other threads, which else get as much as the main thread may."""


def has_room() -> bool:
    """Whether this process was started with as much as it may have, so that those that it forks have it too."""
    soft, hard = resource.getrlimit(resource.RLIMIT_STACK)
    return soft in (hard, resource.RLIM_INFINITY) or soft >= STACK_BYTES


@contextmanager
def room_for_children() -> Iterator[None]:
    """What is started in the block has the room, as far as the system allows."""
    before = resource.getrlimit(resource.RLIMIT_STACK)
    if not has_room():
        with suppress(ValueError, OSError):
            hard = before[1]
            limit = STACK_BYTES if hard == resource.RLIM_INFINITY else min(STACK_BYTES, hard)
            resource.setrlimit(resource.RLIMIT_STACK, (limit, hard))
    try:
        yield
    finally:
        with suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_STACK, before)
