"""How deep spawned calls nest: as deep as plain calls of the program may, wherever they run."""

from __future__ import annotations

from typing import Final

FRAMES_PER_CALL: Final = 4
"""A spawned call takes up to so many frames where a plain one takes one: the function, `get`, its isolation, and the
counter of the C stack."""

FRAMES_OF_OURS: Final = 1000
"""Below the first task, and for what a task calls at its end."""

SEQUENTIAL: Final = 8
"""In sequential mode it always takes three, in a scheduler mostly fewer: with as many times the limit, calls nest as
deep there as here.  More would let the calls that C code makes overflow the usual stack of a program."""

LIMIT_MAX: Final = 2**31 - 1
"""The interpreter takes no larger one."""


def deep(recursion_limit: int) -> int:
    """The recursion limit with which spawned calls nest as deep as plain ones do with this."""
    return min(FRAMES_PER_CALL * recursion_limit + FRAMES_OF_OURS, LIMIT_MAX)


def sequentially_deep(recursion_limit: int) -> int:
    """The same for sequential mode."""
    return min(SEQUENTIAL * recursion_limit, LIMIT_MAX)
