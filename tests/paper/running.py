"""User code on a cluster of bare cores: tasks call the public API, and greenlets stand for their stacks.

What lives here: a host whose schedulers run real functions, the port that serves them, a cluster that has a program,
and random plays of it.  A task gives way after each spawn, so that anything may happen between two of its steps.
Functions are pickled by reference, which is enough for those of the tests.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from greenlet import getcurrent, greenlet

from hdphrs.api.future import AWAY, DONE, FAILED, Future, state
from hdphrs.api.places import NodeInfo, Roster
from hdphrs.api.port import Bell
from hdphrs.audit.scan import Copy
from hdphrs.audit.violation import Violation
from hdphrs.config import CoreConfig
from hdphrs.explore.cluster import Cluster
from hdphrs.explore.host import Host
from hdphrs.explore.work import CODE, COST_S
from hdphrs.protocol import effects as fx
from hdphrs.protocol import events as ev
from hdphrs.protocol.node import Node
from hdphrs.protocol.tasks import PROGRAM, ROOT, NodeId, Origin, Outcome, Task, TaskRef, Verdict
from tests.protocol.play import Faults, Move, Play, Scene

T = TypeVar("T")


class Running(greenlet):
    """A task, or the program, that has begun."""

    def __init__(self, host: RunningHost, origin: Origin, path: bytes, payload: bytes) -> None:
        super().__init__(self._work)
        self.host = host
        self.origin = origin
        self.path = path
        self.children = 0
        self.waits_for: int | None = None
        """The slot of an empty future."""
        self._payload = payload

    @property
    def ready(self) -> bool:
        """Whether it has something to go on with."""
        return self.waits_for is None or (self.origin, self.waits_for) in self.host.values

    def go_on(self) -> Outcome | None:
        """Run to the next spawn, to an empty future, or to the end; what it ended with."""
        before, state.port = state.port, CorePort()
        try:
            outcome = self.switch()
        finally:
            state.port = before
        assert self.dead == isinstance(outcome, Outcome)
        return outcome if isinstance(outcome, Outcome) else None

    def give_way(self, waits_for: int | None = None) -> None:
        """Called by the task itself."""
        self.waits_for = waits_for
        assert self.parent is not None
        self.parent.switch()
        self.waits_for = None

    def _work(self) -> Outcome:
        function, args = pickle.loads(self._payload)
        try:
            return Outcome(Verdict.VALUE, pickle.dumps(function(*args)), (), COST_S)
        except Exception as error:
            return Outcome(Verdict.RAISED, pickle.dumps(error))


def current() -> Running:
    """The task that calls."""
    me = getcurrent()
    assert isinstance(me, Running)
    return me


class CorePort:
    """The way from user code to the core of its host."""

    is_scheduler: bool = True

    def spawn(
        self, function: Callable[..., T], args: tuple[Any, ...], kwargs: Mapping[str, Any], supervised: bool | None
    ) -> Future[T]:
        return self._make(lambda origin, slot, task: ev.Exported(origin, ((slot, task),)), function, args)

    def place(
        self, node: NodeId, function: Callable[..., T], args: tuple[Any, ...], supervised: bool | None
    ) -> Future[T]:
        return self._make(lambda origin, slot, task: ev.Placed(origin, slot, task, node), function, args)

    def wait(self, future: Future[T]) -> T:
        me = current()
        if (me.origin, future._content) not in me.host.values:
            me.give_way(waits_for=future._content)
        outcome = me.host.values[me.origin, future._content]
        future._content = pickle.loads(outcome.data)
        future._status = DONE if outcome.verdict is Verdict.VALUE else FAILED
        if future._status is FAILED:
            raise future._content
        return future._content  # type: ignore[no-any-return]

    def poll(self, future: Future[Any]) -> bool:
        return (current().origin, future._content) in current().host.values

    def bell(self) -> Bell:
        raise AssertionError("the paper's programs wait for one future at a time")

    def watch(self, future: Future[Any], call: Callable[[], object]) -> None:
        raise AssertionError("the paper's programs watch nothing")

    def unwatch(self, future: Future[Any], call: Callable[[], object]) -> None:
        raise AssertionError("the paper's programs watch nothing")

    def attend(self, future: Future[Any], call: Callable[[], object]) -> None:
        raise AssertionError("the paper's programs watch nothing")

    def want(self, future: Future[Any]) -> None:
        raise AssertionError("the paper's programs watch nothing")

    def filled(self, future: Future[Any]) -> None:
        raise AssertionError("the paper's programs cancel nothing")

    def cancel(self, future: Future[Any]) -> bool:
        raise AssertionError("the paper's programs cancel nothing")

    def export(self) -> None:
        """Every spawn is exported."""

    def topic(self) -> bytes:
        raise AssertionError("no program of the paper searches")

    def key(self) -> bytes:
        raise AssertionError("the paper's programs draw no random numbers")

    def aside(self) -> AbstractContextManager[None]:
        raise AssertionError("the paper's programs know how many tasks they make")

    def tell(self, topic: bytes, rank: float, find: object) -> None:
        raise AssertionError("no program of the paper searches")

    def best(self, topic: bytes) -> tuple[float, Any] | None:
        raise AssertionError("no program of the paper searches")

    @property
    def roster(self) -> Roster:
        return Roster(NodeInfo(node, f"host{node}", 1) for node in current().host.core.live_nodes())

    def run(self, main: Callable[..., T], args: tuple[Any, ...]) -> T:
        return main(*args)

    def _make(
        self, event: Callable[[Origin, int, Task], ev.Event], function: Callable[..., T], args: tuple[Any, ...]
    ) -> Future[T]:
        me = current()
        future: Future[T] = Future()
        future._function = None
        future._content = me.host.next_slot(me.origin)
        future._status = AWAY
        path = b"%s.%d" % (me.path, me.children)
        me.children += 1
        task = Task(function.__name__, path, CODE, pickle.dumps((function, args)))
        me.host.effects += me.host.take(event(me.origin, future._content, task), me.host.now)
        me.give_way()
        return future


@dataclass(slots=True)
class RunningHost(Host):
    """A host whose schedulers run user code."""

    now: float = 0.0
    effects: list[fx.Effect] = field(default_factory=list)
    """Of the step that is being run."""
    running: dict[tuple[Origin, Copy], Running] = field(default_factory=dict)
    values: dict[tuple[Origin, int], Outcome] = field(default_factory=dict)
    """Full futures."""
    made: dict[Origin, int] = field(default_factory=dict)

    def next_slot(self, origin: Origin) -> int:
        """A new future's."""
        self.made[origin] = self.made.get(origin, 0) + 1
        return self.made[origin] - 1

    def run(self, origin: Origin, now: float = 0.0) -> list[fx.Effect]:
        scheduler = self.schedulers[origin]
        copy = next(iter(scheduler.queue))
        spark = scheduler.queue.pop(copy)
        running = self.running.get((origin, copy))
        if running is None:
            running = self.running[origin, copy] = Running(self, origin, spark.task.path, spark.task.payload)
        effects, outcome = self.step(running, now)
        if outcome is not None:
            del self.running[origin, copy]
            effects += self.take(ev.Finished(origin, ((*copy, outcome),)), now)
        elif running.ready:
            scheduler.queue[copy] = spark
        else:
            assert running.waits_for is not None
            scheduler.waiting[copy] = spark, {running.waits_for: None}
        return effects

    def step(self, running: Running, now: float) -> tuple[list[fx.Effect], Outcome | None]:
        """One step of a task or of the program."""
        self.now, self.effects = now, []
        outcome = running.go_on()
        return self.effects, outcome

    def give_back(self, origin: Origin, now: float = 0.0) -> list[fx.Effect]:
        queue = self.schedulers[origin].queue
        copies = tuple(copy for copy in queue if (origin, copy) not in self.running)
        for copy in copies:
            del queue[copy]
        return self.take(ev.GivenBack(origin, copies), now)

    def crash(
        self, origin: Origin, running: Copy | None, *, blameless: bool, read_of: bytes = b"", now: float = 0.0
    ) -> list[fx.Effect]:
        self.running = {key: one for key, one in self.running.items() if key[0] != origin}
        return Host.crash(self, origin, running, blameless=blameless, read_of=read_of, now=now)

    def _cancel(self, origin: Origin, copies: tuple[Copy, ...]) -> None:
        """A task that lost against its double does not listen, and runs to its end, which is dropped."""
        self.schedulers[origin].hungry = False

    def _fill(self, origin: Origin, slot: int, outcome: Outcome) -> None:
        if self.awaited.pop((origin, slot), None) is None:
            raise Violation(3, f"future {self.core.me}.{origin}.{slot} is filled a second time")
        self.values[origin, slot] = outcome
        if origin == PROGRAM:
            return
        scheduler = self.schedulers[origin]
        scheduler.hungry = False
        for copy, (parent, slots) in list(scheduler.waiting.items()):
            if slot in slots:
                del scheduler.waiting[copy]
                scheduler.queue[copy] = parent


class RunningCluster(Cluster):
    """A cluster that runs a program: `function(*args)`, on the root."""

    def __init__(self, nodes: int, config: CoreConfig, function: Callable[..., Any], *args: object) -> None:
        super().__init__(nodes, config=config, choose=None)
        root = self.hosts[ROOT]
        assert isinstance(root, RunningHost)
        self.main = Running(root, PROGRAM, b"", pickle.dumps((function, args)))
        self.result: Outcome | None = None

    def _add(self, core: Node, node: NodeId) -> Host:
        host = self.hosts[node] = RunningHost(core)
        return host

    @property
    def main_is_ready(self) -> bool:
        """Whether the program can go on."""
        return self.result is None and self.main.ready

    def go_on(self) -> None:
        """One step of the program."""
        effects, self.result = self.main.host.step(self.main, self.now)
        for (origin, slot), path in self.main.host.awaited.items():
            if origin == PROGRAM:
                self.spawned[TaskRef(ROOT, PROGRAM, slot)] = path
        self._carried(ROOT, effects)

    def end(self) -> Outcome:
        """No more faults: the program ends, and so do the tasks that it did not wait for."""
        while self.result is None:
            if not self.main_is_ready:
                self.finish()
            self.go_on()
        self.finish()
        return self.result


class ProgramPlay(Play):
    """A random play of a program."""

    def __init__(self, faults: Faults, nodes: int, function: Callable[..., Any], *args: object) -> None:
        bounds = CoreConfig(guards_max=2, fish_max=2, want_max=3, start_max=1, parked_max=2)
        config = replace(bounds, speculate=True, siblings_min=1, straggler_s=0.0, straggler_ratio=0.0)
        self.program = RunningCluster(nodes, config, function, *args)
        self.cluster = self.program
        self.faults = faults
        self.scene = Scene(nodes)
        self.program.up(0)

    def moves(self) -> list[Move]:
        return super().moves() + [self.program.go_on] * (8 * self.program.main_is_ready)

    def end(self, numbers: Iterable[int]) -> Outcome:
        """Make one move for each number, then let the program end without further faults."""
        for number in numbers:
            moves = self.moves()
            moves[number % len(moves)]()
        return self.program.end()
