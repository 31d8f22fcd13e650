"""A task that waits in code which is not ours, and holds the main thread: others have it for a moment (decision 50).

What lives here: the signal that has the main thread run the scheduler's loop in the middle of such a wait, and which
waits these are.  What does not: when that is necessary (`completion.py`).

Theory of operation
-------------------

Python calls a handler of a signal in the main thread, also while that waits for a lock, a descriptor or a time; when
the handler returns, the wait goes on with the time that is left.  So the handler can set the task aside as `get` does:
the loop runs what is there for a moment, and then the task waits on.

That must not happen anywhere else: a task is left only where it expects others to get on.
"""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable
from dis import get_instructions
from functools import lru_cache
from types import CodeType, FrameType
from typing import Final

from hdphrs.api import future as fast
from hdphrs.api.port import Bell
from hdphrs.scheduler.handlers import PACKAGE

SLICE: Final[int] = getattr(signal, "SIGRTMAX", signal.SIGURG + 1) - 1
"""The signal; nobody else sends it."""

SLICE_S: Final = 5e-3
"""For how long the loop waits for something to do, before the task waits on."""

WAITING_MODULES: Final = frozenset(
    {"threading", "selectors", "queue", "concurrent.futures._base", "trio._core._io_epoll"}
)
"""Whose frames are looked through for who waits there."""

WAITS: Final = frozenset(
    {"__enter__", "_select", "acquire", "get", "join", "poll", "put", "recv", "select", "sleep", "wait"}
)
"""Functions that wait, as the code calls them which is left in the middle of such a call."""


class Interrupter:
    """That of one scheduler."""

    def __init__(self, bell: Callable[[], Bell]) -> None:
        """`bell` makes a bell for the running task."""
        self._bell = bell
        self._main = 0
        self._is_asked = False
        self._lent = 0

    @property
    def is_lent(self) -> bool:
        """Whether a task waits in other code, and the loop has the main thread for a moment."""
        return self._lent > 0

    def install(self, install: Callable[..., object] = signal.signal) -> None:
        """In the main thread, before tasks run."""
        self._main = threading.get_ident()
        install(SLICE, self._handle)

    def interrupt(self) -> bool:
        """In another thread: have the main one run the loop, if its task waits; whether that was so."""
        frame = sys._current_frames().get(self._main)
        if not self._main or not _waits(frame):
            return False
        self._is_asked = True
        signal.pthread_kill(self._main, SLICE)
        return True

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self._is_asked and fast.here.task is not None and _waits(frame):
            self._is_asked = False
            self._lent += 1
            asyncio = sys.modules.get("asyncio.events")
            # Where tasks are isolated the loop is set aside with all else, and is there when a handler of a task runs.
            loop = asyncio and not fast.isolates and asyncio._get_running_loop()
            try:
                if asyncio and loop:
                    asyncio._set_running_loop(None)  # what runs now may run its own
                self._bell().wait(SLICE_S)
            finally:
                if asyncio and loop:
                    asyncio._set_running_loop(loop)
                self._lent -= 1


def _waits(frame: FrameType | None) -> bool:
    """Whether a task waits here, in code that is not ours.

    To be in a module for waiting is not enough: `Thread.start` has a lock there that the next one wants too, and
    `concurrent.futures.wait` has counted futures that are not to be filled before it waits.
    """
    if frame is None:
        return False
    caller = frame
    while caller.f_globals.get("__name__") in WAITING_MODULES and caller.f_back is not None:
        caller = caller.f_back
    if caller.f_code.co_filename.startswith(PACKAGE):  # it may hold locks that those who go on want too
        return False
    return _is_wait(frame.f_code, frame.f_lasti)


@lru_cache(1024)
def _is_wait(code: CodeType, at: int) -> bool:
    """Whether the instruction there calls a function that waits, as far as the names on its line tell."""
    instructions = list(get_instructions(code))
    number, here = next(((n, one) for n, one in enumerate(instructions) if one.offset == at), (0, None))
    if here is None or here.positions is None:
        return False
    before = instructions[max(number - 1, 0)]
    if here.opname == "BEFORE_WITH" or (before.opname == "LOAD_SPECIAL" and before.argrepr == "__enter__"):
        return True  # of a lock, perhaps; the latter since Python 3.14
    line = here.positions.lineno
    loaded = {
        one.argval
        for one in instructions
        if one.opname.startswith("LOAD_") and one.positions is not None and one.positions.lineno == line
    }
    calls = here.opname.startswith(("CALL", "PRECALL"))  # the latter in Python 3.11, which has called it before often
    return calls and not WAITS.isdisjoint(name for name in loaded if isinstance(name, str))
