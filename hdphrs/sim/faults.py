"""Faults: where and when each of those that a seed draws strikes.

What lives here: the plan.  Everything strikes within the time that the program would take about, and is over when
`calm_ns` has come: from then on the program must end.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from hdphrs.protocol import effects as fx
from hdphrs.protocol import events as ev
from hdphrs.protocol import messages as msg
from hdphrs.sim.cluster import Cluster
from hdphrs.sim.draw import Draw
from hdphrs.sim.host import Host
from hdphrs.sim.network import Link
from hdphrs.sim.paper import heaviest_ns
from hdphrs.sim.scheduler import Scheduler

SETTLE_NS = 2_000_000
"""Time that joining and starting take, at least."""

AMBUSHED = (
    msg.Fish,
    msg.Schedule,
    msg.Schedule,
    msg.Req,
    msg.Req,
    msg.Auth,
    msg.Ack,
    msg.Push,
    msg.Result,
    msg.Suspect,
    msg.Keep,
    msg.Recall,
    msg.Recalled,
)
"""Kinds of messages; some are likelier."""

AMBUSHED_LEAVES = (msg.Leaving, msg.Noted, msg.Bye, msg.Schedule, msg.Auth)

GRACE_NS = 1_000_000_000
"""Time enough to finish what runs, in most runs."""

LOOKS = 3
"""Looks at the whole cluster, beside the steps of the follower."""


class Faults:
    """The faults of one run."""

    def __init__(self, cluster: Cluster, drawn: Draw, chance: Random) -> None:
        self._cluster = cluster
        self._world = cluster.world
        self._drawn = drawn
        self._chance = chance
        self._blamed: dict[bytes, None] = {}
        """Tasks that a `crash` has been blamed on: no innocent one may use up its attempts."""
        cores = drawn.nodes * drawn.cores
        if cluster.program.is_paper:  # all of them strike before the end
            self._horizon_ns = SETTLE_NS + heaviest_ns(cluster.program, drawn.nodes, drawn.cores)
        else:
            self._horizon_ns = SETTLE_NS + 20 * drawn.latency_us * 1000 + 2 * cluster.program.work_ns // cores
        self.calm_ns: int = self._horizon_ns
        """When the last fault is over."""

    def plan(self) -> None:
        """Post everything."""
        drawn = self._drawn
        for count, strike in (
            (drawn.kills, self._kill),
            (drawn.power_losses, self._lose_power),
            (drawn.departures, self._depart),
            (drawn.cancels, self._cancel),
            (drawn.crashes, self._crash),
            (drawn.blameless, self._kill_scheduler),
            (drawn.joins, self._join),
        ):
            for _ in range(count):
                self._world.post(self._chance.randrange(self._horizon_ns), strike)
        for _ in range(drawn.ambushes):
            self._lay_ambush(AMBUSHED)
        for look in range(1, LOOKS + 1):
            self._world.post(self._horizon_ns * look // LOOKS, self._cluster.look)
        for count, strike_for in (
            (drawn.cuts, self._cut),
            (drawn.one_way_cuts, self._cut_one_way),
            (drawn.isolations, self._isolate),
            (drawn.stalls, self._stall),
            (drawn.root_stalls, self._stall_root),
            (drawn.crowds, self._crowd),
        ):
            for _ in range(count):
                at_ns, for_ns = self._chance.randrange(self._horizon_ns), self._duration_ns()
                self.calm_ns = max(self.calm_ns, at_ns + for_ns)
                self._world.post(at_ns, strike_for, for_ns)
        self._world.post(self.calm_ns, lambda _: self._cluster.network.ambush.clear())

    def _duration_ns(self) -> int:
        """Shorter than the detection, or longer."""
        detect_ns = self._drawn.detect_ms * 1_000_000
        if self._chance.randrange(100) < self._drawn.long_pct:
            return detect_ns * self._chance.randint(90, 300) // 100
        return detect_ns * self._chance.randint(1, 60) // 100

    def _somebody(self) -> Host | None:
        hosts = self._cluster.others()
        return self._chance.choice(hosts) if hosts else None

    # ---- deaths and joins ------------------------------------------------------------------------------------

    def _kill(self, _: None) -> None:
        self._end("kills", fx.Halt("killed"), in_the_middle=False)

    def _lose_power(self, _: None) -> None:
        self._end("power losses", fx.Halt("without power"), in_the_middle=True)

    def _depart(self, _: None) -> None:
        """Time to leave: none, some, or plenty; and now and then somebody dies of it."""
        host = self._somebody()
        if host is None or host.core.me is None:
            return
        grace_ns = self._chance.choice((0, self._horizon_ns // 20, self._horizon_ns, GRACE_NS))
        self._world.tally("departures")
        self._world.note(host.node, "leaves within", grace_ns)
        host.when_running(host.feed, ev.Leave(grace_ns / 1e9))
        if self._chance.randrange(4) == 0:
            self._lay_ambush(AMBUSHED_LEAVES)

    def _lay_ambush(self, kinds: Sequence[type[msg.Message]]) -> None:
        """Wait for the n-th message of one kind; the one who sent it dies, or the one who gets it, before or after."""
        kind = self._chance.choice(kinds)
        left = self._chance.choice((1, 2, 4, 8, 16))
        for_sender = self._chance.randrange(2) == 0
        after_pct = self._chance.choice((0, 50, 99, 101))
        in_the_middle = self._chance.randrange(2) == 0

        def strike(link: Link, arrives_in_ns: int) -> None:
            nonlocal left
            host = link.sender if for_sender else link.receiver
            if host.is_root:
                return
            left -= 1
            if left == 0:
                self._cluster.network.ambush.pop(kind, None)
                self._world.post(arrives_in_ns * after_pct // 100, fall, host)

        def fall(host: Host) -> None:
            if host.up:
                self._world.tally("ambushes")
                self._world.note(host.node, "ambush at", kind.__name__)
                host.end(fx.Halt("killed"), in_the_middle=in_the_middle)

        self._cluster.network.ambush[kind] = strike

    def _end(self, what: str, halt: fx.Halt, *, in_the_middle: bool) -> None:
        host = self._somebody()
        if host is not None:
            self._world.tally(what)
            self._world.note(host.node, what)
            host.end(halt, in_the_middle=in_the_middle)

    def _join(self, _: None) -> None:
        if self._cluster.root.up:
            self._world.tally("joins")
            self._cluster.join()

    def _cancel(self, _: None) -> None:
        """The program gives up one of its futures."""
        empty = self._cluster.client.empty
        if empty:
            self._world.tally("cancels")
            self._cluster.client.cancel(self._chance.choice(empty))

    # ---- schedulers ------------------------------------------------------------------------------------------

    def _crash(self, _: None) -> None:
        """Blamed on the task that runs."""
        running = [
            (host, scheduler)
            for host, scheduler in self._schedulers()
            if scheduler.stack is not None and scheduler.stack.root.task.path not in self._blamed
        ]
        if running:
            host, scheduler = self._chance.choice(running)
            assert scheduler.stack is not None
            self._blamed[scheduler.stack.root.task.path] = None
            self._world.tally("crashes of schedulers")
            self._world.note(host.node, "crash of scheduler", scheduler.origin)
            scheduler.die(blameless=False)

    def _kill_scheduler(self, _: None) -> None:
        schedulers = self._schedulers()
        if schedulers:
            host, scheduler = self._chance.choice(schedulers)
            self._world.tally("schedulers killed")
            self._world.note(host.node, "kill of scheduler", scheduler.origin)
            scheduler.die(blameless=True)

    def _schedulers(self) -> list[tuple[Host, Scheduler]]:
        hosts = [self._cluster.root, *self._cluster.others()]
        return [(host, one) for host in hosts if host.up for one in host.crew.schedulers.values() if not one.dead]

    # ---- cuts and stops --------------------------------------------------------------------------------------

    def _cut(self, for_ns: int) -> None:
        pair = self._pair()
        if pair is not None:
            self._world.tally("cuts")
            self._cut_links([pair, pair[::-1]], for_ns)

    def _cut_one_way(self, for_ns: int) -> None:
        """Often from the root: then one node learns late who is dead."""
        somebody = self._somebody() if self._chance.randrange(2) else None
        pair = self._pair() if somebody is None else (self._cluster.root, somebody)
        if pair is not None:
            self._world.tally("one-way cuts")
            self._cut_links([pair], for_ns)

    def _isolate(self, for_ns: int) -> None:
        host = self._somebody()
        if host is not None:
            self._world.tally("isolations")
            others = [other for other in (self._cluster.root, *self._cluster.others()) if other is not host]
            self._cut_links([pair for other in others for pair in ((host, other), (other, host))], for_ns)

    def _pair(self) -> tuple[Host, Host] | None:
        hosts = [self._cluster.root, *self._cluster.others()]
        if len(hosts) < 2:
            return None
        one, other = self._chance.sample(hosts, 2)
        return one, other

    def _cut_links(self, links: list[tuple[Host, Host]], for_ns: int) -> None:
        for sender, receiver in links:
            self._world.note(sender.node, "cut to", receiver.node)
            self._cluster.network.cut(sender, receiver)
            self._cluster.silence.watch(receiver, sender)
        self._world.post(for_ns, self._mend, links)

    def _mend(self, links: list[tuple[Host, Host]]) -> None:
        for sender, receiver in links:
            self._world.note(sender.node, "mended to", receiver.node)
            self._cluster.mend(sender, receiver)

    def _stall(self, for_ns: int) -> None:
        host = self._somebody()
        if host is not None:
            self._world.tally("stalls")
            self._stop(host, for_ns)

    def _stall_root(self, for_ns: int) -> None:
        if self._cluster.root.up:
            self._world.tally("root stalls")
            self._stop(self._cluster.root, for_ns)

    def _crowd(self, for_ns: int) -> None:
        """Of the nodes, the root too."""
        host = self._chance.choice([self._cluster.root, *self._cluster.others()])
        if host.up:
            self._world.tally("crowds")
            host.when_running(host.feed, ev.Crowded(True))
            self._world.post(for_ns, self._clear, host)

    def _clear(self, host: Host) -> None:
        host.when_running(host.feed, ev.Crowded(False))

    def _stop(self, host: Host, for_ns: int) -> None:
        self._world.note(host.node, "stopped")
        self._cluster.stall(host, with_schedulers=self._chance.randrange(2) == 0)
        self._world.post(for_ns, self._go_on, host)

    def _go_on(self, host: Host) -> None:
        self._world.note(host.node, "goes on")
        self._cluster.go_on(host)
