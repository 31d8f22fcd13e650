"""Outcomes: from the scheduler that has run a task to the future that is filled.

What lives here: what follows from the end of a copy on the node that has run it, and from the first RESULT on the node
that supervises it.  What does not: the way between the two (`reruns.Reruns.answer`), and what is retained of results.
"""

from __future__ import annotations

from collections.abc import Iterable

from hdphrs.protocol.counters import Counters
from hdphrs.protocol.effects import Effect
from hdphrs.protocol.limits import Limits
from hdphrs.protocol.membership import Membership
from hdphrs.protocol.pieces import Pieces, piece_of
from hdphrs.protocol.reruns import Reruns
from hdphrs.protocol.schedulers import Schedulers
from hdphrs.protocol.stragglers import Stragglers
from hdphrs.protocol.supervisor import Supervisor
from hdphrs.protocol.tasks import PROGRAM, ROOT, NodeId, Origin, Outcome, Task, TaskRef, Verdict
from hdphrs.protocol.unwanted import Unwanted


class Outcomes:
    """Those that come through one node."""

    def __init__(
        self,
        members: Membership,
        supervisor: Supervisor,
        schedulers: Schedulers,
        reruns: Reruns,
        limits: Limits,
        stragglers: Stragglers,
        pieces: Pieces,
        unwanted: Unwanted,
        counters: Counters,
    ) -> None:
        self._me = members.me
        self._supervisor = supervisor
        self._schedulers = schedulers
        self._reruns = reruns
        self._limits = limits
        self._stragglers = stragglers
        self._pieces = pieces
        self._unwanted = unwanted
        self._counters = counters

    def on_finished(self, scheduler: Origin, results: Iterable[tuple[TaskRef, int, Outcome]]) -> list[Effect]:
        """A scheduler has run these copies to their ends."""
        effects: list[Effect] = []
        finished: list[tuple[TaskRef, Task, Outcome]] = []
        for ref, replica, outcome in results:
            task = self._schedulers.finish(scheduler, ref, replica)
            self._limits.end(ref, replica)
            if not self._unwanted.has_stopped(ref, replica):
                finished.append((ref, task, outcome))
                effects += self._reruns.answer(ref, replica, outcome)
        return effects + self._reruns.on_finished(finished)

    def fill(self, ref: TaskRef, replica: int, outcome: Outcome, source: NodeId) -> list[Effect]:
        """RESULT: the first one fills the future."""
        record = self._supervisor.on_result(ref, replica)
        if record is None:
            self._counters["duplicates"] += 1
            return []
        self._learn(ref, record.task, outcome, source)
        deliver = self._schedulers.deliver(ref, outcome)
        return [deliver, *self._unwanted.stop_losers(ref, replica, record, source)] if record.replica else [deliver]

    def lose(self, ref: TaskRef, task: Task, outcome: Outcome) -> Effect:
        """A task that nobody supervised is lost with a node."""
        self._learn(ref, task, outcome, self._me)
        return self._schedulers.deliver(ref, outcome)

    def _learn(self, ref: TaskRef, task: Task, outcome: Outcome, source: NodeId) -> None:
        """What the end of a task of this node says about others."""
        self._stragglers.on_end(ref, task, outcome)
        if outcome.verdict is Verdict.CRASHED:
            self._schedulers.convict(task.path, outcome.crashes)
        if ref.origin == PROGRAM:
            self._pieces.cover(task.path)  # it is never run again
        elif not self._reruns.is_dear(task, outcome):
            self._reruns.on_filled(ref, task, outcome, ROOT if self._me == ROOT else source)  # the root is here to stay
        elif self._me == ROOT:
            self._pieces.keep(piece_of(task, outcome))
