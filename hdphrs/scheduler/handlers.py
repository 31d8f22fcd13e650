"""Signal handlers that tasks have installed, in a process in which several tasks take turns, and we between them.

What lives here: whose handler runs, and when (decisions 39 and 49).  What does not: alarms (`alarms.py`).

Theory of operation
-------------------

Python calls a handler between any two instructions, so it may run in our own code, which is half through with something
then, or in a task that has nothing to do with it.  So each task has handlers of its own, as if it had a process of its
own: `signal.signal` remembers whose they are, and installs `_handle` for all.

A signal is for the task that runs, if that has a handler for it, else for all that have; an alarm is for the task that
has set it.  The handler runs at once if code of that task runs.  If not, because another task has the core, a child in
place included, or code of ours runs, it runs as soon as code of that task runs again: a thread has the main one look
every millisecond or so, and each spawn or get that waits does.  If the task ends before, one line says so.

A handler that no live task has installed, but a module or a task that has ended, runs at once.  What it raises is
nobody's, and is dropped with one line; only Ctrl-C is for whichever task runs.
"""

from __future__ import annotations

import _thread
import os
import signal
import sys
import threading
from collections.abc import Callable, Mapping
from opcode import opmap
from time import sleep
from types import CodeType, FrameType
from typing import Any, Final

from hdphrs.api import future as fast
from hdphrs.api.future import Future
from hdphrs.console import say
from hdphrs.errors import UsageError
from hdphrs.scheduler.alarms import Alarms
from hdphrs.scheduler.end import outlast
from hdphrs.scheduler.notice import notice
from hdphrs.wire.signals import handling
from hdphrs.wire.values import reason

PACKAGE: Final = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep

AS_THE_USERS: Final = tuple(PACKAGE + name for name in ("skeletons" + os.sep, "executor" + os.sep, "joblib.py"))
"""What here is written as tasks are, and may be left anywhere."""

CALL_TASKS: Final = frozenset(
    {
        "get",
        "Isolation.call",
        "Isolation.run",
        "Hub._call",
        "Bundles._run",
        "TaskPort.run",
        "Timed.__call__",
        "Strands.run_in_place",
    }
)
"""Functions of ours that call code of a task, where they unfold its arguments, and expect anything of it."""

ENDED: Final = (
    "the task that has installed it has ended; to limit a task, use @hdphrs.task(timeout=...), and to limit a wait, "
    "future.get(timeout=...)"
)
"""Why something is dropped, mostly."""

AGAIN_S: Final = 1e-3
"""After so long it is looked whether a task's own code runs, if one runs that something is held for."""

LOOK_S_MAX: Final = 0.05
"""And after so long at most whether that task runs, or has ended."""

AGAIN: Final[int] = getattr(signal, "SIGRTMAX", signal.SIGURG)
"""Stands for a signal whose exception is held; nobody sends it."""

NO_HANDLER: Final = "an alarm rang for this task, which has installed no handler for SIGALRM"

_set, _get = signal.signal, signal.getsignal
interrupt: Callable[[int], None] = _thread.interrupt_main  # type: ignore[assignment]  # the stub wants a constant


class Handlers:
    """Those of one scheduler."""

    def __init__(self, has_ended: Callable[[Future[Any]], bool]) -> None:
        """`has_ended` tells whether a task has."""
        self.held: list[tuple[Future[Any], int]] = []
        """Tasks, and the signals whose handlers they have still to run, in the order of their arrival."""
        self._has_ended = has_ended
        self._installed: dict[int, dict[Future[Any] | None, Any]] = {}
        """By signal and task, the handlers; None for ours."""
        self._base: dict[int, Any] = {}
        """By signal, what there was before any task."""
        self._alarms = Alarms(has_ended)
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
        self._alarms.install(self._expect_alarms)
        if _get(signal.SIGINT) is signal.default_int_handler:
            self.signal(signal.SIGINT, signal.default_int_handler)
        _set(AGAIN, self._handle)
        notice.of_items.append(self)
        os.register_at_fork(after_in_child=self._fork)

    def signal(self, signalnum: int, handler: Any) -> Any:
        """`signal.signal`."""
        before = self.getsignal(signalnum)
        number, task = int(signalnum), fast.here.task
        known = self._installed.get(number, {})
        mine = {one: its for one, its in known.items() if one is None or one is task or not self._has_ended(one)}
        if not callable(handler) and not mine.keys() - {task}:
            _set(number, outlast if handler == signal.SIG_DFL and number == signal.SIGTERM else handler)
            self._installed.pop(number, None)
            return before
        if task is not None:
            notice.variables()
        if _get(number) != self._handle:
            self._base[number] = _get(number)
        self._installed[number] = {**mine, task: handler}  # first: the signal may come at once
        try:
            _set(number, self._handle)
        except BaseException:
            self._installed[number] = known
            raise
        return before

    def getsignal(self, signalnum: int) -> Any:
        """`signal.getsignal`: the handler of the running task, or else what there was before any task."""
        handler = _get(signalnum)
        if handler != self._handle:
            return _shown(handler)
        number = int(signalnum)
        installed = self._installed.get(number, {})
        task = fast.here.task
        return _shown(installed.get(task if task in installed else None, self._base.get(number, signal.SIG_DFL)))

    # ---- between the items of one task -----------------------------------------------------------------------

    def set_aside(self) -> Any:
        """See `hdphrs.contexts.aspects.Aspect`: the running task's handlers, and its alarm."""
        task = fast.here.task
        mine = {number: of.pop(task) for number, of in self._installed.items() if task in of}
        return mine, self._alarms.set_aside(task)

    def put_back(self, before: Any) -> None:
        """See `Aspect`."""
        self.clear()
        mine, alarm = before
        for number, handler in mine.items():
            self._installed[number][fast.here.task] = handler
        self._alarms.put_back(fast.here.task, alarm)

    def clear(self) -> None:
        """See `Aspect`."""
        self.set_aside()

    def rebase(self) -> None:
        """See `Aspect`; a task begins without handlers."""

    # ---- signals ---------------------------------------------------------------------------------------------

    def check(self) -> None:
        """In code of ours, where a task may be left.

        Raises:
            BaseException: what a handler raises that is this task's.
        """
        task = fast.here.task
        for one in list(self.held):
            if task is one[0] and self._take(one):
                self._call(*one, sys._getframe(1))

    def look(self) -> None:
        """Drop what is held for tasks that have ended."""
        for one in list(self.held):
            owner, number = one
            if self._has_ended(owner) and self._take(one):
                say(f"dropped {signal.Signals(number).name}: {ENDED}")

    def _handle(self, number: int, frame: FrameType | None) -> None:
        """Stands for the handlers of all signals."""
        installed = self._installed.get(number, {})
        task = fast.here.task
        if number == AGAIN and not installed:
            if is_of_a_task(frame):
                self.check()
            return
        if self._forked:
            handler = installed.get(task if task in installed else None)
            if callable(handler):
                handler(number, frame)
            return
        rung = self._alarms.due() if number == signal.SIGALRM else []
        if rung:
            wanted = rung
        elif task is not None and task in installed:
            wanted = [task]
        else:
            wanted = [one for one in installed if one is not None and not self._has_ended(one)]
        for one in wanted:
            if one is not None and one is not task:
                self._hold(one, number)
        if task is not None and (task in wanted or (not wanted and installed.get(None) is not None)):
            if not is_of_a_task(frame):
                self._hold(task, number)
            else:
                self._call(task, number, frame)
        elif not wanted:
            self._call_for_nobody(number, frame, installed)

    def _call(self, task: Future[Any], number: int, frame: FrameType | None) -> None:
        """Run the handler of a task, whose code runs."""
        installed = self._installed.get(number, {})
        handler = installed.get(task if task in installed else None)
        if callable(handler):
            handler(number, frame)
        elif number == signal.SIGALRM and handler is not signal.SIG_IGN:
            raise UsageError(NO_HANDLER)

    def _call_for_nobody(
        self, number: int, frame: FrameType | None, installed: Mapping[Future[Any] | None, Any]
    ) -> None:
        """Run the handler that was installed last, or ours; what it raises harms nobody."""
        for handler in reversed(installed.values()):  # type: ignore[call-overload]
            if callable(handler):
                try:
                    handler(number, frame)
                except BaseException as error:
                    why = "no task runs here" if installed.keys() == {None} else ENDED
                    say(f"dropped what a signal handler has raised ({reason(error)}): {why}")
                return

    def _hold(self, task: Future[Any], number: int) -> None:
        """Its handler runs later; once, however often the signal comes until then."""
        if (task, number) in self.held:
            return
        self.held.append((task, number))
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
            if any(owner is task for owner, _ in list(self.held)):
                pause_s = AGAIN_S
                interrupt(AGAIN)
            else:
                pause_s = min(2 * pause_s, LOOK_S_MAX)
            with self._starting:
                self._repeats = bool(self.held)

    def _take(self, one: tuple[Future[Any], int]) -> bool:
        """Whether it is still held, and from now on no more: the other thread may have been faster."""
        try:
            self.held.remove(one)
        except ValueError:
            return False
        return True

    def _expect_alarms(self) -> None:
        """A task has set an alarm, perhaps before its handler."""
        if _get(signal.SIGALRM) != self._handle:
            self._base[signal.SIGALRM] = _get(signal.SIGALRM)
            _set(signal.SIGALRM, self._handle)

    def _fork(self) -> None:
        """A child of a task has no tasks."""
        self._forked = True
        self.held.clear()


def _shown(handler: Any) -> Any:
    """What a task sees in the place of a handler: of ours it need know nothing."""
    return signal.SIG_DFL if handler is outlast else handler


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
