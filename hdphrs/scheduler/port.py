"""The way from a task that runs in a scheduler to its node.

What lives here: the port (`hdphrs/api/port.py`) of the tasks of this process: what `spawn_at`, `get`, `cancel` and a
spawn that is asked for do.  What does not: how tasks get to run (`hub.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, NoReturn, TypeVar

from hdphrs.api import future as fast
from hdphrs.api.future import AWAY, DONE, FAILED, Future, context_of, name_of
from hdphrs.api.options import options_of, use
from hdphrs.api.places import Roster
from hdphrs.api.port import Bell
from hdphrs.api.seeds import beside
from hdphrs.errors import UsageError
from hdphrs.protocol.paths import child_path
from hdphrs.protocol.tasks import NodeId
from hdphrs.scheduler.assigned import path_of, root_of
from hdphrs.scheduler.completion import Completer
from hdphrs.scheduler.dialogue import Dialogue
from hdphrs.scheduler.export import Exporter
from hdphrs.scheduler.finds import Finds
from hdphrs.scheduler.meter import Meter
from hdphrs.scheduler.note import Noter, plain
from hdphrs.scheduler.stacks import Stacks
from hdphrs.scheduler.stop import Stopper
from hdphrs.scheduler.strands import Strands
from hdphrs.scheduler.timers import Timers
from hdphrs.scheduler.turn import Turn
from hdphrs.scheduler.waiting import TaskBell, Waiting
from hdphrs.wire.code import CodeBook
from hdphrs.wire.page import Line, Reading, label

T = TypeVar("T")

ROOM_S = 0.1
"""How often a task that waits for room looks again: what is away may come to its end unseen, if it is cancelled."""


class TaskPort:
    """That of one scheduler."""

    is_scheduler: bool = True

    def __init__(
        self,
        turn: Turn,
        dialogue: Dialogue,
        exporter: Exporter,
        stopper: Stopper,
        waiting: Waiting,
        stacks: Stacks,
        timers: Timers,
        meter: Meter,
        noter: Noter | None,
        strands: Strands | None,
        finds: Finds,
        roster: Roster,
        book: CodeBook,
        line: Line,
        completer: Completer,
    ) -> None:
        self.roster: Roster = roster
        self._turn = turn
        self._dialogue = dialogue
        self._exporter = exporter
        self._stopper = stopper
        self._waiting = waiting
        self._stacks = stacks
        self._timers = timers
        self._meter = meter
        self._noter = noter
        self._strands = strands
        self._finds = finds
        self._book = book
        self._line = line
        self._completer = completer

    def spawn(
        self,
        function: Callable[..., T],
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
        supervised: bool | None,
    ) -> NoReturn:
        raise UsageError("spawn: this code runs in a scheduler process but belongs to no task")

    def place(
        self, node: NodeId, function: Callable[..., T], args: tuple[Any, ...], supervised: bool | None
    ) -> Future[T]:
        parent = fast.here.task
        if parent is None:
            raise UsageError("spawn_at: this code runs in a scheduler process but belongs to no task")
        self._stopper.check()
        path = child_path(path_of(parent), parent._spawned)
        future = self._finished_before(path, function, args)
        if future is None:
            if self._exporter.held.is_full:
                self._wait_for_room()
            priority = root_of(parent).assigned.spark.task.priority
            future = self._exporter.place(node, function, args, path, supervised, priority)
            future._parent = parent
            if self._strands is not None:
                self._strands.spawned(future)
        parent._spawned += 1
        return future

    def _finished_before(self, path: bytes, function: Callable[..., T], args: tuple[Any, ...]) -> Future[T] | None:
        """The future of a task that was to be placed, if it is among the pieces of the running one."""
        root = self._turn.root
        piece = None if root is None or root.reuse is None else root.reuse.find(path)
        if piece is None:
            return None
        future: Future[T] = Future()
        future._function = None
        if fast.isolates:
            future._context = fast.isolation.snapshot()
        if self._exporter.check(function, args, path, context_of(future)) != piece.check:
            return None
        future._parent = fast.here.task
        self._exporter.fill(future, piece.outcome, label(Reading.VALUE, path, name_of(function)))
        self._meter.credit(future, piece.outcome.cost_s)
        return future

    def bell(self) -> Bell:
        if not self._turn.is_main_thread:
            return self._completer.bell()
        return TaskBell(self._stacks.ready.append, self._turn.suspend, self._stopper.check, self._timers)

    def watch(self, future: Future[Any], call: Callable[[], object]) -> None:
        if not hasattr(future, "_status"):
            self._exporter.finish()  # as in `wait`
            check_spawned(future)
        self._waiting.watch(future, call)
        if not self._turn.is_main_thread:
            self._completer.want(future)

    def attend(self, future: Future[Any], call: Callable[[], object]) -> None:
        self._completer.attend(future, call)

    def want(self, future: Future[Any]) -> None:
        self._completer.want(future)

    def unwatch(self, future: Future[Any], call: Callable[[], object]) -> None:
        self._waiting.unwatch(future, call)

    def filled(self, future: Future[Any]) -> None:
        self._waiting.wake(future)

    def cancel(self, future: Future[Any]) -> bool:
        if not hasattr(future, "_status"):
            self._exporter.finish()  # as in `wait`
            check_spawned(future)
        if getattr(future, "_status", None) is AWAY and self._turn.is_main_thread:
            self._dialogue.receive(block=False)
        status = getattr(future, "_status", None)
        if status is DONE or status is FAILED:
            return False
        if status is not AWAY:
            self._stopper.stop(future)
        elif not self._exporter.cancel(future):
            return False
        self._waiting.wake_all()
        return True

    def wait(self, future: Future[T]) -> T:
        if not self._turn.is_main_thread:
            return self._completer.wait(future)
        self._stopper.check()
        if not hasattr(future, "_status"):
            self._exporter.finish()  # the helper thread may have taken it a moment ago
            if future._function is not None:  # and have put it back
                return fast.get(future)
            check_spawned(future)
        if getattr(future, "_status", None) is AWAY:
            self._dialogue.receive(block=False)
        if self._waiting.enter(future):
            self._turn.suspend()
        self._stopper.check()
        return fast.get(future)

    def poll(self, future: Future[Any]) -> bool:
        if self._turn.is_main_thread:
            self._dialogue.receive(block=False)
        self._completer.want(future)
        return future._status is DONE or future._status is FAILED

    def topic(self) -> bytes:
        parent = fast.here.task
        if parent is None:
            raise UsageError("rng: this code runs in a scheduler process but belongs to no task")
        path = child_path(path_of(parent), parent._spawned)
        parent._spawned += 1
        return path

    def key(self) -> bytes:
        return self._book.chance

    @contextmanager
    def aside(self) -> Iterator[None]:
        parent = fast.here.task
        if parent is None:
            raise UsageError("aside: this code runs in a scheduler process but belongs to no task")
        index = parent._spawned
        parent._spawned = beside(index)
        try:
            yield
        finally:
            parent._spawned = index + 1

    def tell(self, topic: bytes, rank: float, find: object) -> None:
        self._finds.tell(topic, rank, find)

    def best(self, topic: bytes) -> tuple[float, Any] | None:
        if self._turn.is_main_thread:
            self._dialogue.receive(block=False)
        return self._finds.best(topic)

    def run(self, main: Callable[..., T], args: tuple[Any, ...]) -> T:
        return main(*args)

    def export(self) -> None:
        if not self._turn.is_main_thread:
            self._export_for_thread()
            return
        root = self._turn.root
        assert root is not None, "only tasks spawn"
        if self._stopper.stopping:
            self._stopper.check_spawn()
        if root.reuse is not None:
            with suppress(IndexError):  # the helper thread has taken it
                future = fast.sparks[-1]
                if root.reuse.meet(future, root):
                    self._exporter.export_youngest()
        has_left = use.begun and self._exporter.export_marked()
        if self._noter is not None and self._noter.on:
            with suppress(IndexError):
                self._noter.time(fast.sparks[-1])
        if self._strands is not None:
            with suppress(IndexError):
                self._strands.wrap(fast.sparks[-1])
        if root.careful:
            self._exporter.export_new()
            has_left = True
        elif self._line.demand:
            if not self._exporter.pace.is_resting:
                self._dialogue.receive(block=False)
            self._exporter.export()
        if has_left and self._exporter.held.is_full:
            self._wait_for_room()  # at the end: the youngest spark is another one then
        if self._timers.calls or self._turn.is_over:
            self._turn.give_way()  # as well

    def _wait_for_room(self) -> None:
        """The running task wants to send large arguments away, and enough are: wait until half of them are done with.

        The scheduler goes on meanwhile, with what it has been handed too.
        """
        bell = self.bell()
        ring = bell.ring
        watched = self._exporter.large_away()
        try:
            for future in watched:
                self.watch(future, ring)
            while self._exporter.held.is_half_full:
                bell.wait(ROOM_S)
        finally:
            for future in watched:
                self.unwatch(future, ring)

    def _export_for_thread(self) -> None:
        """As `export`, for a thread of a task: the youngest spark of all need not be its own."""
        parent = fast.here.task
        assert parent is not None, "only tasks spawn"
        future = next((one for one in reversed(list(fast.sparks)) if _is_last_of(parent, one)), None)
        if future is None:
            return  # somebody has taken it
        if self._stopper.stopping:
            try:
                self._stopper.check()
            except BaseException:
                fast.take(future)
                raise
        function = future._function
        options = options_of(plain(function)) if use.begun and function is not None else None
        if root_of(parent).assigned.careful or (options is not None and options.stealable):
            self._exporter.export_one(future)
        elif self._line.demand:
            self._exporter.export()


def _is_last_of(parent: Future[Any], spark: Future[Any]) -> bool:
    return spark._parent is parent and spark._index == parent._spawned - 1


def check_spawned(future: Future[Any]) -> None:
    """See that somebody runs this future's task, or will.

    Raises:
        UsageError: nobody can, since its task was spawned with None in the place of the function.
    """
    if future._function is None and not hasattr(future, "_status") and not hasattr(future, "_spawned"):
        raise UsageError("spawn: the first argument is the function, as in spawn(f, x); None is none")
