"""Intake: how tasks come to a node.

What lives here: new tasks of this node's schedulers and program, exported or placed, of which it becomes the
supervisor; and sparks that its thief has caught.  What does not: tasks that have been here before (`homes.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from hdphrs.protocol.counters import Counters
from hdphrs.protocol.effects import Effect, Send
from hdphrs.protocol.homes import Homes
from hdphrs.protocol.membership import Membership
from hdphrs.protocol.messages import Ack
from hdphrs.protocol.orphans import Say
from hdphrs.protocol.pieces import Pieces
from hdphrs.protocol.reruns import Reruns, whole
from hdphrs.protocol.schedulers import Schedulers, crashed
from hdphrs.protocol.sparkpool import Sparkpool
from hdphrs.protocol.supervisor import Supervisor
from hdphrs.protocol.tasks import (
    PROGRAM,
    Blame,
    FishId,
    NodeId,
    Origin,
    Orphan,
    Outcome,
    Piece,
    Spark,
    Task,
    TaskRef,
    Verdict,
)
from hdphrs.protocol.thief import Thief


class Intake:
    """That of one node."""

    def __init__(
        self,
        members: Membership,
        pool: Sparkpool,
        supervisor: Supervisor,
        schedulers: Schedulers,
        thief: Thief,
        pieces: Pieces,
        reruns: Reruns,
        homes: Homes,
        counters: Counters,
        say: Say,
    ) -> None:
        self._me = members.me
        self._members = members
        self._pool = pool
        self._supervisor = supervisor
        self._schedulers = schedulers
        self._thief = thief
        self._pieces = pieces
        self._reruns = reruns
        self._homes = homes
        self._counters = counters
        self._say = say

    def on_exported(self, origin: Origin, tasks: Iterable[tuple[int, Task]]) -> list[Effect]:
        """A scheduler or the program has new tasks: they are supervised from here on."""
        me = self._me
        crashes_of, add, register = self._schedulers.crashes_of, self._pool.add, self._supervisor.register
        left_of = self._left_of
        again: list[Spark] = []
        effects: list[Effect] = []
        exported = 0
        for slot, task in tasks:
            crashes = crashes_of(task.path)
            if crashes and self._schedulers.is_given_up(task, crashes):
                effects.append(self._schedulers.deliver(TaskRef(me, origin, slot), crashed(task, crashes)))
                continue
            spark = register(TaskRef(me, origin, slot), task, crashes, left_of(origin, task.path))
            if spark.pieces:
                again.append(spark)
            elif task.pin:
                effects += self._homes.pin(spark)
            else:
                add(spark)
            exported += 1
        self._counters["exported"] += exported
        self._thief.refresh()
        return effects + self._reruns.resume(again) if again else effects

    def on_placed(self, ref: TaskRef, task: Task, node: NodeId) -> list[Effect]:
        """`spawn_at`: a new thread for `node`."""
        crashes = self._schedulers.crashes_of(task.path)
        pieces = self._left_of(ref.origin, task.path)
        self._counters["placed"] += 1
        if self._schedulers.is_given_up(task, crashes):
            return [self._schedulers.deliver(ref, crashed(task, crashes))]
        if self._members.is_going(node):
            self._pool.add(self._supervisor.register(ref, task, crashes, pieces))
            return []
        if not self._members.is_live(node):
            sentence = f"spawn_at: task {task.name} was to run on node {node}, and there is no such node"
            return [self._schedulers.deliver(ref, Outcome(Verdict.LOST, sentence.encode()))]
        if whole(task, pieces):
            return self._reruns.resume([self._supervisor.register(ref, task, crashes, pieces)])
        spark = self._supervisor.register_placed(ref, task, crashes, node, pieces)
        return self._homes.push(node, spark)

    def on_schedule(
        self, victim: NodeId, fish: FishId, sparks: Sequence[Spark], blame: Sequence[Blame]
    ) -> list[Effect]:
        """SCHEDULE (lines 23 to 25): into the pool with them, and the supervisors are told.

        Args:
            blame: what the victim remembers of them, and of what descends from them.
        """
        for charge in blame:
            self._schedulers.charge(charge.path, charge.crashes)
        me = self._me
        effects: list[Effect] = []
        makers = [spark.ref.node for spark in sparks if spark.ref.node != me]
        self._thief.on_schedule(makers[-1] if makers else victim, fish)
        for spark in sparks:
            supervisor = spark.ref.node
            if self._members.is_dead(supervisor):
                self._counters["orphans"] += 1
                continue
            self._pool.add(spark)
            self._counters["stolen"] += 1
            if not spark.task.supervised:
                continue
            if supervisor == me:
                effects += self._say(me, Ack(spark.ref, spark.replica, me))
            else:
                effects.append(Send(supervisor, Ack(spark.ref, spark.replica, me)))
        return effects

    def _left_of(self, origin: Origin, path: bytes) -> tuple[Piece | Orphan, ...]:
        """What is left of a new task: of the program's, what an earlier run has left to the ledger (decision 9)."""
        return self._pieces.below(path) if origin == PROGRAM else self._schedulers.left_of(origin, path)
