"""A host: one node process and its schedulers, driven as the real driver and crew do it (`node/driver.py`, `crew.py`).

What lives here: feeding the core, carrying out its effects, its clock and its timer, its stops and its end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from math import ceil
from typing import TYPE_CHECKING, Any

from hdphrs.protocol import effects as fx
from hdphrs.protocol import events as ev
from hdphrs.protocol.messages import Message
from hdphrs.protocol.node import Node
from hdphrs.protocol.tasks import PROGRAM, ROOT, Crash, NodeId, Origin, Spark
from hdphrs.sim.errors import Wrong
from hdphrs.sim.network import Link
from hdphrs.sim.scheduler import Scheduler
from hdphrs.sim.world import FOLD, MASK, Action

if TYPE_CHECKING:
    from hdphrs.sim.cluster import Cluster

NUDGE_NS = 1_000_000
"""How long a scheduler may leave the demand byte unanswered before its helper thread is asked."""

CROWDED_NS = 10_000_000
"""How often a scheduler is looked at that is in one task and has got others too."""

CRASH = Crash("host", 1, "killed by SIGSEGV")

UNKNOWN = NodeId(-1)

_TICK = ev.Tick()
_KINDS: dict[type, int] = {kind: number for number, kind in enumerate(ev.Event.__args__, 1)}


class Host:
    """One life of one node; a node that joins again is a new `Host`."""

    def __init__(self, cluster: Cluster, core: Node, cores: int, rate_ppm: int, offset_ns: int) -> None:
        """
        Args:
            cores: schedulers.
            rate_ppm, offset_ns: what its clock makes of the time.
        """
        self.core = core
        self.cores = cores
        self.rate_ppm = rate_ppm
        self.node = UNKNOWN if core.me is None else core.me
        self.up = True
        self.stalled = 0
        """How many reasons there are why the process is stopped."""
        self.halt: fx.Halt | None = None
        self.nodes: list[NodeId] = []
        """Those alive, as schedulers are told."""
        self.schedulers: dict[Origin, Scheduler] = {}
        self.out: dict[NodeId, Link] = {}
        self.known: dict[NodeId, None] = {}
        self.fenced: dict[NodeId, None] = {}
        self.suspected: dict[NodeId, None] = {}
        self.heard_ns: dict[NodeId, int] = {}
        self.forgave_ns = -1
        self._cluster = cluster
        self._world = cluster.world
        self._follow = cluster.follower.step
        self._send = cluster.network.send
        self._local_ns = cluster.drawn.local_us * 1000
        self._offset_ns = offset_ns
        self._inbox: list[tuple[Action, Any]] = []
        """What waits for the end of a stop."""
        self._epoch = 0
        self._armed_s: float | None = None
        self._timer = 0
        self._next_origin = 1
        self._nudging = False
        self._stopping = False
        self._carry_out: dict[type, Callable[[Any], None]] = {
            fx.Teach: self._teach,
            fx.Start: self._start,
            fx.Deliver: self._deliver,
            fx.Demand: self._demand,
            fx.Admit: self._admit,
            fx.Connect: self._connect,
            fx.Fence: self._fence,
            fx.StopSchedulers: self._stop_schedulers,
            fx.Halt: self._halt,
        }

    # ---- the driver ------------------------------------------------------------------------------------------

    def feed(self, event: ev.Event) -> None:
        """One event for the core; its effects are carried out, and the invariants checked."""
        if not self.up:
            return
        world, node = self._world, self.node
        now_s = (world.now_ns * self.rate_ppm // 1_000_000 + self._offset_ns) / 1e9
        world.events += 1
        effects = self.core.handle(event, now_s)
        kind = type(event)
        world.fold = (
            world.fold * FOLD + (world.now_ns << 16) + (node << 8) + (len(effects) << 4) + _KINDS[kind]
        ) & MASK
        world.note(node, event, effects)
        self._follow(node, event, effects)
        send, carry_out = self._send, self._carry_out
        for effect in effects:
            if type(effect) is fx.Send:
                send(self, effect.to, effect.message)
            else:
                carry_out[type(effect)](effect)
        if kind is ev.Received or effects or kind is ev.Tick:
            if self.core.epoch != self._epoch:
                self._tell_nodes()
            self._arm()

    def receive(self, sender: NodeId, message: Message) -> None:
        """A message has arrived."""
        self.feed(ev.Received(sender, message))

    def when_running(self, action: Action, argument: Any) -> None:
        """Call `action(argument)` now, or when the process goes on."""
        if self.stalled:
            self._inbox.append((action, argument))
        elif self.up:
            action(argument)

    def hear(self, heard: tuple[Scheduler, Iterable[ev.Event]]) -> None:
        """What a scheduler says has arrived."""
        if self.stalled:
            self._inbox.append((self.hear, heard))
            return
        scheduler, events = heard
        for event in events:
            if isinstance(event, ev.Finished):
                for ref, replica, _ in event.results:
                    del scheduler.handed[ref, replica]
            elif isinstance(event, ev.GivenBack):
                self._world.tally("given back", len(event.sparks))
                for copy in event.sparks:
                    del scheduler.handed[copy]
            elif isinstance(event, ev.Hungry):
                scheduler.asked = True
            self.feed(event)

    def suspect(self, node: NodeId) -> None:
        """The transport of this host hears nothing of a peer any more; said once for each silence."""
        if self.up and node in self.known and node not in self.suspected:
            self.suspected[node] = None
            self._world.tally("suspicions")
            self.when_running(self.feed, ev.Suspected(node))

    def _arm(self) -> None:
        if not self.up:
            return
        deadline_s = self.core.next_deadline()
        if deadline_s is not None and (self._armed_s is None or deadline_s < self._armed_s):
            self._armed_s = deadline_s
            self._timer += 1
            delay_ns = (
                (ceil(deadline_s * 1e9) - self._offset_ns) * 1_000_000 // self.rate_ppm - self._world.now_ns + 2000
            )
            self._world.post(max(0, delay_ns), self._wake, self._timer)

    def _wake(self, timer: int) -> None:
        if timer == self._timer:
            if self.stalled:
                self._inbox.append((self._wake, timer))
                return
            self._armed_s = None
            self.feed(_TICK)

    def _tell_nodes(self) -> None:
        self._epoch = self.core.epoch
        self.nodes = self.core.live_nodes()
        for scheduler in self.schedulers.values():
            self._mail(scheduler, scheduler.learn_nodes, self.nodes)
        self._cluster.epoch_changed(self)

    # ---- effects ---------------------------------------------------------------------------------------------

    def _mail(self, scheduler: Scheduler, action: Action, argument: Any) -> None:
        self._world.post(self._local_ns, scheduler.receive, (action, argument))

    def _teach(self, effect: fx.Teach) -> None:
        scheduler = self.schedulers[effect.scheduler]
        self._mail(scheduler, scheduler.learn_code, effect.digest)

    def _start(self, effect: fx.Start) -> None:
        scheduler = self.schedulers.get(effect.scheduler)
        if scheduler is None or not scheduler.asked:
            raise Wrong(f"scheduler {self.node}.{effect.scheduler} gets work and did not ask for it")
        scheduler.asked = False
        for spark in effect.sparks:
            scheduler.handed[spark.ref, spark.replica] = None
        self._mail(scheduler, scheduler.start, effect.sparks)
        self._nudge()

    def _deliver(self, effect: fx.Deliver) -> None:
        if effect.origin == PROGRAM:
            self._world.post(self._local_ns, self._cluster.client.delivered, effect)
            return
        scheduler = self.schedulers.get(effect.origin)
        if scheduler is not None:
            scheduler.asked = False  # the core takes its hunger back
            self._mail(scheduler, scheduler.deliver, (effect.slot, effect.outcome))

    def _demand(self, effect: fx.Demand) -> None:
        for scheduler in self.schedulers.values():
            scheduler.demand = effect.wanted
        if effect.wanted:
            self._nudge()

    def _admit(self, effect: fx.Admit) -> None:
        self._cluster.admit(effect.ticket, effect.member)

    def _connect(self, effect: fx.Connect) -> None:
        self._cluster.connect(self, effect.member.node)

    def _fence(self, effect: fx.Fence) -> None:
        self._cluster.fence(self, effect.node)

    def _stop_schedulers(self, effect: fx.StopSchedulers) -> None:
        self._stopping = True
        for scheduler in self.schedulers.values():
            self._mail(scheduler, scheduler.quit, None)

    def _halt(self, effect: fx.Halt) -> None:
        self.end(effect)

    # ---- schedulers ------------------------------------------------------------------------------------------

    def start_schedulers(self, _: None) -> None:
        """All of them, one a core."""
        for number in range(self.cores):
            self._start_scheduler(number)

    def _start_scheduler(self, _: object) -> None:
        if not self.up or self._stopping:
            return
        origin = Origin(self._next_origin)
        self._next_origin += 1
        scheduler = self.schedulers[origin] = Scheduler(self._cluster, self, origin)
        scheduler.nodes = self.nodes
        scheduler.rise()

    def scheduler_died(self, died: tuple[Scheduler, Spark | None, bool]) -> None:
        """The process of a scheduler is gone; what it had said has been heard."""
        scheduler, root, blameless = died
        if self._stopping or not self.up:
            return
        del self.schedulers[scheduler.origin]
        running, leftover_of = None, b""
        if root is not None and (root.ref, root.replica) in scheduler.handed:
            running = root.ref, root.replica
        elif root is not None:
            leftover_of = root.task.path
        self.feed(ev.SchedulerDied(scheduler.origin, running, CRASH, blameless, leftover_of))
        self._world.post(self._cluster.start_ns(), self.when_up, self._start_scheduler)

    def when_up(self, action: Action) -> None:
        """Call `action(None)` when the process runs, unless it is gone by then."""
        self.when_running(action, None)

    def _nudge(self) -> None:
        if not self._nudging:
            self._nudging = True
            self._world.post(NUDGE_NS, self._look_after, None)

    def _look_after(self, _: None) -> None:
        """Have helper threads speak for schedulers that are deep in one task."""
        self._nudging = False
        if self.stalled:
            self._inbox.append((self._look_after, None))
            return
        if not self.up or self._stopping:
            return
        crowded = False
        for scheduler in self.schedulers.values():
            if scheduler.is_running and (scheduler.demand or len(scheduler.handed) > 1):
                crowded = True
                scheduler.speak()
        if crowded:
            self._nudging = True
            self._world.post(CROWDED_NS, self._look_after, None)

    # ---- stops and ends --------------------------------------------------------------------------------------

    def stall(self, *, with_schedulers: bool) -> None:
        """The process is stopped, and its schedulers perhaps too."""
        self.stalled += 1
        if with_schedulers:
            for scheduler in self.schedulers.values():
                scheduler.stalled = True

    def go_on(self) -> None:
        """One reason to be stopped is over."""
        self.stalled -= 1
        if self.stalled:
            return
        inbox, self._inbox = self._inbox, []
        for action, argument in inbox:
            action(argument)
        for scheduler in list(self.schedulers.values()):
            scheduler.go_on()

    def end(self, halt: fx.Halt, *, in_the_middle: bool = False) -> None:
        """The process is gone, its schedulers too; the first reason counts."""
        if self.up:
            self.up = False
            self.halt = halt
            for scheduler in self.schedulers.values():
                scheduler.dead = True
            self._cluster.ended(self, halt, in_the_middle=in_the_middle)

    @property
    def is_root(self) -> bool:
        """Whether this is the node that everything may die around."""
        return self.node == ROOT
