"""A cluster for plays: tasks that kill their scheduler, and what must hold when nothing is under way.

What lives here: `Stage`.  While messages are under way much is allowed that must be over when they have arrived, and
when every death is known to everybody.  At such a quiet moment

* every record of a supervised task names the one node on which the newest replica is, and no guard is shut;
* every fish that is out is parked at its victim, and no fish is parked that is not out;
* nobody is hungry beside a pool with tasks in it, waits beside one with sparks in it, or has stopped looking;
* all agree who lives, and on the epoch.

`end` asks for what must hold after the last result.  The rest is in `hdphrs.explore.cluster`.
"""

from __future__ import annotations

from collections.abc import Sequence

from hdphrs.audit.scan import Copy, facts
from hdphrs.config import CoreConfig
from hdphrs.explore.cluster import Cluster
from hdphrs.explore.host import Host
from hdphrs.protocol import effects as fx
from hdphrs.protocol import events as ev
from hdphrs.protocol import messages as msg
from hdphrs.protocol.supervisor import Adopted, OnNode
from hdphrs.protocol.tasks import ROOT, NodeId, Origin, Spark, Verdict

DELIVERIES_MAX = 5_000
"""After so many messages in one play somebody talks in circles."""


class Stage(Cluster):
    """A cluster, watched more closely."""

    def __init__(self, nodes: int, *, schedulers: int, config: CoreConfig, poison: Sequence[bytes] = ()) -> None:
        """The tasks at the paths in `poison` kill the scheduler that runs them, each time."""
        self.poison = poison
        self._deliveries = 0
        self._answers: dict[tuple[NodeId, int], type[msg.Message]] = {}
        super().__init__(nodes, schedulers=schedulers, config=config, choose=None)

    def _carried(self, node: int, effects: list[fx.Effect]) -> list[fx.Effect]:
        doubled = [effect.ref for effect in effects if isinstance(effect, fx.Double)]
        for effect in effects:
            match effect:
                case fx.Start(_, sparks):
                    for copy in sparks:
                        if copy.ref not in doubled:  # here nobody's patience lasts for a moment
                            self._is_worth_starting(NodeId(node), copy)
                case fx.Send(thief, msg.NoWork(fish)):
                    assert (thief, fish) not in self._answers, f"fish {fish} of {thief} gets NOWORK after an answer"
                    self._answers[thief, fish] = msg.NoWork
                case fx.Send(thief, msg.Schedule(fish, _)):
                    first = self._answers.setdefault((thief, fish), msg.Schedule)
                    assert first is msg.Schedule, f"fish {fish} of {thief} gets sparks after NOWORK"
                case _:
                    pass
        return super()._carried(node, effects)

    def deliver(self, source: int, to: int, past: int = 0) -> msg.Message | None:
        self._deliveries += 1
        assert self._deliveries <= DELIVERIES_MAX, "they talk in circles"
        return super().deliver(source, to, past)

    def run(self, node: int, origin: int = 1) -> None:
        queue = self.hosts[NodeId(node)].schedulers[Origin(origin)].queue
        copy, spark = next(iter(queue.items()))
        if spark.task.path in self.poison:
            self.crash(node, origin, copy)
        else:
            super().run(node, origin)

    def watch(self) -> None:
        """If this is a quiet moment, hold it against what must be true of one."""
        root = self.core(0)
        running = {node: host for node, host in self.hosts.items() if host.runs}
        if any(self.queues.values()) or self.unruled or list(running) != root.members.live():
            return
        at = self._places(running)
        awaited = [(waiting.ref, waiting.replica) for waiting in root.orphans.awaited()]
        epoch = self._tickets + sum(root.members.is_dead(node) for node in self.hosts)
        for node, host in running.items():
            known = sorted(host.core.members.others())  # in its own order: it may hear a newcomer before the JOINED
            assert known == [other for other in running if other != node], f"{node} misses somebody"
            assert host.core.epoch == epoch, f"{node} is in epoch {host.core.epoch}, not {epoch}"
            assert not list(host.core.victim.guarded()), f"{node} waits for a reply that does not exist"
            for ref, record in host.core.supervisor.records():
                if isinstance(record.location, Adopted):
                    held = running[record.location.node].core.schedulers.held()
                    assert record.task.path in [spark.task.path for spark in held], f"{ref} waits for nothing"
                    assert (ref, record.replica) in awaited, f"{ref} waits for {record.location}, who does not know"
                elif record.task.supervised:
                    place = at.get((ref, record.replica))
                    assert record.location == OnNode(place or ROOT), f"{ref} is on {place}, not {record.location}"
            self._watch_fishing(node, host, running)

    def end(self) -> None:
        """After the last result nothing is left over; TERM then ends everybody, whoever dies meanwhile."""
        self.watch()
        for ref, path in self.spawned.items():
            verdict = self.delivered[ref].verdict
            assert verdict is not Verdict.RAISED
            assert (verdict is Verdict.CRASHED) == (path in self.poison), f"{ref} ends with {verdict}"
        for node, host in self.hosts.items():
            left = [str(ref) for ref, _ in host.core.supervisor.records()] if host.runs else []
            assert not left, f"{node} still supervises {left}"
        self.feed(0, ev.Terminate())
        for node in self.core(0).members.others()[:1]:
            self.kill(node)
            self.suspect(node)
        self.settle()
        assert not any(host.runs for host in self.hosts.values()), "somebody goes on after TERM"

    def _places(self, running: dict[NodeId, Host]) -> dict[Copy, NodeId]:
        return {copy: node for node, host in running.items() for copy in facts(host.core, ()).copies}

    def _watch_fishing(self, node: NodeId, host: Host, running: dict[NodeId, Host]) -> None:
        core, thief = host.core, host.core.thief
        parked = {
            (one.message.fish, victim): None
            for victim, other in running.items()
            for one in other.core.victim._parked
            if one.message.thief == node
        }
        out = {(fish, sent.victim): None for fish, sent in thief._out.items()}
        assert out == parked, f"{node} waits for {list(out)}, and others keep {list(parked)} for it"
        assert not (core.victim.parked and core.pool.stealable), f"{node} keeps thieves waiting beside its sparks"
        hungry = core.schedulers.hungry
        assert not (hungry and len(core.pool)), f"{node} is hungry beside its pool"
        resting = thief._resting_until_s is not None and thief._resting_until_s > self.now
        leaving = core.leaving.under_way
        looks = 0 if leaving else min(core._config.fish_max, len(core.members.staying()))
        assert not hungry or resting or len(out) == looks, f"{node} is hungry and looks for nothing"
        wanted = hungry or bool(core.victim.parked) or leaving
        assert host.demand == wanted, f"the schedulers of {node} see a demand of {host.demand}"

    def _is_worth_starting(self, node: NodeId, copy: Spark) -> None:
        if copy.ref.node == node:
            record = self.core(node).supervisor.record(copy.ref)
            assert record is not None, f"{copy.ref} is started after it has ended"
            assert record.replica == copy.replica, f"an obsolete copy of {copy.ref} is started"

    def _wait(self) -> None:
        self.watch()
        super()._wait()
