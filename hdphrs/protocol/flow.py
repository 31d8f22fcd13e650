"""The flow: after each event, what there is goes to whoever waits for it, and what is missing is asked for.

What lives here: the hungry are fed, then thieves who wait, then this node looks elsewhere and asks its own schedulers
for more; a node that leaves gives everything away instead, and goes when it has nothing left.  What does not: the rules
by which each role gives, asks and leaves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from hdphrs.protocol.cancelling import Cancelling
from hdphrs.protocol.code import CodeStore, party
from hdphrs.protocol.counters import Counters
from hdphrs.protocol.effects import Demand, Double, Effect, Halt, Send, Start, StopSchedulers, Teach
from hdphrs.protocol.leaving import Leaving
from hdphrs.protocol.membership import Membership
from hdphrs.protocol.messages import Bye
from hdphrs.protocol.reruns import Reruns
from hdphrs.protocol.schedulers import Schedulers
from hdphrs.protocol.sparkpool import Sparkpool
from hdphrs.protocol.stragglers import Stragglers
from hdphrs.protocol.supervisor import Supervisor
from hdphrs.protocol.tasks import ROOT, TaskRef
from hdphrs.protocol.thief import Thief
from hdphrs.protocol.victim import Victim


class Flow:
    """That of one node."""

    def __init__(
        self,
        members: Membership,
        choose: Callable[[int], int],
        pool: Sparkpool,
        supervisor: Supervisor,
        schedulers: Schedulers,
        thief: Thief,
        victim: Victim,
        leaving: Leaving,
        code: CodeStore,
        cancelling: Cancelling,
        reruns: Reruns,
        stragglers: Stragglers,
        counters: Counters,
    ) -> None:
        self._members = members
        self._choose = choose
        self._pool = pool
        self._supervisor = supervisor
        self._schedulers = schedulers
        self._thief = thief
        self._victim = victim
        self._leaving = leaving
        self._code = code
        self._cancelling = cancelling
        self._reruns = reruns
        self._stragglers = stragglers
        self._counters = counters
        self._demanding = False
        """What the schedulers were last told."""

    def settle(self, now: float, *, insist: bool) -> list[Effect]:
        """Feed the hungry, then the thieves who wait, then look elsewhere; ask the schedulers for more if needed."""
        effects: list[Effect] = []
        pool, schedulers = self._pool, self._schedulers
        leaving = self._leaving.under_way
        if leaving and self._holds_something():
            self._leaving.stir()
        if len(pool):
            if pool.stealable:
                self._victim.stir(now)  # before anybody gets them
            if schedulers.hungry:
                effects += self._hand_out(threads_only=leaving)
        parked = self._victim.parked
        if parked:
            effects += self._victim.serve_parked()
            parked = self._victim.parked
        if leaving:
            effects += self._evacuate()
        if len(self._cancelling):
            effects += self._cancelling.look(now)
        hungry = not leaving and schedulers.hungry and not len(pool)
        if hungry and (others := self._members.staying()):
            fish = self._thief.hunt(others, now)
            self._counters["fish_sent"] += len(fish)
            effects += fish
        idle = hungry or (parked > 0 and not pool.stealable)
        late = self._stragglers.look(now, idle=idle and not leaving)
        if late:
            return effects + self._double(late) + self.settle(now, insist=insist)
        wanted = leaving or idle
        if wanted != self._demanding or (wanted and insist):
            self._demanding = wanted
            effects.append(Demand(wanted))
        return [*effects, *self._part(now)] if leaving else effects

    def _hand_out(self, *, threads_only: bool) -> list[Effect]:
        """Tasks for the hungry."""
        effects: list[Effect] = []
        handed, given_up = self._schedulers.assign(alone=not self._members.staying(), threads_only=threads_only)
        for origin, sparks in handed:
            self._counters["tasks_started"] += len(sparks)
            for digest, data in self._code.missing(party(origin), sparks):
                effects.append(Teach(origin, digest, data))
            effects.append(Start(origin, tuple(sparks)))
        for ref, replica, outcome in given_up:
            effects += self._reruns.answer(ref, replica, outcome)
        return effects

    def _double(self, stragglers: Iterable[TaskRef]) -> list[Effect]:
        """Start these once more."""
        effects: list[Effect] = []
        for ref in stragglers:
            spark = self._supervisor.double(ref)
            self._counters["doubled"] += 1
            effects.append(Double(ref, spark.replica, spark.task.name))
            self._pool.add(spark)
        return effects

    def _evacuate(self) -> list[Effect]:
        if not self._pool.stealable:
            return []
        homes = self._members.staying()
        first = self._choose(len(homes))
        return self._victim.evacuate([*homes[first:], *homes[:first]])

    def _part(self, now: float) -> list[Effect]:
        effects, parting = self._leaving.proceed(now, holds=self._holds_something())
        if parting is None:
            return effects
        return [*effects, StopSchedulers(), Send(ROOT, Bye(parting, tuple(self._counters.items()))), Halt()]

    def _holds_something(self) -> bool:
        guarded = any(True for _ in self._victim.guarded())
        waiting = any(True for _ in self._reruns)
        return bool(len(self._pool) or guarded or waiting or self._schedulers.busy or len(self._supervisor))
