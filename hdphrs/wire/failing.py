"""Why a process of ours ends by an error that nobody expected: for want of something, or by a mistake of ours.

What lives here: telling one from the other, wherever in groups and causes it is, and the words for it.  What is lacking
is a matter for a line; a mistake is to be reported, with its traceback.
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Iterator
from typing import Final

from hdphrs.console import say
from hdphrs.errors import HdphrsError
from hdphrs.room import EXHAUSTED, how_exhausted, lacks_room

LACKING: Final = EXHAUSTED | {errno.EAGAIN, errno.ENOSPC, errno.EDQUOT}
"""The system, or this process, has no more of something."""

_CAUSES_MAX: Final = 64


def what_is_lacking(error: BaseException) -> str | None:
    """What is lacking and what to do about it, in a few words, if the error has come of that; else None."""
    for cause in _causes(error):
        if isinstance(cause, OSError) and cause.errno in LACKING:
            return how_exhausted(cause)
        if isinstance(cause, MemoryError):
            return "out of memory"
        if isinstance(cause, RuntimeError) and lacks_room(cause):
            return "no room for another thread: raise `ulimit -u`, or run fewer processes"
        if isinstance(cause, ImportError) and os.strerror(errno.EMFILE) in str(cause):  # of a shared library
            return how_exhausted(OSError(errno.EMFILE, os.strerror(errno.EMFILE)))
    return None


def sentence_of(process: str, error: BaseException) -> str:
    """Why this process of ours ends, in one line for people; the traceback of a mistake of ours is printed before.

    Args:
        process: which one that is.
        error: what has come out of it.
    """
    if isinstance(error, HdphrsError):
        return str(error)
    lacking = what_is_lacking(error)
    if lacking is not None:
        return f"{process} ends: {lacking}"
    import traceback  # which takes long

    traceback.print_exception(error)
    sys.stderr.flush()
    return f"{process} ends by a mistake of hdphrs ({type(error).__name__}); please report it, with the lines above"


def tell_end(process: str, error: BaseException) -> None:
    """Say that."""
    say(sentence_of(process, error))


def _causes(error: BaseException) -> Iterator[BaseException]:
    """The error, what it consists of, and what it comes from."""
    waiting: list[BaseException] = [error]
    seen: set[int] = set()
    while waiting and len(seen) < _CAUSES_MAX:
        one = waiting.pop(0)
        if id(one) in seen:
            continue
        seen.add(id(one))
        yield one
        if isinstance(one, BaseExceptionGroup):
            waiting += one.exceptions
        waiting += [other for other in (one.__cause__, one.__context__) if other is not None]
