"""A whole cluster of cores in one process, without clocks, sockets or processes.

What lives here: `Cluster`, which carries messages between hosts.  Between two nodes there is one queue for each
direction; nothing moves by itself, the caller says which queue delivers, what overtakes, which scheduler runs, who dies
and who notices.  After every event the invariants are checked; `finish` is the fifth of them, that everything ends.
"""

from __future__ import annotations

import hashlib
import random
from collections import deque
from collections.abc import Callable

from hdphrs.audit.scan import Copy, Facts, Flight, facts, scan, scan_leave, scan_still
from hdphrs.config import CoreConfig
from hdphrs.explore.host import Host
from hdphrs.explore.work import CODE, task
from hdphrs.protocol import effects as fx
from hdphrs.protocol import events as ev
from hdphrs.protocol import messages as msg
from hdphrs.protocol.node import Node
from hdphrs.protocol.tasks import PROGRAM, ROOT, NodeId, Origin, Outcome, Parting, Task, TaskRef


def first(_: int) -> int:
    """A chooser that takes the first."""
    return 0


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
        self.config: CoreConfig = config or CoreConfig()
        self.now: float = 0.0
        self.hosts: dict[NodeId, Host] = {}
        self.queues: dict[tuple[NodeId, NodeId], deque[msg.Message]] = {}
        self.cuts: list[tuple[NodeId, NodeId]] = []
        self.unruled: list[NodeId] = []
        """Suspicions that the root has not ruled on."""
        self.delivered: dict[TaskRef, Outcome] = {}
        self.spawned: dict[TaskRef, bytes] = {}
        """Futures of the program, and the paths of their tasks."""
        self.cancelled: dict[TaskRef, None] = {}
        self.trace: hashlib._Hash = hashlib.sha256()
        self._choose = choose
        self._schedulers = schedulers
        self.checked: bool = False
        self._tickets = 0
        self._codes: dict[tuple[NodeId, NodeId], set[bytes]] = {}
        self._told: dict[NodeId, Facts] = {}
        """What cores have said of themselves; an event changes that of one core only."""
        self._add(Node.root(self.config, self._chooser(ROOT)), ROOT)
        self.feed(0, ev.Learned(CODE, b"def f"))
        for _ in range(nodes - 1):
            self.join()
            self.settle()
        self.checked = checked
        """Whether the invariants are checked after every event."""

    def _chooser(self, node: NodeId) -> Callable[[int], int]:
        return self._choose or random.Random(f"chooser of {node}").randrange

    def _add(self, core: Node, node: NodeId) -> Host:
        host = self.hosts[node] = Host(core)
        self._told.clear()
        return host

    # ---- what tests do ---------------------------------------------------------------------------------------

    def core(self, node: int) -> Node:
        """The core of a node."""
        return self.hosts[NodeId(node)].core

    def feed(self, node: int, event: ev.Event) -> list[fx.Effect]:
        """One event for one node; its effects are carried out, and the invariants checked."""
        return self._carried(node, self.hosts[NodeId(node)].take(event, self.now))

    def join(self) -> NodeId:
        """A newcomer; it becomes a node when it gets its WELCOME."""
        self._tickets += 1
        effects = self._carried(ROOT, self.hosts[ROOT].admit(self._tickets, self._schedulers, self.now))
        return next(effect.member.node for effect in effects if isinstance(effect, fx.Admit))

    def spawn(self, count: int = 1, *, depth: int = 0, supervised: bool = True) -> list[TaskRef]:
        """The program spawns tasks."""
        start = len(self.spawned)
        slots = range(start, start + count)
        return self.spawn_all([(slot, task(b"%d" % slot, depth=depth, supervised=supervised)) for slot in slots])

    def spawn_all(self, tasks: list[tuple[int, Task]]) -> list[TaskRef]:
        """The program spawns these tasks: (slot, task)."""
        refs = [TaskRef(ROOT, PROGRAM, slot) for slot, _ in tasks]
        self.spawned.update((ref, spawned.path) for ref, (_, spawned) in zip(refs, tasks, strict=True))
        self.feed(0, ev.Exported(PROGRAM, tuple(tasks)))
        return refs

    def place(self, node: int, *, depth: int = 0, supervised: bool = True) -> TaskRef:
        """The program places a task."""
        slot = len(self.spawned)
        return self.place_one(node, slot, task(b"%d" % slot, depth=depth, supervised=supervised))

    def place_one(self, node: int, slot: int, placed: Task) -> TaskRef:
        """The program places this task."""
        ref = TaskRef(ROOT, PROGRAM, slot)
        self.spawned[ref] = placed.path
        self.feed(0, ev.Placed(PROGRAM, slot, placed, NodeId(node)))
        return ref

    def cancel(self, slot: int) -> None:
        """The program cancels one of its futures."""
        self.cancelled[TaskRef(ROOT, PROGRAM, slot)] = None
        self._carried(ROOT, self.hosts[ROOT].cancel(slot, self.now))

    def up(self, node: int) -> Origin:
        """A scheduler process is started, and ready at once."""
        host = self.hosts[NodeId(node)]
        self._carried(node, host.up(self.now))
        return Origin(host.next_origin - 1)

    def hungry(self, node: int, origin: int = 1, room: int = 16) -> list[fx.Effect]:
        """A scheduler waits for work."""
        return self._carried(node, self.hosts[NodeId(node)].starve(Origin(origin), room, self.now))

    def run(self, node: int, origin: int = 1) -> None:
        """A scheduler takes the next of its tasks: the task ends, or spawns its children and waits."""
        self._carried(node, self.hosts[NodeId(node)].run(Origin(origin), self.now))

    def give_back(self, node: int, origin: int = 1) -> None:
        """A scheduler returns all that it has not started."""
        self._carried(node, self.hosts[NodeId(node)].give_back(Origin(origin), self.now))

    def crash(
        self, node: int, origin: int, running: Copy | None = None, *, blameless: bool = False, read_of: bytes = b""
    ) -> None:
        """A scheduler process dies; another one takes its place."""
        host = self.hosts[NodeId(node)]
        effects = host.crash(Origin(origin), running, blameless=blameless, read_of=read_of, now=self.now)
        self._carried(node, effects)
        self.up(node)

    def deliver(self, source: int, to: int, past: int = 0) -> msg.Message | None:
        """The next message from one node to another arrives, or one that has got past so many others; None if it is not
        listened to."""
        link = NodeId(source), NodeId(to)
        message = self.queues[link][past]
        del self.queues[link][past]
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
        self._host(node).alive = False
        for (_, to), queue in self.queues.items():
            if to == node:
                queue.clear()

    def outcast(self, node: int) -> None:
        """A node that was declared dead finds all doors closed, and ends."""
        self._host(node).halt = fx.Halt("declared dead", rejoin=True)

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
            for node, host in self.hosts.items():
                if not host.alive and node in self.core(0).members.others():
                    self.suspect(node)
            self.settle()
            self._fence_out()
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
                if not self._empty() and not self._open():
                    return
                self._wait()
        raise AssertionError(f"no end: futures {self._empty()} stay empty; guards {self._open()}")

    def check(self) -> None:
        """Raise if the cluster is in a state in which it must never be; once the root has ended, there is none."""
        self._told.clear()
        self._check()

    # ---- the world -------------------------------------------------------------------------------------------

    def _check(self) -> None:
        """As `check`, if every event since the last one has come by `_carried`."""
        nodes: dict[NodeId, Facts] = {}
        for node, host in self.hosts.items():
            if host.runs:
                told = self._told.get(node)
                if told is None:
                    told = self._told[node] = facts(host.core, self.hosts)
                nodes[node] = told
        if ROOT not in nodes:
            return
        scan(nodes, self._flights(), self.unruled)
        if not any(self.queues.values()) and not self.unruled:
            scan_still(nodes)

    def _flights(self) -> list[Flight]:
        return [(source, to, queue) for (source, to), queue in self.queues.items()]

    def _empty(self) -> list[str]:
        return [str(ref) for ref in self.spawned if ref not in self.delivered and ref not in self.cancelled]

    def _open(self) -> list[str]:
        return [
            f"{copy.ref} at {node}"
            for node, host in self.hosts.items()
            if host.runs
            for copy in host.core.victim.guarded()
        ]

    def _fence_out(self) -> None:
        """Whoever was declared dead and still runs hears of it."""
        for node, host in self.hosts.items():
            if host.runs and self.core(0).members.is_dead(node):
                self.outcast(node)

    def _host(self, node: int) -> Host:
        """A node, or the newcomer that would have become it with its WELCOME."""
        return self.hosts.get(NodeId(node)) or self._add(Node.newcomer(self.config, first), NodeId(node))

    def _wait(self) -> None:
        deadlines = [host.core.next_deadline() for host in self.hosts.values() if host.runs]
        deadline = min((deadline for deadline in deadlines if deadline is not None), default=None)
        assert deadline is not None, "nothing moves, and nobody waits for anything"
        self.tick(max(0.0, deadline - self.now))

    def _carried(self, node: int, effects: list[fx.Effect]) -> list[fx.Effect]:
        """What a node has done is carried to the others, and the invariants are checked."""
        me = NodeId(node)
        self._told.pop(me, None)
        self.trace.update(repr((node, effects)).encode())
        for effect in effects:
            match effect:
                case fx.Send(to, message):
                    if self.checked and isinstance(message, msg.Bye) and message.parting is Parting.LEFT_NOTHING:
                        scan_leave(me, facts(self.core(node), self.hosts), self._flights())
                    self._needs_code(message, me, to)
                    there = self.hosts.get(to)
                    if (there is None or there.alive) and (me, to) not in self.cuts:
                        self.queues.setdefault((me, to), deque()).append(message)
                case fx.Deliver(origin, slot, outcome):
                    self.delivered[TaskRef(me, origin, slot)] = outcome
                case fx.Fence(dead):
                    for link in ((me, dead), (dead, me)):
                        self.queues.pop(link, None)
                    if me == ROOT:
                        self.unruled = [accused for accused in self.unruled if accused != dead]
        if self.checked:
            self._check()
        return effects

    def _needs_code(self, message: msg.Message, node: NodeId, to: NodeId) -> None:
        known = self._codes.setdefault((node, to), set())
        match message:
            case msg.Code(digest, _):
                known.add(digest)
                self._codes.setdefault((to, node), set()).add(digest)  # who gives it has it
            case msg.Schedule(_, sparks, _):
                assert all(copy.task.code in known for copy in sparks if copy.task.code)
            case msg.Push(copy):
                assert not copy.task.code or copy.task.code in known
