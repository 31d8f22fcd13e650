"""Recovery: what is done when a scheduler or a node dies, in which order (paper, section 4.4).

What lives here: the two levels of recovery, each one step in which every role hears of the death.  What does not: the
roles' own rules for it; and who decides that a node is dead (`membership.py`).
"""

from __future__ import annotations

from hdphrs.protocol.code import CodeStore, party
from hdphrs.protocol.counters import Counters
from hdphrs.protocol.effects import Effect, Fence
from hdphrs.protocol.events import SchedulerDied
from hdphrs.protocol.leaving import Leaving
from hdphrs.protocol.membership import Membership
from hdphrs.protocol.orphans import Orphanage
from hdphrs.protocol.outcomes import Outcomes
from hdphrs.protocol.reruns import Reruns
from hdphrs.protocol.schedulers import Schedulers
from hdphrs.protocol.supervisor import Supervisor
from hdphrs.protocol.tasks import ROOT, NodeId, Parting
from hdphrs.protocol.thief import Thief
from hdphrs.protocol.unwanted import Unwanted
from hdphrs.protocol.victim import Victim


class Recovery:
    """That of one node."""

    def __init__(
        self,
        members: Membership,
        supervisor: Supervisor,
        schedulers: Schedulers,
        thief: Thief,
        victim: Victim,
        leaving: Leaving,
        code: CodeStore,
        orphans: Orphanage,
        reruns: Reruns,
        unwanted: Unwanted,
        outcomes: Outcomes,
        counters: Counters,
    ) -> None:
        self._me = members.me
        self._members = members
        self._supervisor = supervisor
        self._schedulers = schedulers
        self._thief = thief
        self._victim = victim
        self._leaving = leaving
        self._code = code
        self._orphans = orphans
        self._reruns = reruns
        self._unwanted = unwanted
        self._outcomes = outcomes
        self._counters = counters

    def on_scheduler_died(self, event: SchedulerDied) -> list[Effect]:
        """The first of two levels of recovery: nothing of this is noticed outside, but for the time it takes."""
        self._counters["crashes"] += 1
        origin = event.scheduler
        survivors, given_up = self._schedulers.fall(origin, event.running, None if event.blameless else event.crash)
        if event.leftover_of and not event.blameless:
            self._schedulers.charge(event.leftover_of, (*event.charged, event.crash))
        for spark in survivors:
            self._supervisor.charge(spark)
        self._code.forget(party(origin))
        effects = self._unwanted.forget(origin)
        for ref, replica, outcome in given_up:
            if not self._unwanted.has_stopped(ref, replica):
                effects += self._reruns.answer(ref, replica, outcome)
        wanted = [spark for spark in self._unwanted.without_orphans(survivors) if self._supervisor.is_wanted(spark)]
        effects += self._reruns.on_lost(lambda copy: copy.ref.node == self._me and copy.ref.origin == origin)
        if event.read_of and not event.blameless:
            crashes = self._schedulers.accuse(event.read_of, event.crash)
            effects += self._reruns.discard(
                event.read_of, crashes
            )  # after what was retained, and before anybody asks for it
        return [*effects, *self._reruns.report(asked=False), *self._reruns.ask(wanted)]

    def on_dead_node(self, dead: NodeId, parting: Parting = Parting.DIED) -> list[Effect]:
        """DEADNODE (lines 28 to 36): the second level of recovery.  Of a node that has left too: it may have gone
        before it was done, and what was about to be sent to it is where it was, under a record that names it."""
        self._members.bury(dead)
        self._counters["deaths_seen" if parting is Parting.DIED else "leaves_seen"] += 1
        self._code.forget(("node", dead))
        self._thief.on_death(dead)
        self._leaving.on_death(dead)
        self._counters["orphans"] += self._reruns.purge(lambda spark: spark.ref.node == dead)
        effects, orphans = self._victim.on_death(dead)
        self._counters["orphans"] += orphans
        effects += self._reruns.on_lost(lambda copy: copy.other == dead)
        effects += self._reruns.report(asked=self._me != ROOT)
        if self._me == ROOT:
            effects += self._orphans.on_death(dead, self._members.others())
        effects += self._unwanted.settle(dead)
        recreated, lost = self._supervisor.on_death(dead, parting)
        effects += self._reruns.ask(recreated)
        remaining = sum(self._supervisor.wants(spark) for spark in recreated)
        self._counters["replicas"] += remaining
        for ref, task, outcome in lost:
            effects.append(self._outcomes.lose(ref, task, outcome))
        return [Fence(dead, remaining, parting), *effects]
