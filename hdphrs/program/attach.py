"""How a program gets its node, shares it, and parts with it.

What lives here: the runs of this process, of which the program has one at a time.  Under `hdphrs run` the link to the
root node is inherited, and there is never another.  Otherwise the program starts a node of its own with all cores, when
somebody first needs it, and another one when that has been lost (decision 55).

Who has called `spawn` once keeps the program's node until the program ends, or `shutdown`.  An executor takes a `Lease`
of it, and the node ends with the last of these if nobody else needs it.  An executor that wants another number of
schedulers has a run for itself alone, until it can share the program's.
"""

from __future__ import annotations

import atexit
import itertools
import os
import signal
import socket
import threading
from collections.abc import Callable

from hdphrs.api.future import state
from hdphrs.api.port import unattached
from hdphrs.choices import choices
from hdphrs.console import say
from hdphrs.errors import HdphrsError, UsageError
from hdphrs.oom import OomWitness, memory_word
from hdphrs.program.embedded import EmbeddedNode, chosen_cores, settled_cores
from hdphrs.program.port import ProgramPort
from hdphrs.wire.files import out_of_the_way
from hdphrs.wire.local import Link
from hdphrs.wire.settings import PROGRAM_FD_VARIABLE


class Run:
    """A root node that serves this process, and who needs it."""

    def __init__(self, port: ProgramPort, node: EmbeddedNode | None) -> None:
        """`node` is the root's process, if this program has started it."""
        self.port = port
        self.node = node
        self.is_kept = False
        """Whether it stays until the program ends, or `shutdown`."""
        self.leases: list[Lease] = []
        self._is_ready = False
        self._starting = threading.RLock()  # a signal handler may spawn while its thread waits

    def start(self) -> None:
        """Wait until tasks may be spawned; who was interrupted may call it again.

        Raises:
            StartError: the node did not start; the message says why.
        """
        with self._starting:
            if not self._is_ready:
                try:
                    self.port.start()
                except HdphrsError:
                    _drop(self)
                    raise
                self._is_ready = True

    def end(self) -> None:
        """Tell the root that this process has ended, as far as it can know, and see its process off."""
        if self.node is None:
            self.port.close()
        else:
            self.node.end()


class Lease:
    """The part that an executor has in a run."""

    def __init__(self, run: Run, revoke: Callable[[], object]) -> None:
        self.port: ProgramPort = run.port
        self._run = run
        self.revoke: Callable[[], object] = revoke

    def start(self) -> None:
        """Wait until calls may be made.

        Raises:
            StartError: the node did not start; the message says why.
        """
        self._run.start()

    @property
    def cores(self) -> int:
        """Schedulers of its run, there or on their way."""
        return self.port.cores or (chosen_cores() if self._run.node is None else self._run.node.slots)

    @property
    def is_apart(self) -> bool:
        """Whether it is not the program's run."""
        return self._run is not _current

    def end(self) -> None:
        """Nothing is under way: the run ends if nobody else needs it."""
        if _let_go(self):
            self._run.end()

    def kill(self) -> bool:
        """End the run at once, unless somebody else needs it; whether that was done.  What is there is cancelled."""
        if not _let_go(self):
            return False
        self._run.port.give_up(ABANDONED)
        if self._run.node is not None:
            self._run.node.kill()
        return True


ABANDONED = "the executor has been abandoned"
SHUT_DOWN = "hdphrs.shutdown() has ended the run of this task"
ENDED = "spawn: the program has ended, and its node with it"
SHUT_DOWN_ALREADY = (
    "this program has ended its run by hdphrs.shutdown(); "
    "under `hdphrs run` there is one run for each start of a program"
)

_choosing = threading.RLock()
"""Guards the next ones, and who needs which run; nobody waits for a node while he holds it."""
_current: Run | None = None
"""The program's."""
_runs: list[Run] = []
"""This one, and those of executors that have one for themselves."""
_is_watched = False
"""Whether the end of this process, and its forks, are seen to."""
_over: str | None = None
"""Why there is to be no other run."""
_numbers = itertools.count(1)
"""Of runs that executors have for themselves: their tasks have the same paths, and draw other random numbers."""


def attach() -> ProgramPort:
    """The port of this program, which has a node from now on: the one that it has had, unless that was lost.

    Raises:
        StartError: the node did not start; the message says why.
        UsageError: the run that it was started for has been shut down.
    """
    with _choosing:
        run = _choose()
        run.is_kept = True
    run.start()
    return run.port


def lease(slots: int | None, revoke: Callable[[], object]) -> Lease:
    """A part in a run: in the program's, if that has `slots` schedulers, or in one of its own.  It need not be ready.

    Args:
        slots: how many are wanted; None: it matters not.
        revoke: called by `shutdown`, perhaps in another thread; it must have all calls cancelled, and not wait.

    Raises:
        StartError: the system has no room for a node's process.
        UsageError: as `attach`.
    """
    with _choosing:
        run = _choose() if _can_share(slots) else _begin(slots or settled_cores(), next(_numbers))
        taken = Lease(run, revoke)
        run.leases.append(taken)
        return taken


def has_room(slots: int | None) -> bool:
    """Whether the program has a run already, with so many schedulers."""
    run = _current
    if run is None or (run.node is not None and run.port.is_lost):
        return False
    return run.node is None or slots is None or slots <= run.node.slots


def shutdown() -> None:
    """End the program's run, and those of its executors; see `hdphrs.shutdown`."""
    global _current, _over
    with _choosing:
        ending, _runs[:] = list(_runs), []
        if (_current is not None and _current.node is None) or PROGRAM_FD_VARIABLE in os.environ:
            _over = _over or SHUT_DOWN_ALREADY
        _current = None
        if isinstance(state.port, ProgramPort):
            state.port = unattached()
        choices.unsettle()
    for run in ending:
        for taken in run.leases:
            taken.revoke()
        run.port.give_up(SHUT_DOWN)
    for run in ending:
        run.end()


def _can_share(slots: int | None) -> bool:
    """Whether an executor that wants so many schedulers is given a part in the program's run, there or to be begun."""
    if has_room(slots) or _over is not None or PROGRAM_FD_VARIABLE in os.environ:
        return True
    has_one = _current is not None and not _current.port.is_lost
    return not has_one and slots in (None, chosen_cores())


def _choose() -> Run:
    """The program's run, which is begun if there is none."""
    global _current
    if _over is not None:
        raise UsageError(_over)
    run = _current
    if run is not None and run.node is not None and run.port.is_lost:
        _drop(run)
        say(f"{run.node.describe_end()}; the next one starts now")
        run = None
    if run is None:
        run = _current = _inherit() or _begin(settled_cores())
    return run


def _inherit() -> Run | None:
    descriptor = os.environ.pop(PROGRAM_FD_VARIABLE, None)
    if descriptor is None:
        return None
    choices.leave_to_others()
    sock = socket.socket(fileno=out_of_the_way(int(descriptor)))
    witness = OomWitness()

    def describe_loss() -> str:
        why = f"; it may have been killed {memory_word(port.held_bytes)}" if witness.has_risen() else ""
        return f"the root node has died, and every task of the run with it{why}; run the program again"

    port = ProgramPort(Link(sock), describe_loss=describe_loss)
    return _add(port)


def _begin(slots: int, number: int = 0) -> Run:
    node = EmbeddedNode(slots, number)
    return _add(node.port, node)


def _add(port: ProgramPort, node: EmbeddedNode | None = None) -> Run:
    global _is_watched
    run = Run(port, node)
    _runs.append(run)
    if not _is_watched:
        _is_watched = True
        os.register_at_fork(after_in_child=_forget_in_fork)
        atexit.register(_part)
    return run


def _let_go(taken: Lease) -> bool:
    """Whether nobody needs its run any more; whoever calls this is to end it then."""
    global _current
    run = taken._run
    with _choosing:
        if taken in run.leases:
            run.leases.remove(taken)
        if run.is_kept or run.leases or run.node is None or run not in _runs:
            return False
        _runs.remove(run)
        if run is _current:
            _current = None
        return True


def _drop(run: Run) -> None:
    """It has not begun, or has been lost: what is left of its process is cleared away."""
    global _current
    with _choosing:
        if run is _current:
            _current = None
        if run not in _runs:
            return
        _runs.remove(run)
    if run.node is not None:
        run.node.end()


def _forget_in_fork() -> None:
    """A fork has no part in what its parent has; it gets a node of its own if it needs one."""
    global _choosing, _current, _over
    _choosing = threading.RLock()
    left, _runs[:] = list(_runs), []
    for run in left:
        run.port.abandon()
    if isinstance(state.port, ProgramPort):
        state.port = unattached()
    _current, _over = None, None


def _part() -> None:
    """The program ends."""
    global _over
    _over = ENDED
    for run in list(_runs):
        try:
            run.end()
        except KeyboardInterrupt:  # what is left is not waited for
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            for left in _runs:
                if left.node is not None:
                    left.node.kill()
