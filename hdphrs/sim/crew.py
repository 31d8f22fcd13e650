"""The schedulers of a host, as its node sees them (the real one: `node/crew.py`).

What lives here: their starts and deaths, what has been handed to each, and the way of events and effects between them
and the node.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from hdphrs.protocol import effects as fx
from hdphrs.protocol import events as ev
from hdphrs.protocol.tasks import Cause, Crash, NodeId, Origin
from hdphrs.sim.errors import Wrong
from hdphrs.sim.program import number_of
from hdphrs.sim.scheduler import Death, Scheduler
from hdphrs.sim.world import Action

if TYPE_CHECKING:
    from hdphrs.sim.cluster import Cluster
    from hdphrs.sim.host import Host

NUDGE_NS = 1_000_000
"""How long a scheduler may leave the demand byte unanswered before its helper thread is asked."""

CROWDED_NS = 10_000_000
"""How often a scheduler is looked at that is in one task and has got others too."""

CRASH = Crash("host", 1, "killed by SIGSEGV")


class Crew:
    """The schedulers of one host, one a core; a dead one is replaced."""

    def __init__(self, cluster: Cluster, host: Host, cores: int) -> None:
        self.schedulers: dict[Origin, Scheduler] = {}
        self.started: bool = False
        self._cluster = cluster
        self._world = cluster.world
        self._host = host
        self._cores = cores
        self._local_ns = cluster.drawn.local_us * 1000
        self._next_origin = 1
        self._wanted = False
        """What they have last been told of the demand byte."""
        self._nudging = False
        self._stopping = False

    # ---- life ------------------------------------------------------------------------------------------------

    def start_all(self, _: None) -> None:
        """All of them, one a core."""
        self.started = True
        self._cluster.accounts.add_cores(self._world.now_ns, self._cores)
        for number in range(self._cores):
            self._start_scheduler(number)

    def _start_scheduler(self, _: object) -> None:
        if not self._host.up or self._stopping:
            return
        origin = Origin(self._next_origin)
        self._next_origin += 1
        scheduler = self.schedulers[origin] = Scheduler(self._cluster, self._host, origin)
        scheduler.nodes = self._host.nodes
        scheduler.demand = self._wanted
        scheduler.rise()

    def bury(self, died: Death) -> None:
        """The process of a scheduler is gone; what it had said has been heard."""
        scheduler, root, blameless, read_of = died
        if self._stopping or not self._host.up:
            return
        del self.schedulers[scheduler.origin]
        self._cluster.lose(scheduler)
        event = ev.SchedulerDied(scheduler.origin, None, CRASH, blameless)
        if read_of:
            event = replace(event, crash=replace(CRASH, cause=Cause.VALUE), read_of=read_of)
        elif root is not None and (root.ref, root.replica) in scheduler.handed:
            event = replace(event, running=(root.ref, root.replica))
        elif root is not None:
            event = replace(event, leftover_of=root.task.path, charged=root.crashes)
        self._host.feed(event)
        self._world.post(self._cluster.start_ns(), self._host.when_up, self._start_scheduler)

    def _nudge(self) -> None:
        if not self._nudging:
            self._nudging = True
            self._world.post(NUDGE_NS, self._look_after, None)

    def _look_after(self, _: None) -> None:
        """Have helper threads speak for schedulers that are deep in one task."""
        self._nudging = False
        if self._host.stalled:
            self._host.when_running(self._look_after, None)
            return
        if not self._host.up or self._stopping:
            return
        crowded = False
        for scheduler in self.schedulers.values():
            if scheduler.is_running and not scheduler.asked and (scheduler.demand or len(scheduler.handed) > 1):
                crowded = True
                scheduler.speak()
        if crowded:
            self._nudging = True
            self._world.post(CROWDED_NS, self._look_after, None)

    # ---- the talk with them ----------------------------------------------------------------------------------

    def hear(self, heard: tuple[Scheduler, Iterable[ev.Event]]) -> None:
        """What a scheduler says has arrived."""
        if self._host.stalled:
            self._host.when_running(self.hear, heard)
            return
        scheduler, events = heard
        for event in events:
            if isinstance(event, ev.Finished):
                for ref, replica, _ in event.results:
                    task = scheduler.handed.pop((ref, replica))
                    self._cluster.accounts.send(number_of(task), ref)
            elif isinstance(event, ev.GivenBack):
                self._world.tally("given back", len(event.sparks))
                for copy in event.sparks:
                    del scheduler.handed[copy]
            elif isinstance(event, ev.Hungry):
                scheduler.asked = True
            self._host.feed(event)

    def tell_nodes(self, nodes: list[NodeId]) -> None:
        """Who is alive."""
        for scheduler in self.schedulers.values():
            self._mail(scheduler, scheduler.learn_nodes, nodes)

    def teach(self, effect: fx.Teach) -> None:
        """Effect `Teach`."""
        scheduler = self.schedulers[effect.scheduler]
        self._mail(scheduler, scheduler.learn_code, effect.digest)

    def unlearn(self, effect: fx.Unlearn) -> None:
        """Effect `Unlearn`."""
        scheduler = self.schedulers[effect.scheduler]
        self._mail(scheduler, scheduler.forget_code, effect.digest)

    def start(self, effect: fx.Start) -> None:
        """Effect `Start`."""
        scheduler = self.schedulers.get(effect.scheduler)
        if scheduler is None or scheduler.asked == effect.first:
            raise Wrong(f"scheduler {self._host.node}.{effect.scheduler} gets work and did not ask for it, or has none")
        scheduler.asked = False
        for spark in effect.sparks:
            scheduler.handed[spark.ref, spark.replica] = spark.task
        self._mail(scheduler, scheduler.start_first if effect.first else scheduler.start, effect.sparks)
        self._nudge()

    def deliver(self, effect: fx.Deliver) -> None:
        """Effect `Deliver`; to a dead scheduler it is lost."""
        scheduler = self.schedulers.get(effect.origin)
        if scheduler is not None:
            scheduler.asked = False  # the core takes its hunger back
            self._mail(scheduler, scheduler.deliver, (effect.slot, effect.outcome))

    def cancel(self, effect: fx.Cancel) -> None:
        """Effect `Cancel`."""
        scheduler = self.schedulers[effect.scheduler]
        scheduler.asked = False
        self._mail(scheduler, scheduler.cancel, effect.copies)

    def replace(self, effect: fx.Replace) -> None:
        """Effect `Replace`: whoever still runs one of these is killed."""
        scheduler = self.schedulers.get(effect.scheduler)
        root = None if scheduler is None or scheduler.stack is None else scheduler.stack.root
        if scheduler is not None and root is not None and (root.ref, root.replica) in effect.copies:
            self._world.tally("schedulers replaced")
            scheduler.die(blameless=True)

    def demand(self, effect: fx.Demand) -> None:
        """Effect `Demand`: set the bytes; helper threads are asked later."""
        self._wanted = effect.wanted
        for scheduler in self.schedulers.values():
            scheduler.demand = effect.wanted
        if effect.wanted:
            self._nudge()

    def stop(self, effect: fx.StopSchedulers) -> None:
        """Effect `StopSchedulers`."""
        self._stopping = True
        for scheduler in self.schedulers.values():
            self._mail(scheduler, scheduler.quit, None)

    def _mail(self, scheduler: Scheduler, action: Action, argument: Any) -> None:
        self._world.post(self._local_ns, scheduler.receive, (action, argument))
