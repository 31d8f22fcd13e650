"""Re-runs: tasks that may have been started before, and what is left of that (decision 8).

What lives here: one node's talk with the root about pieces and orphans, and sparks that wait for the root's answer.
These belong to this node like those in its pool, but may neither be started nor migrate until the answer is here.  What
does not: the root's side, which is `pieces.py` and `orphans.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

from hdphrs.config import CoreConfig
from hdphrs.protocol.counters import Counters
from hdphrs.protocol.effects import Effect
from hdphrs.protocol.membership import Membership
from hdphrs.protocol.messages import Await, Discard, Keep, Orphans, Recall, Recalled, Result
from hdphrs.protocol.orphans import Say
from hdphrs.protocol.pieces import apart, check_of_task, is_keen, piece_of, worth
from hdphrs.protocol.retained import Copy, Retained
from hdphrs.protocol.schedulers import Schedulers
from hdphrs.protocol.sparkpool import Sparkpool
from hdphrs.protocol.supervisor import Supervisor
from hdphrs.protocol.tasks import ROOT, Crash, NodeId, Orphan, Outcome, Piece, RecallId, Spark, Task, TaskRef, Verdict

PATHS_MAX = 64
"""Paths of one RECALL."""


class Reruns:
    """Those of one node."""

    def __init__(
        self,
        config: CoreConfig,
        members: Membership,
        pool: Sparkpool,
        supervisor: Supervisor,
        schedulers: Schedulers,
        retained: Retained,
        is_stopping: Callable[[Spark], bool],
        say: Say,
        counters: Counters,
        put_back: Callable[[Sequence[Spark]], list[Effect]],
    ) -> None:
        """`is_stopping` tells whether a copy is about to end because it was cancelled; `put_back` is what to do with
        sparks that are to be run."""
        self._config = config
        self._members = members
        self._pool = pool
        self._supervisor = supervisor
        self._schedulers = schedulers
        self._is_stopping = is_stopping
        self._say = say
        self._counters = counters
        self._put_back = put_back
        self._waiting: dict[RecallId, list[Spark]] = {}
        self._next_recall = 1
        self._retained = retained
        self._disowned: dict[TaskRef, None] = {}
        """Of what schedulers hold: tasks whose supervisors live, and have forgotten them."""
        self._told: dict[bytes, None] = {}
        """Paths of the orphans that the root knows to be run here."""

    def __iter__(self) -> Iterator[Spark]:
        """Sparks that wait for pieces; for checks of the invariants."""
        for sparks in self._waiting.values():
            yield from sparks

    # ---- what has ended --------------------------------------------------------------------------------------

    def on_finished(self, finished: Iterable[tuple[TaskRef, Task, Outcome]]) -> list[Effect]:
        """Tasks have ended here: the root gets what is dear, unless as a RESULT, and all that orphans come to."""
        left: list[Piece] = []
        for ref, task, outcome in finished:
            if self.is_orphan(ref):
                self._disowned.pop(ref, None)
                self._told.pop(task.path, None)
                if task.supervised:
                    left.append(piece_of(task, outcome))
            elif ref.node != ROOT:
                if self.is_dear(task, outcome):
                    left.append(piece_of(task, outcome))
                elif ref.node != self._members.me:
                    self._retained.retain(Copy(ref, ref.node, task, outcome))
        return self.keep(left) if left else []

    def answer(self, ref: TaskRef, replica: int, outcome: Outcome) -> list[Effect]:
        """A copy has ended here: its supervisor hears of it, if anybody knows who that is."""
        if self.is_orphan(ref):
            self._counters["orphans"] += 1
            return []
        return self._say(ref.node, Result(ref, replica, outcome))

    def on_filled(self, ref: TaskRef, task: Task, outcome: Outcome, source: NodeId) -> None:
        """A future of a scheduler of this node is filled by what `source` has sent."""
        self._retained.retain(Copy(ref, source, task, outcome))

    def on_lost(self, is_last: Callable[[Copy], bool]) -> list[Effect]:
        """Somebody is dead who had copies of results: the root gets ours."""
        return self.keep(self._retained.give_up(is_last))

    def is_dear(self, task: Task, outcome: Outcome) -> bool:
        """Whether a result is to be kept."""
        if not self._config.pieces_bytes_max or not task.supervised or outcome.verdict is not Verdict.VALUE:
            return False
        return is_keen(task.memo) or worth(self._config, len(self._members.live()), outcome)

    def keep(self, pieces: Sequence[Piece]) -> list[Effect]:
        """Finished parts of unfinished tasks: they are kept at the root."""
        return self._say(ROOT, Keep(tuple(pieces))) if pieces and self._config.pieces_bytes_max else []

    def discard(self, path: bytes, crashes: tuple[Crash, ...]) -> list[Effect]:
        """What the task at this path has come to takes down who unpickles it: the root learns it, and keeps it not."""
        return self._say(ROOT, Discard(path, crashes)) if self._config.pieces_bytes_max else []

    # ---- what is run again -----------------------------------------------------------------------------------

    def ask(self, sparks: Sequence[Spark]) -> list[Effect]:
        """These are to be run, and may have been started before: what is left of that?"""
        if not self._config.pieces_bytes_max:
            return self._put_back(sparks)
        effects: list[Effect] = []
        for start in range(0, len(sparks), PATHS_MAX):
            part = sparks[start : start + PATHS_MAX]
            recall = RecallId(self._next_recall)
            self._next_recall += 1
            self._waiting[recall] = list(part)
            effects += self._say(ROOT, Recall(recall, tuple(spark.task.path for spark in part)))
        return effects

    def on_recalled(self, message: Recalled) -> list[Effect]:
        """RECALLED: those that have waited for it, and have not been dropped, may be run."""
        for charge in message.blame:
            self._schedulers.charge(charge.path, charge.crashes)
        sparks = self._waiting.pop(message.recall, [])
        return self.resume([_with_pieces(spark, message.pieces) for spark in sparks])

    def resume(self, sparks: Iterable[Spark]) -> list[Effect]:
        """They know what is left of them: they may be run, unless that is everything, or they run already."""
        effects: list[Effect] = []
        unfinished: list[Spark] = []
        again: list[Spark] = []
        for spark in sparks:
            itself = whole(spark.task, spark.pieces)
            if itself is None:
                unfinished.append(spark)
            elif isinstance(itself, Piece):
                effects += self.answer(spark.ref, spark.replica, itself.outcome)
            elif not self._supervisor.wants(spark):  # somebody else tracks it, or nobody
                unfinished.append(replace(spark, pieces=()))
            elif not self._members.is_dead(itself.node):
                self._supervisor.adopt(spark, itself.node)
                effects += self._say(ROOT, Await(spark.ref, spark.replica, itself.path, itself.check))
            else:
                again.append(replace(spark, pieces=()))
        effects += self._put_back(unfinished)
        return effects + self.ask(again)

    def on_gone(self, ref: TaskRef, replica: int) -> list[Effect]:
        """GONE: an orphan that we had adopted will not end."""
        spark = self._supervisor.on_gone(ref, replica)
        return [] if spark is None else self.ask([spark])

    # ---- orphans ---------------------------------------------------------------------------------------------

    def is_orphan(self, ref: TaskRef) -> bool:
        """Whether nobody here knows who waits for this task."""
        return ref in self._disowned or self._members.is_dead(ref.node)

    def disown(self, refs: Iterable[TaskRef]) -> int:
        """Nobody waits for these any more: drop those that wait here; how many there were.  The others run on."""
        orphans = frozenset(refs)
        held = [spark.ref for spark in self._schedulers.held() if spark.ref in orphans and not self._is_stopping(spark)]
        self._disowned.update(dict.fromkeys(held))
        return self.purge(lambda spark: spark.ref in orphans)

    def acquit(self, ref: TaskRef) -> None:
        """A task that has been cancelled has ended: it is no orphan any more."""
        self._disowned.pop(ref, None)

    def purge(self, is_orphan: Callable[[Spark], bool]) -> int:
        """Drop all that match, in the pool too; how many there were."""
        dropped = self._pool.purge(is_orphan)
        for recall, sparks in self._waiting.items():
            kept = [spark for spark in sparks if not is_orphan(spark)]
            dropped += len(sparks) - len(kept)
            self._waiting[recall] = kept
        return dropped

    def without_orphans(self, sparks: Sequence[Spark]) -> list[Spark]:
        """Of sparks that schedulers had, those that are still wanted; nobody could say where the others may go."""
        wanted = [spark for spark in sparks if not self.is_orphan(spark.ref)]
        if len(wanted) < len(sparks):
            for spark in sparks:
                self._disowned.pop(spark.ref, None)
        return wanted

    def report(self, *, asked: bool) -> list[Effect]:
        """Tell the root which orphans are run here, if it has asked, or if some are here no more."""
        if not self._config.pieces_bytes_max:
            return []
        held = [
            spark.task
            for spark in self._schedulers.held()
            if self.is_orphan(spark.ref) and spark.task.supervised and not self._is_stopping(spark)
        ]
        told = dict.fromkeys(task.path for task in held)
        if not asked and told == self._told:
            return []
        self._told = told
        me = self._members.me
        orphans = tuple(Orphan(task.path, check_of_task(task), me) for task in held)
        return self._say(ROOT, Orphans(asked, orphans))


def _with_pieces(spark: Spark, found: Iterable[Piece | Orphan]) -> Spark:
    return replace(spark, pieces=apart(part for part in found if part.path.startswith(spark.task.path)))


def whole(task: Task, pieces: Iterable[Piece | Orphan]) -> Piece | Orphan | None:
    """The task itself, if that is among its pieces."""
    for piece in pieces:
        if piece.path == task.path and piece.check == check_of_task(task):
            return piece
    return None
