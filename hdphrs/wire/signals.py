"""Exceptions that signal handlers raise, wherever the main thread happens to be.

What lives here: telling one that has come between from one that our own work, or the user's code that it calls, has
raised.  Only the former goes through where everything else becomes the outcome of a task.
"""

from __future__ import annotations

from inspect import CO_VARARGS
from itertools import pairwise
from types import FrameType, TracebackType
from typing import Final


class Handling:
    """How this process takes what signal handlers raise."""

    def __init__(self) -> None:
        self.waits: bool = False
        """It never comes out of our own code; only in a scheduler (`hdphrs/scheduler/handlers.py`)."""


handling: Final = Handling()


def came_between(error: BaseException) -> bool:
    """Whether a signal handler has raised this: it is a Ctrl-C, or its traceback passes a signal handler.

    That is a function which was called with a number and the very frame that it was called from, as no other is.  So it
    is recognised though it may have been replaced since.  (What another thread has raised in this one, by
    `PyThreadState_SetAsyncExc`, cannot be told from what the code there has raised.)
    """
    if handling.waits:
        return False
    if isinstance(error, KeyboardInterrupt):
        return True
    traceback: TracebackType | None = error.__traceback__
    while traceback is not None:
        if _handles_signal(traceback.tb_frame):
            return True
        traceback = traceback.tb_next
    return False


def _handles_signal(frame: FrameType) -> bool:
    code, back, values = frame.f_code, frame.f_back, frame.f_locals
    if back is None:
        return False
    given = [values.get(name) for name in code.co_varnames[: code.co_argcount]]
    if code.co_flags & CO_VARARGS:
        given += values.get(code.co_varnames[code.co_argcount + code.co_kwonlyargcount]) or ()
    return any(isinstance(first, int) and second is back for first, second in pairwise(given))
