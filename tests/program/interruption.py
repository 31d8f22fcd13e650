"""Raises in a signal handler at the so-many-th point of our code where the interpreter looks for signals."""

from __future__ import annotations

import dis
import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

import hdphrs

POINTS = {"CALL", "CALL_KW", "CALL_FUNCTION_EX", "RESUME", "JUMP_BACKWARD"}
"""After these instructions the interpreter looks for signals."""

PACKAGE = os.path.dirname(hdphrs.__file__) + os.sep


class LateError(Exception):
    """An `Exception`, as those who limit the time of something raise it."""


@contextmanager
def handler() -> Iterator[None]:
    """Of the signal that `interrupted` sends."""

    def late(number: int, frame: FrameType | None) -> None:
        raise LateError

    before = signal.signal(signal.SIGUSR1, late)
    try:
        yield
    finally:
        signal.signal(signal.SIGUSR1, before)


def interrupted(work: Callable[[], object], at: int, also: str = "") -> bool:
    """Run this, and have the handler raise at this point, counted from 1; whether it came to that.

    Args:
        also: the file of code of the user's that counts as ours.
    """
    points = 0
    last: dict[FrameType, tuple[str, int]] = {}

    def trace(frame: FrameType, event: str, arg: object) -> Any:
        nonlocal points
        name = frame.f_code.co_filename
        if not name.startswith(PACKAGE) and name != also:
            return None
        frame.f_trace_opcodes = True
        if event == "opcode":
            here = frame.f_lasti
            before, offset = last.get(frame, ("", -1))
            last[frame] = dis.opname[frame.f_code.co_code[here]], here
            # Python 3.12 does not tell of the end of a `for`, to which its loop jumps back: after it nobody looks.
            points += before in POINTS and (before != "JUMP_BACKWARD" or here < offset)
            if points == at:
                sys.settrace(None)
                signal.raise_signal(signal.SIGUSR1)
        return trace

    def in_a_generator() -> Iterator[object]:
        """Which has exceptions of its own that it handles: one that a trace function raises in the midst of an `except`
        stays there as handled."""
        yield work()

    sys._getframe().f_trace_opcodes = True  # Python 3.12 looks, while it begins, whether any frame has this
    sys.settrace(trace)
    try:
        next(in_a_generator())
    except LateError:
        return True
    finally:
        sys.settrace(None)
    return points >= at
