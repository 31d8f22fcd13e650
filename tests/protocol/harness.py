"""A whole cluster of cores in one process, without clocks, sockets or processes.

What lives here: `Cluster`, which carries out what the cores want.  Between two nodes there is one queue for each
direction; nothing moves by itself, a test says which queue delivers, which scheduler runs, who dies and who notices.
`check` holds the cluster against the invariants:

1. the tracked location covers the true one, and nothing is lost silently;
2. of the newest replica there is one copy that may migrate, at most;
3. a future is filled once;
4. a copy is in one place.

The fifth, that everything ends, is `finish`.
"""

from __future__ import annotations

import hashlib
import random
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import assert_never

from hdphrs.config import CoreConfig
from hdphrs.protocol import effects as fx
from hdphrs.protocol import events as ev
from hdphrs.protocol import messages as msg
from hdphrs.protocol.node import Node
from hdphrs.protocol.supervisor import InTransition, OnNode
from hdphrs.protocol.tasks import (
    PROGRAM,
    ROOT,
    Crash,
    NodeId,
    Origin,
    Outcome,
    Spark,
    Task,
    TaskRef,
    Verdict,
)

CODE = b"digest of f"
CRASH = Crash("host", 4711, "killed by SIGSEGV")
Copy = tuple[TaskRef, int]


def task(path: bytes = b"p", *, depth: int = 0, supervised: bool = True, name: str = "f") -> Task:
    """A task that spawns two children, down to `depth` levels."""
    return Task(name, path, CODE, bytes([depth]), supervised)


def spark(node: int = 0, slot: int = 0, *, replica: int = 0, supervised: bool = True) -> Spark:
    """A spark of a future on `node`."""
    ref = TaskRef(NodeId(node), PROGRAM, slot)
    return Spark(ref, replica, task(b"%d.%d" % (node, slot), supervised=supervised))


def value_of(path: bytes) -> Outcome:
    """What running the task at this path gives, whoever runs it."""
    return Outcome(Verdict.VALUE, b"value of " + path)


def first(_: int) -> int:
    """A chooser that takes the first."""
    return 0


@dataclass(slots=True)
class Scheduler:
    """A scheduler process: what it has been given, and tasks that wait for their children."""

    queue: dict[Copy, Spark] = field(default_factory=dict)
    waiting: dict[Copy, tuple[Spark, dict[int, None]]] = field(default_factory=dict)
    hungry: bool = False
    codes: set[bytes] = field(default_factory=set)
    slots: int = 0


@dataclass(slots=True)
class Host:
    """One node and what is around its core."""

    core: Node
    alive: bool = True
    halt: fx.Halt | None = None
    demand: bool = False
    demands: int = 0
    stopped: bool = False
    schedulers: dict[Origin, Scheduler] = field(default_factory=dict)
    next_origin: int = 1

    @property
    def runs(self) -> bool:
        """Whether it takes events."""
        return self.alive and self.halt is None


class Cluster:
    """Nodes 0 (the root) to `nodes` - 1, each with `schedulers` schedulers, all joined, nobody hungry yet."""

    def __init__(
        self,
        nodes: int = 3,
        *,
        schedulers: int = 1,
        config: CoreConfig | None = None,
        choose: Callable[[int], int] | None = first,
        checked: bool = True,
    ) -> None:
        self.config = config or CoreConfig()
        self.now = 0.0
        self.hosts: dict[NodeId, Host] = {}
        self.queues: dict[tuple[NodeId, NodeId], deque[msg.Message]] = {}
        self.cuts: list[tuple[NodeId, NodeId]] = []
        self.unruled: list[NodeId] = []
        """Suspicions that the root has not ruled on."""
        self.delivered: dict[TaskRef, Outcome] = {}
        self.spawned: dict[TaskRef, bytes] = {}
        """Futures of the program, and the paths of their tasks."""
        self.ran: dict[Copy, int] = {}
        """How often each copy was run to its end."""
        self.trace = hashlib.sha256()
        self._choose = choose
        self._schedulers = schedulers
        self._checked = False
        self._tickets = 0
        self._codes: dict[tuple[NodeId, NodeId], set[bytes]] = {}
        self._add(Node.root(self.config, self._chooser(ROOT)), ROOT)
        self.feed(0, ev.Learned(CODE, b"def f"))
        for _ in range(nodes - 1):
            self.join()
            self.settle()
        self._checked = checked

    def _chooser(self, node: NodeId) -> Callable[[int], int]:
        return self._choose or random.Random(f"chooser of {node}").randrange

    def _add(self, core: Node, node: NodeId) -> Host:
        host = self.hosts[node] = Host(core)
        return host

    # ---- what tests do ---------------------------------------------------------------------------------------

    def core(self, node: int) -> Node:
        """The core of a node."""
        return self.hosts[NodeId(node)].core

    def feed(self, node: int, event: ev.Event) -> list[fx.Effect]:
        """One event for one node; its effects are carried out, and the invariants checked."""
        host = self.hosts[NodeId(node)]
        assert host.runs, f"node {node} takes no events any more"
        effects = host.core.handle(event, self.now)
        self.trace.update(repr((node, event, effects)).encode())
        for effect in effects:
            self._carry_out(NodeId(node), host, effect)
        if self._checked:
            self.check()
        return effects

    def join(self) -> NodeId:
        """A newcomer; it becomes a node when it gets its WELCOME."""
        self._tickets += 1
        effects = self.feed(0, ev.Arrived(self._tickets, "host", self._schedulers, ("host", 1), 1))
        return next(effect.member.node for effect in effects if isinstance(effect, fx.Admit))

    def spawn(self, count: int = 1, *, depth: int = 0, supervised: bool = True) -> list[TaskRef]:
        """The program spawns tasks."""
        start = len(self.spawned)
        tasks = []
        for slot in range(start, start + count):
            ref = TaskRef(ROOT, PROGRAM, slot)
            self.spawned[ref] = b"%d" % slot
            tasks.append((slot, task(b"%d" % slot, depth=depth, supervised=supervised)))
        self.feed(0, ev.Exported(PROGRAM, tuple(tasks)))
        return [TaskRef(ROOT, PROGRAM, slot) for slot, _ in tasks]

    def place(self, node: int, *, depth: int = 0, supervised: bool = True) -> TaskRef:
        """The program places a task."""
        slot = len(self.spawned)
        ref = TaskRef(ROOT, PROGRAM, slot)
        self.spawned[ref] = b"%d" % slot
        placed = task(b"%d" % slot, depth=depth, supervised=supervised)
        self.feed(0, ev.Placed(PROGRAM, slot, placed, NodeId(node)))
        return ref

    def up(self, node: int) -> Origin:
        """A scheduler process is started, and ready at once."""
        host = self.hosts[NodeId(node)]
        origin = Origin(host.next_origin)
        host.next_origin += 1
        host.schedulers[origin] = Scheduler()
        self.feed(node, ev.SchedulerUp(origin))
        return origin

    def hungry(self, node: int, origin: int = 1, room: int = 16) -> list[fx.Effect]:
        """A scheduler waits for work."""
        self.hosts[NodeId(node)].schedulers[Origin(origin)].hungry = True
        return self.feed(node, ev.Hungry(Origin(origin), room))

    def run(self, node: int, origin: int = 1) -> None:
        """A scheduler takes the next of its tasks: the task ends, or spawns two children and waits."""
        scheduler = self.hosts[NodeId(node)].schedulers[Origin(origin)]
        copy = next(iter(scheduler.queue))
        running = scheduler.queue.pop(copy)
        depth = running.task.payload[0]
        if not depth:
            self._finished(node, Origin(origin), running)
            return
        slots = [scheduler.slots, scheduler.slots + 1]
        scheduler.slots += 2
        scheduler.waiting[copy] = running, dict.fromkeys(slots)
        children = tuple(
            (slot, task(b"%s.%d" % (running.task.path, index), depth=depth - 1)) for index, slot in enumerate(slots)
        )
        self.feed(node, ev.Exported(Origin(origin), children))

    def give_back(self, node: int, origin: int = 1) -> None:
        """A scheduler returns all that it has not started."""
        scheduler = self.hosts[NodeId(node)].schedulers[Origin(origin)]
        copies = tuple(scheduler.queue)
        scheduler.queue.clear()
        self.feed(node, ev.GivenBack(Origin(origin), copies))

    def crash(self, node: int, origin: int, running: Copy | None = None, *, blameless: bool = False) -> None:
        """A scheduler process dies; another one takes its place."""
        del self.hosts[NodeId(node)].schedulers[Origin(origin)]
        self.feed(node, ev.SchedulerDied(Origin(origin), running, CRASH, blameless))
        self.up(node)

    def deliver(self, source: int, to: int) -> msg.Message | None:
        """The next message from one node to another arrives; None if it is not listened to."""
        link = NodeId(source), NodeId(to)
        message = self.queues[link].popleft()
        host = self.hosts.get(link[1])
        if isinstance(message, msg.Welcome):
            host = self._add(Node.newcomer(self.config, self._chooser(link[1])), link[1])
        if host is None or not host.runs:
            return None
        self.feed(to, ev.Received(link[0], message))
        if isinstance(message, msg.Welcome):
            for _ in range(self._schedulers):
                self.up(to)
        return message

    def settle(self) -> None:
        """Deliver everything, until nothing is on its way."""
        while links := self.links():
            for source, to in links:
                if self.queues.get((source, to)):
                    self.deliver(source, to)

    def kill(self, node: int) -> None:
        """A node dies; nobody knows yet."""
        self.hosts[NodeId(node)].alive = False
        for (_, to), queue in self.queues.items():
            if to == node:
                queue.clear()

    def suspect(self, accused: int, by: int = 0) -> None:
        """The transport of one node hears nothing of another."""
        self.unruled.append(NodeId(accused))
        self.feed(by, ev.Suspected(NodeId(accused)))

    def cut(self, one: int, other: int) -> None:
        """The connection between two nodes is gone for good, with what was on it."""
        for link in ((NodeId(one), NodeId(other)), (NodeId(other), NodeId(one))):
            self.cuts.append(link)
            self.queues.get(link, deque()).clear()

    def tick(self, after_s: float = 0.0) -> None:
        """Time passes, and every node looks at its clock."""
        self.now += after_s
        for node, host in list(self.hosts.items()):
            if host.runs:
                self.feed(node, ev.Tick())

    def links(self) -> list[tuple[NodeId, NodeId]]:
        """Who has something under way to whom; a node gets its WELCOME before anything else."""
        return [
            (source, to)
            for (source, to), queue in self.queues.items()
            if queue and (to in self.hosts or source == ROOT)
        ]

    def in_flight(self, source: int, to: int) -> list[msg.Message]:
        """What is on its way from one node to another."""
        return list(self.queues.get((NodeId(source), NodeId(to)), ()))

    def finish(self, steps_max: int = 20_000) -> None:
        """The fifth invariant: with no further faults every future of the program is filled."""
        for _ in range(steps_max):
            self._fence_out()
            for node, host in self.hosts.items():
                if not host.alive and node in self.core(0).members.others():
                    self.suspect(node)
            self.settle()
            busy = False
            for node, host in list(self.hosts.items()):
                for origin in list(host.schedulers) if host.runs else ():
                    scheduler = host.schedulers[origin]
                    if scheduler.queue:
                        self.run(node, origin)
                        busy = True
                    elif not scheduler.hungry:
                        self.hungry(node, origin)
                        busy = True
            if not busy and not self.links():
                if all(ref in self.delivered for ref in self.spawned) and not self._open():
                    return
                self._wait()
        unfilled = [str(ref) for ref in self.spawned if ref not in self.delivered]
        raise AssertionError(f"no end: futures {unfilled} stay empty; guards {self._open()}")

    # ---- the invariants --------------------------------------------------------------------------------------

    def check(self) -> None:
        """Raise if the cluster is in a state in which it must never be."""
        root = self.core(0)
        places: dict[Copy, list[tuple[NodeId, NodeId | None, bool]]] = {}
        for node, host in self.hosts.items():
            if host.runs and (node == ROOT or root.members.is_live(node)):
                for copy in self._held(host):
                    places.setdefault((copy.ref, copy.replica), []).append((node, None, False))
        answers: dict[TaskRef, None] = {}
        for (source, to), queue in self.queues.items():
            there = self.hosts.get(to)
            if there is None or not there.runs or there.core.members.is_dead(source):
                continue
            for message in queue:
                match message:
                    case msg.Schedule(_, sparks):
                        for copy in sparks:
                            places.setdefault((copy.ref, copy.replica), []).append((source, to, False))
                    case msg.Push(copy):
                        places.setdefault((copy.ref, copy.replica), []).append((source, to, True))
                    case msg.Result(ref, _, _):
                        answers[ref] = None
        for (ref, replica), where in places.items():
            assert len(where) == 1, f"copies of {ref}#{replica} in {where}"
        for node, host in self.hosts.items():
            if host.runs and (node == ROOT or root.members.is_live(node)):
                self._check_records(host, places, answers)

    def _check_records(
        self,
        host: Host,
        places: dict[Copy, list[tuple[NodeId, NodeId | None, bool]]],
        answers: dict[TaskRef, None],
    ) -> None:
        root = self.core(0)
        for ref, record in host.core.supervisor.records():
            if not record.task.supervised:
                continue
            location = record.location
            named = (location.node,) if isinstance(location, OnNode) else (location.victim, location.thief)
            newest = places.get((ref, record.replica), [])
            for at, to, pushed in newest:
                told = f"{ref}#{record.replica} is at {at} -> {to}, but tracked as {location}"
                if to is None:
                    assert at in named, told
                elif pushed:
                    assert location == OnNode(to), told
                else:
                    assert location == InTransition(at, to), told
            unheard = any(
                not host.core.members.is_dead(node)
                and (root.members.is_dead(node) or not self.hosts[node].runs or node in self.unruled)
                for node in named
            )
            assert newest or ref in answers or unheard, f"{ref}#{record.replica} is lost; tracked as {location}"

    def _held(self, host: Host) -> Iterator[Spark]:
        if host.core.me is not None:
            yield from host.core.pool
            yield from host.core.victim.guarded()
            yield from host.core.schedulers.held()

    def _open(self) -> list[str]:
        return [
            f"{copy.ref} at {node}"
            for node, host in self.hosts.items()
            if host.runs
            for copy in host.core.victim.guarded()
        ]

    # ---- the world -------------------------------------------------------------------------------------------

    def _finished(self, node: int, origin: Origin, ran: Spark) -> None:
        copy = ran.ref, ran.replica
        self.ran[copy] = self.ran.get(copy, 0) + 1
        self.feed(node, ev.Finished(origin, ((*copy, value_of(ran.task.path)),)))

    def _fence_out(self) -> None:
        """Whoever was declared dead and still runs finds all doors closed, and ends."""
        for node, host in self.hosts.items():
            if host.runs and self.core(0).members.is_dead(node):
                host.halt = fx.Halt("fenced", rejoin=True)

    def _wait(self) -> None:
        deadlines = [host.core.next_deadline() for host in self.hosts.values() if host.runs]
        deadline = min((deadline for deadline in deadlines if deadline is not None), default=None)
        assert deadline is not None, "nothing moves, and nobody waits for anything"
        self.tick(max(0.0, deadline - self.now))

    def _carry_out(self, node: NodeId, host: Host, effect: fx.Effect) -> None:
        match effect:
            case fx.Send(to, message):
                assert not host.core.members.is_dead(to), f"{node} sends {message} to {to}, which is dead"
                assert to != node, f"{node} sends {message} to itself"
                self._needs_code(message, node, to)
                there = self.hosts.get(to)
                if (there is None or there.alive) and (node, to) not in self.cuts:
                    self.queues.setdefault((node, to), deque()).append(message)
            case fx.Teach(origin, digest):
                host.schedulers[origin].codes.add(digest)
            case fx.Start(origin, sparks):
                scheduler = host.schedulers[origin]
                assert scheduler.hungry, f"scheduler {node}.{origin} did not ask for work"
                scheduler.hungry = False
                for copy in sparks:
                    assert copy.task.code in scheduler.codes
                    scheduler.queue[copy.ref, copy.replica] = copy
            case fx.Deliver(origin, slot, outcome):
                self._fill(node, host, TaskRef(node, origin, slot), outcome)
            case fx.Demand(wanted):
                host.demand = wanted
                host.demands += 1
            case fx.Fence(dead):
                for link in ((node, dead), (dead, node)):
                    self.queues.pop(link, None)
                if node == ROOT:
                    self.unruled = [accused for accused in self.unruled if accused != dead]
            case fx.StopSchedulers():
                host.stopped = True
            case fx.Halt():
                host.halt = effect
            case fx.Admit() | fx.Connect():
                pass
            case _:
                assert_never(effect)

    def _needs_code(self, message: msg.Message, node: NodeId, to: NodeId) -> None:
        known = self._codes.setdefault((node, to), set())
        match message:
            case msg.Code(digest, _):
                known.add(digest)
                self._codes.setdefault((to, node), set()).add(digest)  # who gives it has it
            case msg.Schedule(_, sparks):
                assert all(copy.task.code in known for copy in sparks)
            case msg.Push(copy):
                assert copy.task.code in known

    def _fill(self, node: NodeId, host: Host, ref: TaskRef, outcome: Outcome) -> None:
        assert ref not in self.delivered, f"future {ref} is filled twice"
        self.delivered[ref] = outcome
        if ref.origin == PROGRAM:
            if outcome.verdict is Verdict.VALUE:
                assert outcome == value_of(self.spawned[ref])
            return
        scheduler = host.schedulers.get(ref.origin)
        if scheduler is not None:
            scheduler.hungry = False  # it asks again when it has nothing to go on with
        for copy, (waiting, slots) in list(scheduler.waiting.items()) if scheduler else ():
            slots.pop(ref.slot, None)
            if not slots:
                assert scheduler is not None
                del scheduler.waiting[copy]
                self._resume(node, ref.origin, waiting)

    def _resume(self, node: NodeId, origin: Origin, waiting: Spark) -> None:
        """A parent has all its children: it goes on, and has nothing left to spawn."""
        done = Spark(waiting.ref, waiting.replica, Task("f", waiting.task.path, CODE, bytes([0])))
        self.hosts[node].schedulers[origin].queue[done.ref, done.replica] = done
