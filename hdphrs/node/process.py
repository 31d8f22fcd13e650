"""One scheduler process: its start and its end.

What lives here: nothing that needs trio, so that schedulers can be started before the node has imported it.  A node
that begins forks them; one that is at work, and has threads, starts new processes (decision 28).
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from io import FileIO
from typing import NoReturn

from hdphrs.node.fork import Fork, become
from hdphrs.node.tracker import tracker
from hdphrs.room import NO_ROOM_STATUS
from hdphrs.wire.interpreter import interpreter_options
from hdphrs.wire.page import Line, Page
from hdphrs.wire.settings import PATH_VARIABLE, NodeSettings, Streams
from hdphrs.wire.stacks import room_for_children

MODULE = "hdphrs.scheduler"


class SchedulerProcess:
    """A started process and the node's ends of its two links, of its tray and of its standard streams."""

    def __init__(
        self,
        page: Page,
        number: int,
        mode: str,
        memory_bytes_max: int | None,
        *,
        ledger: bool = False,
        path: tuple[str, ...] = (),
        prefixed: Streams = Streams.NONE,
        explain: bool = False,
        contexts: bool = True,
        on_fork: Callable[[], None] | None = None,
    ) -> None:
        """Start it.

        Args:
            number: its line of the page.
            mode: "reliable" or "unreliable", the mode of the run.
            memory_bytes_max: what it may allocate; None for all there is.
            ledger: whether its tasks have memos.
            path: where the program's modules are.
            prefixed: which of its standard streams are for the program.
            explain: whether it is to look at each spawn.
            contexts: whether each task has a context of its own.
            on_fork: it is forked, and calls this first; only as long as this process has one thread.

        Raises:
            OSError: it cannot be started; nothing of it is left.
        """
        self.number = number
        self.line: Line = page.line(number)
        self.line.clear()
        self.work: socket.socket
        self.control: socket.socket
        self.tray: FileIO
        self.errors: int
        self.output: int | None = None
        with ExitStack() as ours, ExitStack() as passed:
            self.work, theirs = _both(socket.socketpair(), ours, passed)
            self.control, theirs_control = _both(socket.socketpair(), ours, passed)
            self.control.setblocking(False)
            tray, their_tray = _pipe(ours, passed)
            for end in (tray, their_tray):
                os.set_blocking(end, False)
            self.errors, their_errors = _pipe(ours, passed)
            their_output: int | None = None
            if prefixed is Streams.BOTH:
                self.output, their_output = _pipe(ours, passed)
            descriptors = [theirs.fileno(), theirs_control.fileno(), their_tray, page.descriptor, tracker.writing]
            asked = [int(ledger), memory_bytes_max or 0, int(prefixed), int(explain), int(contexts)]
            arguments = [page.lines, number, mode, *asked, *descriptors]
            words = [str(argument) for argument in arguments]
            self.process: subprocess.Popen[bytes] | Fork
            if on_fork is not None:
                self.process = _fork(
                    on_fork, partial(become, [MODULE], descriptors, their_output, their_errors), words, path
                )
            else:
                with room_for_children():
                    self.process = subprocess.Popen(
                        [sys.executable, *interpreter_options(), "-m", MODULE, *words],
                        stdin=subprocess.DEVNULL,
                        stdout=their_output,
                        stderr=their_errors,
                        pass_fds=descriptors,
                        env=os.environ | {"PYTHONSAFEPATH": "1", PATH_VARIABLE: os.pathsep.join(path)},
                    )
            ours.pop_all()
        self.tray = FileIO(tray)

    @property
    def pid(self) -> int:
        """Its process id."""
        return self.process.pid

    def status(self) -> int | None:
        """Its exit status if it has ended, -N if signal N ended it; it is not reaped."""
        known = self.process.returncode
        if known is not None or not hasattr(os, "waitid"):
            return known
        try:
            ended = os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        except ChildProcessError:  # somebody else reaps it just now
            return None
        if ended is None:
            return None
        return ended.si_status if ended.si_code == os.CLD_EXITED else -ended.si_status

    def how_it_ended(self) -> str:
        """For people; it must have been waited for."""
        status = self.process.returncode
        assert status is not None
        if status == NO_ROOM_STATUS:
            return "has no room: raise `ulimit -n` or `ulimit -u`, or have its tasks use less"
        if status >= 0:
            return f"exited with status {status}"
        try:
            return f"was killed by {signal.Signals(-status).name}"
        except ValueError:
            return f"was killed by signal {-status}"

    def kill(self) -> None:
        """End it, whatever it does, reap it, and close our ends."""
        if self.process.returncode is None:
            self.process.kill()
        self.process.wait()
        self.work.close()
        self.control.close()
        self.tray.close()


def _both(
    pair: tuple[socket.socket, socket.socket], ours: ExitStack, passed: ExitStack
) -> tuple[socket.socket, socket.socket]:
    return ours.enter_context(pair[0]), passed.enter_context(pair[1])


def _pipe(ours: ExitStack, passed: ExitStack) -> tuple[int, int]:
    reading, writing = os.pipe()
    ours.callback(os.close, reading)
    passed.callback(os.close, writing)
    return reading, writing


def _fork(first: Callable[[], None], then: Callable[[], None], words: Sequence[str], path: Sequence[str]) -> Fork:
    import hdphrs.scheduler.hub  # noqa: F401 - most of it is needed here too, and the copies have it then
    from hdphrs.scheduler.process import serve

    node = os.getpid()

    def live() -> NoReturn:
        first()
        then()
        serve(words, path, node)

    return Fork(live)


def start_scheduler(page: Page, number: int, settings: NodeSettings, *, forked: bool = False) -> SchedulerProcess:
    """Start the scheduler of one core.

    Raises:
        OSError: it cannot be started.
    """
    mode = "reliable" if settings.reliable else "unreliable"
    return SchedulerProcess(
        page,
        number,
        mode,
        settings.memory_bytes_max,
        ledger=settings.ledger,
        path=settings.program_path,
        prefixed=settings.prefixed,
        explain=settings.explain,
        contexts=settings.contexts,
        on_fork=settings.forget_secrets if forked else None,
    )
