"""The unwanted: copies of tasks whose outcome nobody will read.

What lives here: finding the copies of cancelled tasks, of losers, of those that take too long and of dead futures,
wherever in the cluster they are, and ending them.  What does not: what becomes of those that a scheduler of this node
has (`cancelling.py`), and of orphans that run on (`reruns.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from hdphrs.protocol.cancelling import Cancelling
from hdphrs.protocol.counters import Counters
from hdphrs.protocol.effects import Effect, Send
from hdphrs.protocol.limits import Limits
from hdphrs.protocol.membership import Membership
from hdphrs.protocol.messages import Ack, Cancel, Purge
from hdphrs.protocol.orphans import Orphanage, Say
from hdphrs.protocol.pieces import Pieces, piece_of
from hdphrs.protocol.reruns import Reruns
from hdphrs.protocol.stragglers import Stragglers
from hdphrs.protocol.supervisor import Adopted, Record, Supervisor, copy_of
from hdphrs.protocol.tasks import PROGRAM, ROOT, NodeId, Origin, Outcome, Spark, TaskRef, Verdict
from hdphrs.protocol.victim import Victim

PURGE_MAX = 10_000
"""Refs in one PURGE or CANCEL."""


class Unwanted:
    """What one node does about them."""

    def __init__(
        self,
        members: Membership,
        supervisor: Supervisor,
        victim: Victim,
        reruns: Reruns,
        cancelling: Cancelling,
        limits: Limits,
        stragglers: Stragglers,
        pieces: Pieces,
        orphans: Orphanage,
        counters: Counters,
        say: Say,
    ) -> None:
        self._me = members.me
        self._members = members
        self._supervisor = supervisor
        self._victim = victim
        self._reruns = reruns
        self._cancelling = cancelling
        self._limits = limits
        self._stragglers = stragglers
        self._pieces = pieces
        self._orphans = orphans
        self._counters = counters
        self._say = say

    def cancel(self, refs: Iterable[TaskRef]) -> list[Effect]:
        """Nobody will read these futures: their copies vanish, or are stopped, wherever they are."""
        copies: dict[NodeId, list[TaskRef]] = {}
        older: dict[NodeId, list[TaskRef]] = {}
        orphans: dict[NodeId, list[bytes]] = {}
        for ref in refs:
            record = self._supervisor.cancel(ref)
            if record is None:
                continue
            self._counters["cancelled"] += 1
            self._stragglers.drop(ref)
            if ref.origin == PROGRAM:
                self._pieces.cover(record.task.path)  # it is never run again
            if isinstance(record.location, Adopted):
                orphans.setdefault(record.location.node, []).append(record.task.path)
            nodes = copy_of(record)
            for node in self._members.live() if nodes is None else nodes:
                copies.setdefault(node, []).append(ref)
            for node in record.also_on:
                older.setdefault(node, []).append(ref)
        return [*self.stop(copies, orphans), *self.stop(older, {}, late=True)]

    def stop(
        self, copies: Mapping[NodeId, list[TaskRef]], orphans: Mapping[NodeId, list[bytes]], *, late: bool = False
    ) -> list[Effect]:
        """Tell nodes which copies nobody wants any more.

        Args:
            late: not before they have heard of a death of which we have heard: the dead may have sent them.
        """
        effects: list[Effect] = []
        for node in dict.fromkeys((*copies, *orphans)):
            refs, paths = copies.get(node, []), orphans.get(node, [])
            for start in range(0, 0 if self._members.is_dead(node) else max(len(refs), len(paths)), PURGE_MAX):
                end = start + PURGE_MAX
                message = Cancel(node, tuple(refs[start:end]), tuple(paths[start:end]))
                effects += self._say(ROOT if late and node != self._me else node, message)
        return effects

    def stop_losers(self, ref: TaskRef, replica: int, record: Record, source: NodeId) -> list[Effect]:
        """One of several copies has ended, and the others need not."""
        is_newest = replica == record.replica
        newest = () if is_newest else copy_of(record) or ()
        older = [node for node in record.also_on if is_newest or node != source]
        return [
            *self.stop({node: [ref] for node in newest}, {}),
            *self.stop({node: [ref] for node in older}, {}, late=True),
        ]

    def on_cancel(self, message: Cancel) -> list[Effect]:
        """CANCEL: at the root on its way, or where the copies are."""
        if message.node != self._me:
            return [Send(message.node, message)] if self._members.is_live(message.node) else []
        refs, paths = frozenset(message.refs), frozenset(message.orphans)

        def is_cancelled(spark: Spark) -> bool:
            return spark.ref in refs or (spark.task.path in paths and self._reruns.is_orphan(spark.ref))

        self._reruns.purge(is_cancelled)
        guarded = [spark for spark in self._victim.guarded() if is_cancelled(spark)]
        effects, _ = self._victim.drop(is_cancelled)
        for spark in guarded:  # its supervisor, which lives, may wait for an ACK, and AUTH finds nothing here now
            assert not self._members.is_dead(spark.ref.node), "what the dead supervised is guarded no more"
            effects += self._say(spark.ref.node, Ack(spark.ref, spark.replica, self._me))
        effects += self._cancelling.stop(is_cancelled)
        return effects + self._reruns.report(asked=False)

    def end_overdue(self, now: float) -> list[Effect]:
        """Tasks that have run for longer than they may: their futures fail, and they are stopped as if cancelled."""
        late = [spark for spark in self._limits.overdue(now) if not self._cancelling.covers(spark)]
        if not late:
            return []
        self._counters["timed_out"] += len(late)
        effects: list[Effect] = []
        for spark in late:
            task = spark.task
            sentence = f"task {task.name} has run for {task.timeout_s:g} s on node {self._me}, as long as it may"
            outcome = Outcome(Verdict.TIMED_OUT, sentence.encode())
            if task.supervised and spark.ref.origin != PROGRAM:
                # its parent may be lost with the scheduler that it does not leave, and must not run it again
                effects += self._reruns.keep([piece_of(task, outcome)])
            effects += self._reruns.answer(spark.ref, spark.replica, outcome)
        copies = frozenset((spark.ref, spark.replica) for spark in late)
        effects += self._cancelling.stop(lambda spark: (spark.ref, spark.replica) in copies)
        return effects + self._reruns.report(asked=False)

    def forget(self, origin: Origin) -> list[Effect]:
        """A scheduler is dead: nobody will read its futures, and nothing takes long there any more."""
        self._stragglers.forget(origin)
        self._limits.forget(origin)
        effects = self.cancel(self._below(origin, self._cancelling.paths_on(origin)))
        return effects + self._disown(self._supervisor.forget(origin))

    def has_stopped(self, ref: TaskRef, replica: int) -> bool:
        """A scheduler has no part in this copy any more; whether nobody wants its outcome."""
        if not self._cancelling.end(ref, replica):
            return False
        self._reruns.acquit(ref)
        return True

    def on_purge(self, message: Purge) -> list[Effect]:
        """PURGE: at the root on its way, or at the node where the orphans are."""
        if message.node == self._me:
            self._counters["orphans"] += self._reruns.disown(message.refs)
            return self._reruns.report(asked=True)
        if not self._members.is_live(message.node):
            return []
        self._orphans.expect([message.node])
        return [Send(message.node, message)]

    def without_orphans(self, sparks: list[Spark]) -> list[Spark]:
        """Of sparks that schedulers had, those that somebody waits for."""
        sparks = [spark for spark in sparks if not self.has_stopped(spark.ref, spark.replica)]
        wanted = self._reruns.without_orphans(sparks)
        self._counters["orphans"] += len(sparks) - len(wanted)
        return wanted

    def settle(self, dead: NodeId) -> list[Effect]:
        """Of cancelled tasks that were on their way, the other end is where they are, if anywhere.

        It may have accepted what the dead victim had sent, until it has heard of this death: so it hears of the
        cancellation from the root too, and later.  If the thief is dead, the victim has had our leave before this.
        """
        effects: list[Effect] = []
        for ref, node, is_thief in self._supervisor.settled(dead):
            effects += self._say(ROOT if is_thief else node, Cancel(node, (ref,)))
        return effects

    def _below(self, origin: Origin, paths: tuple[bytes, ...]) -> list[TaskRef]:
        """Of the futures of one scheduler, those of tasks below these."""
        return [
            ref
            for ref, record in (self._supervisor.records() if paths else ())
            if ref.origin == origin and record.task.path.startswith(paths)
        ]

    def _disown(self, copies: Mapping[NodeId, list[TaskRef]]) -> list[Effect]:
        """Nobody waits for these copies any more."""
        effects: list[Effect] = []
        for node, refs in copies.items():
            if node == self._me:
                self._counters["orphans"] += self._reruns.disown(refs)
                continue
            for start in range(0, len(refs), PURGE_MAX):
                effects += self._say(ROOT, Purge(node, tuple(refs[start : start + PURGE_MAX])))
        return effects + self._reruns.report(asked=False)
