"""Signal handlers that tasks have installed, in a process in which several tasks take turns, and we between them.

What lives here: a handler runs at once, wherever the main thread is; but what it raises gets only where it can do no
harm (decision 39).

Theory of operation
-------------------

Python calls a handler between any two instructions, so what it raises may come out of our own code, which is half
through with something then, or out of a task that has nothing to do with it.  So `signal.signal` installs `_handle` in
the place of a handler.  That lets an exception through where code of a task runs, and this is the task that has
installed the handler, or one that it has spawned.  Else the exception is held: it is raised when such code runs, by a
thread that has the handler called again, or at the next spawn or get that waits.  If the task ends before, one line
says that it was dropped, and so it is if our own code runs, and for no task that could be told.

If the task that has installed a handler has ended, or it was none, whichever task runs gets what the handler raises.
"""

from __future__ import annotations

import _thread
import os
import signal
import threading
from collections.abc import Callable
from opcode import opmap
from time import sleep
from types import CodeType, FrameType
from typing import Any, Final

from hdphrs.api import future as fast
from hdphrs.api.future import Future
from hdphrs.console import say
from hdphrs.scheduler.assigned import is_below
from hdphrs.scheduler.end import outlast
from hdphrs.wire.signals import handling
from hdphrs.wire.values import reason

PACKAGE: Final = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep

AS_THE_USERS: Final = tuple(PACKAGE + name for name in ("skeletons" + os.sep, "executor" + os.sep, "joblib.py"))
"""What here is written as tasks are, and may be left anywhere."""

CALL_TASKS: Final = frozenset(
    {
        "get",
        "Hub._call",
        "Bundles._run",
        "TaskPort.run",
        "Timed.__call__",
        "Strands.run_in_place",
    }
)
"""Functions of ours that call code of a task, where they unfold its arguments, and expect anything of it."""

HELD_MAX: Final = 16
"""Exceptions that wait; what comes then is dropped."""

ENDED: Final = (
    "the task that has installed it has ended; to limit a task, use @hdphrs.task(timeout=...), and to limit a wait, "
    "future.get(timeout=...)"
)
"""Why an exception is dropped, mostly."""

AGAIN_S: Final = 1e-3
"""After so long it is looked whether a task's own code runs, if one runs that something is held for."""

LOOK_S_MAX: Final = 0.05
"""And after so long at most whether that task runs, or has ended."""

AGAIN: Final[int] = getattr(signal, "SIGRTMAX", signal.SIGURG)
"""Stands for a signal whose exception is held; nobody sends it."""

_set, _get = signal.signal, signal.getsignal
interrupt: Callable[[int], None] = _thread.interrupt_main  # type: ignore[assignment]  # the stub wants a constant


class Handlers:
    """Those of one scheduler."""

    def __init__(self, has_ended: Callable[[Future[Any]], bool]) -> None:
        """`has_ended` tells whether a task has."""
        self.held: list[tuple[Future[Any], BaseException]] = []
        """With the task that they are for, in the order in which they were raised."""
        self._has_ended = has_ended
        self._installed: dict[int, tuple[Any, Future[Any] | None]] = {}
        """By signal, the handler that a task has installed, and which."""
        self._starting = threading.RLock()
        """Guards the next one; a handler may be called in the midst of another one."""
        self._repeats = False
        """Whether the thread runs."""
        self._forked = False

    def install(self) -> None:
        """From now on, in this process; what hdphrs has installed before stays as it is."""
        handling.waits = True
        signal.signal = self.signal
        signal.getsignal = self.getsignal
        if _get(signal.SIGINT) is signal.default_int_handler:
            self.signal(signal.SIGINT, signal.default_int_handler)
        _set(AGAIN, self._handle)
        os.register_at_fork(after_in_child=self._fork)

    def signal(self, signalnum: int, handler: Any) -> Any:
        """`signal.signal`."""
        before = self.getsignal(signalnum)
        number = int(signalnum)
        if not callable(handler):
            _set(number, outlast if handler == signal.SIG_DFL and number == signal.SIGTERM else handler)
            return before
        known = self._installed.get(number)
        self._installed[number] = handler, fast.here.task  # first: the signal may come at once
        try:
            _set(number, self._handle)
        except BaseException:
            if known is not None:
                self._installed[number] = known
            raise
        return before

    def getsignal(self, signalnum: int) -> Any:
        """`signal.getsignal`."""
        handler = _get(signalnum)
        if handler == self._handle:
            return self._installed.get(int(signalnum), (signal.SIG_DFL, None))[0]
        return signal.SIG_DFL if handler is outlast else handler  # of that tasks need know nothing

    def check(self) -> None:
        """In code of ours, where a task may be left.

        Raises:
            BaseException: what a handler has raised that is this task's.
        """
        task = fast.here.task
        for one in list(self.held):
            owner, error = one
            if task is not None and self._concerns(owner, task) and self._take(one):
                raise error

    def look(self) -> None:
        """Drop what is held for tasks that have ended."""
        for one in list(self.held):
            owner, error = one
            if self._has_ended(owner) and self._take(one):
                self._drop(error, ENDED)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        """Stands for the handlers of all signals."""
        if number == AGAIN and AGAIN not in self._installed:
            if is_of_a_task(frame):
                self.check()
            return
        handler, owner = self._installed[number]
        if self._forked:
            handler(number, frame)
            return
        task = fast.here.task
        owner = None if owner is None or self._has_ended(owner) else owner
        is_concerned = task is not None and self._concerns(owner, task)
        if is_concerned and is_of_a_task(frame):
            handler(number, frame)
            return
        try:
            handler(number, frame)
        except BaseException as error:
            whose = task if owner is None else owner
            if whose is None:
                self._drop(error, "no task runs here")
                return
            if len(self.held) >= HELD_MAX:
                self._drop(error, f"{HELD_MAX} others wait for their tasks")
                return
            self.held.append((whose, error))
            with self._starting:
                is_first, self._repeats = not self._repeats, True
            if is_first:
                threading.Thread(target=self._repeat, name="hdphrs-handlers", daemon=True).start()

    def _repeat(self) -> None:
        """In a thread of its own, as long as something is held."""
        pause_s = AGAIN_S
        while self._repeats:
            sleep(pause_s)
            self.look()
            task = fast.here.task
            if task is not None and any(self._concerns(owner, task) for owner, _ in list(self.held)):
                pause_s = AGAIN_S
                interrupt(AGAIN)
            else:
                pause_s = min(2 * pause_s, LOOK_S_MAX)
            with self._starting:
                self._repeats = bool(self.held)

    def _take(self, one: tuple[Future[Any], BaseException]) -> bool:
        """Whether it is still held, and from now on no more: the other thread may have been faster."""
        try:
            self.held.remove(one)
        except ValueError:
            return False
        return True

    def _concerns(self, owner: Future[Any] | None, task: Future[Any]) -> bool:
        """Whether this task may get what a handler of that one raises."""
        return owner is None or owner is task or is_below(task, owner) or self._has_ended(owner)

    def _drop(self, error: BaseException, why: str) -> None:
        say(f"dropped what a signal handler has raised ({reason(error)}): {why}")

    def _fork(self) -> None:
        """A child of a task has no tasks."""
        self._forked = True
        self.held.clear()


def is_of_a_task(frame: FrameType | None) -> bool:
    """Whether in this frame code runs that a task may be left in: its own, called by what expects anything of it."""
    while frame is not None:
        name = frame.f_code.co_filename
        if name.startswith(PACKAGE) and not name.startswith(AS_THE_USERS):
            return frame.f_code.co_qualname in CALL_TASKS and frame.f_lineno in _calling_lines(frame.f_code)
        frame = frame.f_back
    return False


def _calling_lines(code: CodeType) -> set[int | None]:
    """Where it unfolds arguments."""
    unfolds, instructions = opmap["CALL_FUNCTION_EX"], code.co_code
    return {line for start, end, line in code.co_lines() if unfolds in instructions[start:end:2]}
