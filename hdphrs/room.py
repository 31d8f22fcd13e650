"""No room for another process or thread: told from other errors, and waited for.

What lives here: which errors mean that there is no room at this moment (a bound on processes, on memory or on open
files has been reached, perhaps by what tasks have started); and trying again after growing pauses.  What does not:
where a process must not block meanwhile (`hdphrs/node/starts.py`, `hdphrs/node/threads.py`).
"""

from __future__ import annotations

import _thread
import errno
import resource
import threading
from collections.abc import Callable
from time import monotonic, sleep
from typing import Final, TypeVar

from hdphrs.console import say

T = TypeVar("T")

PAUSE_MIN_S: Final = 0.05
PAUSE_MAX_S: Final = 2.0
"""Between two attempts: the first and the longest."""

PATIENCE_S: Final = 10.0
"""How long something is waited for without which a run cannot begin."""

NO_ROOM_STATUS: Final = 75
"""Exit status of a scheduler that has found no room for what it needs before it is ready (EX_TEMPFAIL)."""

EXHAUSTED: Final = {errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM}
"""There is room for no connection more."""

_NO_ROOM: Final = {errno.EAGAIN, errno.ENOMEM, errno.EMFILE, errno.ENFILE}
_NO_THREAD: Final = "can't start new thread"
"""How Python says so; it does not say why."""


def lacks_room(error: BaseException) -> bool:
    """Whether a process or thread could not be started because there is no room for it at this moment."""
    if isinstance(error, OSError):
        return error.errno in _NO_ROOM
    return isinstance(error, MemoryError) or (isinstance(error, RuntimeError) and _NO_THREAD in str(error))


def lack_of(error: BaseException) -> str:
    """What is lacking, in a few words, and what to do about it."""
    if isinstance(error, OSError):
        return how_exhausted(error)
    return str(error) or type(error).__name__


def how_exhausted(error: OSError) -> str:
    """What is lacking, and what to do about it."""
    how = error.strerror or str(error)
    if error.errno == errno.EAGAIN:
        return f"{how}: raise `ulimit -u`, or run fewer processes"
    if error.errno != errno.EMFILE:
        return how
    return f"{how}: this process may have {resource.getrlimit(resource.RLIMIT_NOFILE)[0]}, raise `ulimit -n`"


def longer(pause_s: float) -> float:
    """The pause after this one."""
    return min(PAUSE_MAX_S, pause_s * 2)


def say_no_room(what: str, error: BaseException) -> None:
    """Tell the user that `what`, such as "another process", is waited for."""
    say(f"no room for {what} on this host ({lack_of(error)}); trying again")


def wait_for_room(start: Callable[[], T], what: str, within_s: float = PATIENCE_S) -> T:
    """Call `start` until there is room; blocks.  That this process has too many files open is not waited for: nothing
    but this process changes that.

    Args:
        start: starts a process or thread, or raises.
        what: such as "another process".
        within_s: how long to try.

    Raises:
        OSError, RuntimeError, MemoryError: what `start` has raised last; at once if it is not for want of room.
    """
    end_s = monotonic() + within_s
    pause_s = PAUSE_MIN_S
    said = False
    while True:
        try:
            return start()
        except (OSError, RuntimeError, MemoryError) as error:
            is_own_bound = isinstance(error, OSError) and error.errno == errno.EMFILE
            if is_own_bound or not lacks_room(error) or monotonic() + pause_s > end_s:
                raise
            if not said:
                said = True
                say_no_room(what, error)
        sleep(pause_s)
        pause_s = longer(pause_s)


class OwnThread:
    """A daemon thread that `threading.enumerate` does not show: a program may wait for all that this shows.  No code of
    the user's runs in it."""

    def __init__(self, target: Callable[[], object], name: str) -> None:
        """Start it with `start`; `name` is for people who read the code."""
        self.name = name
        self.ident: int | None = None
        self._target = target
        self._running = _thread.allocate_lock()

    def start(self) -> None:
        """Begin.

        Raises:
            RuntimeError: there is no room for a thread.
        """
        self._running.acquire()
        try:
            self.ident = _thread.start_new_thread(self._run, ())
        except BaseException:
            self._running.release()
            raise

    def join(self) -> None:
        """Wait until it has ended."""
        with self._running:
            pass

    def _run(self) -> None:
        try:
            self._target()
        finally:
            self._running.release()


def start_thread(thread: threading.Thread | OwnThread, within_s: float = PATIENCE_S) -> None:
    """Start a thread as soon as there is room; blocks.

    Raises:
        RuntimeError: there was none in that time.
    """
    wait_for_room(thread.start, "another thread", within_s)


def try_to_start(thread: threading.Thread | OwnThread) -> bool:
    """Start a thread if there is room; whether there was."""
    try:
        thread.start()
    except (RuntimeError, MemoryError) as error:
        if not lacks_room(error):
            raise
        return False
    return True
