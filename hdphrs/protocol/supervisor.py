"""The supervisor: what a node knows of the tasks that it has made and not yet got back.

What lives here: one record a task, from its export until its first result, and the rules that keep the record true: the
tracked location over-approximates the real one, and at most one copy of the newest replica may migrate (paper, sections
4.2 to 4.4).  What does not: the sparks themselves; they are in pools, guards, messages and schedulers.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import replace

from hdphrs.protocol.messages import Auth, Denied, Obsolete, Req
from hdphrs.protocol.tasks import Crash, NodeId, Origin, Orphan, Outcome, Parting, Piece, Spark, Task, TaskRef, Verdict
from hdphrs.records import dataclass


@dataclass(frozen=True, slots=True)
class OnNode:
    """The newest replica is on `node`, in whatever state, if that node lives."""

    node: NodeId


@dataclass(frozen=True, slots=True)
class InTransition:
    """The newest replica is on either node or on its way."""

    victim: NodeId
    thief: NodeId


@dataclass(frozen=True, slots=True)
class Adopted:
    """There is no copy of ours: an orphan on `node` is the same task, and we wait for its end (decision 8)."""

    node: NodeId


Location = OnNode | InTransition | Adopted


@dataclasses.dataclass(slots=True)
class Record:
    """The supervision state in an empty future (paper, Listing 4)."""

    task: Task
    location: Location
    crashes: tuple[Crash, ...]
    replica: int = 0
    placed: bool = False
    """Placed by `spawn_at`: it does not migrate, so the location is exact even without supervision."""
    also_on: tuple[NodeId, ...] = ()
    """Where older copies may be that were not lost: of a task that was started once more, or that was on its way when
    one end of that died."""
    left: bool = False
    """Unsupervised: a copy has left this node, and nobody keeps track of it."""


class Supervisor:
    """The records of one node."""

    def __init__(self, me: NodeId) -> None:
        self._me = me
        self._here = OnNode(me)
        self._records: dict[TaskRef, Record] = {}
        self._vanishing: dict[TaskRef, tuple[int, InTransition]] = {}
        """Unwanted copies that are on their way: they are stopped when it is clear where they are."""

    def __len__(self) -> int:
        """Empty futures."""
        return len(self._records)

    @property
    def vanishing(self) -> int:
        """Unwanted copies of which it is not clear yet where they are."""
        return len(self._vanishing)

    def records(self) -> Iterator[tuple[TaskRef, Record]]:
        """For checks of the invariants."""
        return iter(self._records.items())

    def codes(self) -> Iterator[bytes]:
        """The digests of the code of all tasks that may have to be made again."""
        return (record.task.code for record in self._records.values())

    def record(self, ref: TaskRef) -> Record | None:
        """What is known of a task; None for a full future."""
        return self._records.get(ref)

    def register(
        self, ref: TaskRef, task: Task, crashes: tuple[Crash, ...], pieces: tuple[Piece | Orphan, ...] = ()
    ) -> Spark:
        """A new task of this node, here; a future is registered before its task leaves."""
        self._records[ref] = Record(task, self._here, crashes)
        return Spark(ref, 0, task, crashes, pieces=pieces)

    def register_placed(
        self,
        ref: TaskRef,
        task: Task,
        crashes: tuple[Crash, ...],
        node: NodeId,
        pieces: tuple[Piece | Orphan, ...] = (),
    ) -> Spark:
        """A new thread for `node`, which the caller has found alive in this very step (hole R2)."""
        self._records[ref] = Record(task, OnNode(node), crashes, placed=True, left=node != self._me)
        return Spark(ref, 0, task, crashes, placed=True, pieces=pieces)

    def pin(self, spark: Spark, node: NodeId) -> Spark:
        """A copy that is here, and which `wants` has approved, goes to `node` and stays there."""
        record = self._records[spark.ref]
        record.location = OnNode(node)
        record.placed = True
        record.left = node != self._me
        return replace(spark, placed=True)

    def wants(self, spark: Spark) -> bool:
        """Whether a copy of a task of this node is still worth running (hole R17)."""
        record = self._records.get(spark.ref)
        return record is not None and spark.replica == record.replica

    def is_wanted(self, spark: Spark) -> bool:
        """Whether a copy, whoever its supervisor is, is worth running as far as this node knows."""
        return spark.ref.node != self._me or self.wants(spark)

    def authorise(self, spark: Spark, thief: NodeId) -> None:
        """A copy in this node's own pool, which `wants` has approved, goes to `thief`."""
        record = self._records[spark.ref]
        record.left = True
        if record.task.supervised:
            assert record.location == self._here, f"{spark.ref} is in our pool and tracked as {record.location}"
            record.location = InTransition(self._me, thief)

    def on_req(self, message: Req, *, thief_is_dead: bool) -> Auth | Denied | Obsolete:
        """REQ (Algorithm 1, lines 11 to 20): may this copy move?

        Granted only to the node on which the record has it (hole R22), and never towards a dead thief (hole R15).  No
        record means that the future is full: such a copy is obsolete too (hole R6).
        """
        record = self._records.get(message.ref)
        if record is None or message.replica != record.replica:
            return Obsolete(message.request)
        if thief_is_dead or record.location != OnNode(message.victim):
            return Denied(message.request)
        record.location = InTransition(message.victim, message.thief)
        return Auth(message.request)

    def on_ack(self, ref: TaskRef, replica: int, node: NodeId) -> bool:
        """ACK (lines 26, 27): the copy is on `node`.

        Believed only of the newest replica and from a node that the record names (hole R21); whether it was.
        """
        record = self._records.get(ref)
        if record is None or replica != record.replica or not isinstance(record.location, InTransition):
            return False
        if node not in (record.location.victim, record.location.thief):
            return False
        record.location = OnNode(node)
        return True

    def adopt(self, spark: Spark, node: NodeId) -> None:
        """A copy that is here, and which `wants` has approved, gives way to the orphan on `node`."""
        self._records[spark.ref].location = Adopted(node)

    def double(self, ref: TaskRef) -> Spark:
        """A task that takes long elsewhere is started once more, here; the first answer wins."""
        record = self._records[ref]
        record.also_on += _nodes(record.location)
        record.replica += 1
        record.location = self._here
        return Spark(ref, record.replica, record.task, record.crashes)

    def on_gone(self, ref: TaskRef, replica: int) -> Spark | None:
        """GONE: the adopted orphan will not end; the copy that is to be run instead, if that is news."""
        record = self._records.get(ref)
        if record is None or replica != record.replica or not isinstance(record.location, Adopted):
            return None
        record.location = self._here
        return Spark(ref, replica, record.task, record.crashes)

    def on_result(self, ref: TaskRef, replica: int) -> Record | None:
        """The first one fills the future and ends supervision: its last record.  Later ones are duplicates: None.

        If an older copy has won while the newest is on its way, `arrived` and `settled` tell when it is clear where.
        """
        record = self._records.pop(ref, None)
        if record is not None and replica != record.replica:
            self._follow(ref, record)
        return record

    def cancel(self, ref: TaskRef) -> Record | None:
        """Nobody waits for this task any more: its last record; None for a full future.

        If a copy is on its way, `arrived` and `settled` tell when it is clear where it is.
        """
        record = self._records.pop(ref, None)
        if record is not None:
            self._follow(ref, record)
        return record

    def _follow(self, ref: TaskRef, record: Record) -> None:
        if isinstance(record.location, InTransition):
            self._vanishing[ref] = record.replica, record.location

    def arrived(self, ref: TaskRef, replica: int, node: NodeId) -> bool:
        """ACK: the copy is on `node`; whether nobody wants it."""
        known, location = self._vanishing.get(ref, (-1, None))
        if known != replica or location is None or not covers(location, node):
            return False
        del self._vanishing[ref]
        return True

    def settled(self, dead: NodeId) -> list[tuple[TaskRef, NodeId, bool]]:
        """DEADNODE: unwanted copies that were on their way from it or to it.

        Returns:
            (ref, where it is if it is anywhere, whether that was the thief).
        """
        settled: list[tuple[TaskRef, NodeId, bool]] = []
        for ref, (_, location) in self._vanishing.items():
            if covers(location, dead):
                is_thief = location.victim == dead
                settled.append((ref, location.thief if is_thief else location.victim, is_thief))
        for ref, _, _ in settled:
            del self._vanishing[ref]
        return settled

    def charge(self, spark: Spark) -> None:
        """A copy that ran here is put back, perhaps with a crash: the record of a task of ours learns of it."""
        record = self._records.get(spark.ref)
        if record is not None and spark.replica == record.replica:
            record.crashes = spark.crashes

    def on_death(
        self, dead: NodeId, parting: Parting = Parting.DIED
    ) -> tuple[list[Spark], list[tuple[TaskRef, Task, Outcome]]]:
        """DEADNODE (lines 33 to 36): re-create what may have been lost, threads as sparks too (hole R9).

        Returns:
            The new replicas for the pool, oldest first; and the verdicts on unsupervised tasks that may be lost.
        """
        recreated: list[Spark] = []
        lost: list[tuple[TaskRef, Task, Outcome]] = []
        for ref, record in self._records.items():
            if not record.task.supervised:
                anywhere = parting is not Parting.LEFT_NOTHING
                if record.left and (record.location == OnNode(dead) if record.placed else anywhere):
                    lost.append((ref, record.task, _lost(record.task, dead)))
            elif covers(record.location, dead):
                others = (node for node in _nodes(record.location) if node not in (dead, self._me))
                record.also_on = tuple(dict.fromkeys((*record.also_on, *others)))
                record.replica += 1
                record.location = self._here
                recreated.append(Spark(ref, record.replica, record.task, record.crashes))
        for ref, _, _ in lost:
            del self._records[ref]
        return recreated, lost

    def forget(self, origin: Origin) -> dict[NodeId, list[TaskRef]]:
        """The scheduler that held these futures is gone, nobody will ever read them: where their copies may be."""
        copies: dict[NodeId, list[TaskRef]] = {}
        for ref in [ref for ref in self._records if ref.origin == origin]:
            location = self._records.pop(ref).location
            for node in () if isinstance(location, Adopted) else _nodes(location):
                copies.setdefault(node, []).append(ref)
        return copies


def copy_of(record: Record) -> tuple[NodeId, ...] | None:
    """Where the newest copy of a task may be, unless it is on its way; None for anywhere."""
    if record.task.supervised or record.placed or not record.left:
        return (record.location.node,) if isinstance(record.location, OnNode) else ()
    return None


def covers(location: Location, node: NodeId) -> bool:
    """Whether the newest replica, or the orphan in its place, may be on `node`."""
    return node in _nodes(location)


def _nodes(location: Location) -> tuple[NodeId, ...]:
    return (location.victim, location.thief) if isinstance(location, InTransition) else (location.node,)


def _lost(task: Task, dead: NodeId) -> Outcome:
    sentence = (
        f"task {task.name} was not supervised (the run is --unreliable) and may have been on node {dead}, "
        f"which has died; run it with supervision, or again"
    )
    return Outcome(Verdict.LOST, sentence.encode())
