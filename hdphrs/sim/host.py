"""A host: one node process and its schedulers, driven as the real driver does it (`node/driver.py`).

What lives here: feeding the core, carrying out its effects, its clock and its timer, its stops and its end.  What does
not: the schedulers, see `crew.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from math import ceil
from typing import TYPE_CHECKING, Any

from hdphrs.audit.foretold import foretell, hold_to
from hdphrs.protocol import effects as fx
from hdphrs.protocol import events as ev
from hdphrs.protocol.messages import Message
from hdphrs.protocol.node import Node
from hdphrs.protocol.tasks import PROGRAM, ROOT, NodeId
from hdphrs.sim.crew import Crew
from hdphrs.sim.errors import Wrong
from hdphrs.sim.network import Link
from hdphrs.sim.world import FOLD, MASK, Action

if TYPE_CHECKING:
    from hdphrs.sim.cluster import Cluster

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
        self.rate_ppm = rate_ppm
        self.node: NodeId = UNKNOWN if core.me is None else core.me
        self.up: bool = True
        self.stalled: int = 0
        """How many reasons there are why the process is stopped."""
        self.parted: bool = False
        """It has said BYE, and only sees that off."""
        self.halt: fx.Halt | None = None
        self.nodes: list[NodeId] = []
        """Those alive, as schedulers are told."""
        self.crew: Crew = Crew(cluster, self, cores)
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
        self._event: ev.Event = _TICK
        """The latest."""
        self._roster = (0, 0)
        self._armed_s: float | None = None
        self._timer = 0
        self._carry_out: dict[type, Callable[[Any], None]] = {
            fx.Teach: self.crew.teach,
            fx.Unlearn: self.crew.unlearn,
            fx.Start: self.crew.start,
            fx.Deliver: self._deliver,
            fx.Demand: self.crew.demand,
            fx.Admit: self._admit,
            fx.Connect: self._connect,
            fx.Fence: self._fence,
            fx.Double: lambda effect: None,
            fx.Cancel: self.crew.cancel,
            fx.Replace: self.crew.replace,
            fx.StopSchedulers: self.crew.stop,
            fx.Halt: self._end,
        }

    # ---- the driver ------------------------------------------------------------------------------------------

    def feed(self, event: ev.Event) -> None:
        """One event for the core; its effects are carried out, and the invariants checked."""
        if not self.up or self.parted:
            return
        world, node = self._world, self.node
        now_s = (world.now_ns * self.rate_ppm // 1_000_000 + self._offset_ns) / 1e9
        world.events += 1
        self._event = event
        foretold = foretell(self.core, event)
        effects = self.core.handle(event, now_s)
        hold_to(foretold, effects)
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
        if kind is ev.Received or effects or kind is ev.Tick or kind is ev.Crowded:
            if self.core.roster != self._roster:
                self._tell_nodes()
            self._arm()

    def receive(self, sender: NodeId, message: Message) -> None:
        """A message has arrived."""
        if self.parted:
            self._cluster.follower.lost(sender, self.node, message)
        self.feed(ev.Received(sender, message))

    def when_running(self, action: Action, argument: Any) -> None:
        """Call `action(argument)` now, or when the process goes on."""
        if self.stalled:
            self._inbox.append((action, argument))
        elif self.up:
            action(argument)

    def when_up(self, action: Action) -> None:
        """Call `action(None)` when the process runs, unless it is gone by then."""
        self.when_running(action, None)

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
        self._roster = self.core.roster
        self.nodes = self.core.live_nodes()
        self.crew.tell_nodes(self.nodes)
        self._cluster.epoch_changed(self)

    # ---- effects ---------------------------------------------------------------------------------------------

    def _admit(self, effect: fx.Admit) -> None:
        self._cluster.admit(effect.ticket, effect.member)

    def _connect(self, effect: fx.Connect) -> None:
        self._cluster.connect(self, effect.member.node)

    def _fence(self, effect: fx.Fence) -> None:
        self._cluster.fence(self, effect)

    def _deliver(self, effect: fx.Deliver) -> None:
        if effect.origin == PROGRAM:
            self._check_pieces(effect.slot)
            self._world.post(self._local_ns, self._cluster.client.delivered, effect)
        else:
            self.crew.deliver(effect)

    def _check_pieces(self, slot: int) -> None:
        """Nothing is left of the parts of a finished task, but for those that have come together with its result."""
        program = self._cluster.program
        left = self.core.pieces.below(program.task[program.tops[slot]].path)
        if left and not isinstance(self._event, ev.Finished):
            raise Wrong(f"task {slot} of the program has ended, and {len(left)} pieces of it are kept")

    # ---- stops and ends --------------------------------------------------------------------------------------

    def stall(self, *, with_schedulers: bool) -> None:
        """The process is stopped, and its schedulers perhaps too."""
        self.stalled += 1
        if with_schedulers:
            for scheduler in self.crew.schedulers.values():
                scheduler.stalled = True

    def go_on(self) -> None:
        """One reason to be stopped is over."""
        self.stalled -= 1
        if self.stalled:
            return
        inbox, self._inbox = self._inbox, []
        for action, argument in inbox:
            action(argument)
        for scheduler in list(self.crew.schedulers.values()):
            scheduler.go_on()

    @property
    def is_leaving(self) -> bool:
        """Whether it was told to."""
        return self.core.me is not None and self.core.leaving.under_way

    def _end(self, halt: fx.Halt) -> None:
        """Effect `Halt`; who leaves sees its BYE off."""
        if self.is_leaving and halt.reason is None:
            self.parted = True
            self._cluster.forget(self)
            self._world.post(self._cluster.network.until_heard_ns(self, self._cluster.root), self.end, halt)
        else:
            self.end(halt)

    def end(self, halt: fx.Halt, *, in_the_middle: bool = False) -> None:
        """The process is gone, its schedulers too; the first reason counts."""
        if self.up:
            self.up = False
            self.halt = halt
            for scheduler in self.crew.schedulers.values():
                scheduler.stop()
            self._cluster.ended(self, halt, in_the_middle=in_the_middle)

    @property
    def is_root(self) -> bool:
        """Whether this is the node that everything may die around."""
        return self.node == ROOT
