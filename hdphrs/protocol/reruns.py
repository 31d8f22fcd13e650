"""Re-runs: tasks that may have been started before, and what is left of that (decision 8).

What lives here: the way of pieces to the root and back, and sparks that wait for the root's answer.  These belong to
this node like those in its pool, but may neither be started nor migrate until the answer is here.  What does not: the
root's store, which is `pieces.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

from hdphrs.config import CoreConfig
from hdphrs.protocol.effects import Effect, Send
from hdphrs.protocol.membership import Membership
from hdphrs.protocol.messages import Keep, Recall, Recalled
from hdphrs.protocol.pieces import Pieces, check_of, is_keen, piece_of, worth
from hdphrs.protocol.sparkpool import Sparkpool
from hdphrs.protocol.tasks import PROGRAM, ROOT, NodeId, Outcome, Piece, RecallId, Spark, Task, TaskRef, Verdict

PATHS_MAX = 64
"""Paths of one RECALL."""


class Reruns:
    """Those of one node."""

    def __init__(
        self,
        me: NodeId,
        config: CoreConfig,
        members: Membership,
        pool: Sparkpool,
        pieces: Pieces,
        answer: Callable[[TaskRef, int, Outcome], list[Effect]],
    ) -> None:
        """
        Args:
            pieces: the store, if this is the root.
            answer: what to do with the outcome of a copy: `answer(ref, replica, outcome)`.
        """
        self._me = me
        self._config = config
        self._members = members
        self._pool = pool
        self._pieces = pieces
        self._answer = answer
        self._waiting: dict[RecallId, list[Spark]] = {}
        self._next_recall = 1

    def __iter__(self) -> Iterator[Spark]:
        """Sparks that wait for pieces; for checks of the invariants."""
        for sparks in self._waiting.values():
            yield from sparks

    def on_finished(self, finished: Iterable[tuple[TaskRef, Task, Outcome]]) -> list[Effect]:
        """Tasks have ended here: what is dear goes to the root, unless the root gets it as a RESULT anyway."""
        return self.keep(
            [piece_of(task, end) for ref, task, end in finished if ref.node != ROOT and self._is_dear(task, end)]
        )

    def on_end(self, ref: TaskRef, task: Task, outcome: Outcome) -> None:
        """A task of this node is over: the program's are never run again, a scheduler's are if their parent is."""
        if ref.node != ROOT:
            return
        if ref.origin == PROGRAM:
            self._pieces.cover(task.path)
        elif self._is_dear(task, outcome):
            self.keep([piece_of(task, outcome)])

    def keep(self, pieces: Sequence[Piece]) -> list[Effect]:
        """Finished parts of unfinished tasks: they are kept at the root."""
        if not pieces or not self._config.pieces_bytes_max:
            return []
        if self._me != ROOT:
            return [Send(ROOT, Keep(tuple(pieces)))]
        for piece in pieces:
            self._pieces.keep(piece)
        return []

    def ask(self, sparks: Sequence[Spark]) -> list[Effect]:
        """These are to be run, and may have been started before: what is left of that?"""
        if self._me == ROOT or not self._config.pieces_bytes_max:
            return self.resume([_with_pieces(spark, self._pieces) for spark in sparks])
        return [Send(ROOT, self._wait(sparks[i : i + PATHS_MAX])) for i in range(0, len(sparks), PATHS_MAX)]

    def _wait(self, sparks: Sequence[Spark]) -> Recall:
        recall = RecallId(self._next_recall)
        self._next_recall += 1
        self._waiting[recall] = list(sparks)
        return Recall(recall, tuple(spark.task.path for spark in sparks))

    def on_recall(self, sender: NodeId, message: Recall) -> list[Effect]:
        """RECALL, at the root."""
        left = [piece for path in message.paths for piece in self._pieces.below(path)]
        return [Send(sender, Recalled(message.recall, tuple(left)))]

    def on_recalled(self, message: Recalled) -> list[Effect]:
        """RECALLED: those that have waited for it, and have not been dropped, may be run."""
        found = Pieces(self._config, message.pieces)
        return self.resume([_with_pieces(spark, found) for spark in self._waiting.pop(message.recall, [])])

    def resume(self, sparks: Iterable[Spark]) -> list[Effect]:
        """They know what is left of them, and may be run: except for those of which everything is left."""
        effects: list[Effect] = []
        unfinished: list[Spark] = []
        for spark in sparks:
            outcome = _whole(spark)
            if outcome is None:
                unfinished.append(spark)
            else:
                effects += self._answer(spark.ref, spark.replica, outcome)
        self._pool.put_back(unfinished)
        return effects

    def purge(self, is_orphan: Callable[[Spark], bool]) -> int:
        """Drop all that match; how many there were."""
        dropped = 0
        for recall, sparks in self._waiting.items():
            kept = [spark for spark in sparks if not is_orphan(spark)]
            dropped += len(sparks) - len(kept)
            self._waiting[recall] = kept
        return dropped

    def _is_dear(self, task: Task, outcome: Outcome) -> bool:
        if not task.supervised or outcome.verdict is not Verdict.VALUE:
            return False
        return is_keen(task.memo) or worth(self._config, len(self._members.live()), outcome)


def _with_pieces(spark: Spark, pieces: Pieces) -> Spark:
    return replace(spark, pieces=pieces.below(spark.task.path))


def _check(task: Task) -> bytes:
    return check_of(task.code, task.payload, task.memo)


def _whole(spark: Spark) -> Outcome | None:
    """What the task itself had come to, if that is among its pieces."""
    for piece in spark.pieces:
        if piece.path == spark.task.path and piece.check == _check(spark.task):
            return piece.outcome
    return None
