"""Orphans: tasks that run on while the parents that they run for are gone; the root knows them all (decision 8).

What lives here: the root's table of them, and of the futures that wait for their ends.  A death leaves orphans all over
the cluster, so nobody is told what is left of a task before every node has said what it has.  An orphan ends with a
KEEP, or it is gone: its node says so, or dies.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from hdphrs.protocol.effects import Effect
from hdphrs.protocol.messages import Await, Gone, Message, Orphans, Recall, Recalled, Result
from hdphrs.protocol.pieces import Pieces, apart
from hdphrs.protocol.tasks import Blame, NodeId, Orphan, Piece, Verdict

Say = Callable[[NodeId, Message], list[Effect]]
"""How a role speaks to a node, be it its own."""


class Orphanage:
    """The root's table."""

    def __init__(self, pieces: Pieces, say: Say, blame_of: Callable[[Iterable[bytes]], tuple[Blame, ...]]) -> None:
        self._pieces = pieces
        self._say = say
        self._blame_of = blame_of
        self._running: dict[bytes, dict[NodeId, Orphan]] = {}
        """By path, and where."""
        self._awaited: dict[bytes, list[Await]] = {}
        self._due: dict[NodeId, int] = {}
        """Nodes that have been told of a death, or to purge, and have not said yet what runs on: how many times."""
        self._recalls: list[tuple[NodeId, Recall]] = []
        """Questions that have to wait for that."""

    def awaited(self) -> Iterable[Await]:
        """For checks of the invariants."""
        return (waiting for path in self._awaited.values() for waiting in path)

    def expect(self, nodes: Iterable[NodeId]) -> None:
        """These are going to say what runs on, if anybody wants to know."""
        for node in nodes if self._pieces.bytes_max else ():
            self._due[node] = self._due.get(node, 0) + 1

    def on_orphans(self, sender: NodeId, message: Orphans) -> list[Effect]:
        """ORPHANS: all that a node has."""
        if message.asked and sender in self._due:
            self._due[sender] -= 1
            if not self._due[sender]:
                del self._due[sender]
        now_there = {orphan.path: orphan for orphan in message.orphans}
        dropped = [path for path, at in self._running.items() if sender in at and path not in now_there]
        for path in dropped:
            self._leave(path, sender)
        for path, orphan in now_there.items():
            self._running.setdefault(path, {})[sender] = orphan
        effects: list[Effect] = []
        for path in dropped:
            effects += self._give_up(path)
        return effects + self._answer_recalls()

    def on_keep(self, sender: NodeId, pieces: Iterable[Piece]) -> list[Effect]:
        """KEEP: values are kept, and that time was over; who waits for one of these has it."""
        effects: list[Effect] = []
        for piece in pieces:
            if piece.outcome.verdict in (Verdict.VALUE, Verdict.TIMED_OUT):
                self._pieces.keep(piece)
            self._leave(piece.path, sender)
            for waiting in self._awaited.pop(piece.path, ()):
                right = waiting.check == piece.check
                effects += self._result(waiting, piece) if right else self._gone(waiting)
        return effects

    def on_recall(self, sender: NodeId, message: Recall) -> list[Effect]:
        """RECALL: what is left of these, finished or running?"""
        self._recalls.append((sender, message))
        return self._answer_recalls()

    def on_await(self, message: Await) -> list[Effect]:
        """AWAIT: an orphan has been adopted; it may have ended meanwhile."""
        piece = self._pieces.at(message.path)
        if piece is not None and piece.check == message.check:
            return self._result(message, piece)
        if message.path not in self._running:
            return self._gone(message)
        self._awaited.setdefault(message.path, []).append(message)
        return []

    def on_death(self, dead: NodeId, told: Iterable[NodeId]) -> list[Effect]:
        """DEADNODE, of which these are told: who waits for orphans on `dead` hears of its death, and needs no GONE."""
        self._due.pop(dead, None)
        self.expect(told)
        self._recalls = [(sender, recall) for sender, recall in self._recalls if sender != dead]
        for path in [path for path, at in self._running.items() if dead in at]:
            self._leave(path, dead)
            if path not in self._running:
                self._awaited.pop(path, None)
        for path, waiting in list(self._awaited.items()):
            self._awaited[path] = [one for one in waiting if one.ref.node != dead]
        return self._answer_recalls()

    def left_of(self, path: bytes) -> tuple[Piece | Orphan, ...]:
        """What need not be computed of the task at this path."""
        running = [next(iter(at.values())) for found, at in self._running.items() if found.startswith(path)]
        return apart([*self._pieces.below(path), *running])

    def _answer_recalls(self) -> list[Effect]:
        if self._due or not self._recalls:
            return []
        recalls, self._recalls = self._recalls, []
        effects: list[Effect] = []
        for sender, recall in recalls:
            left = [piece for path in recall.paths for piece in self.left_of(path)]
            effects += self._say(sender, Recalled(recall.recall, tuple(left), self._blame_of(recall.paths)))
        return effects

    def _leave(self, path: bytes, node: NodeId) -> None:
        at = self._running.get(path)
        if at is not None:
            at.pop(node, None)
            if not at:
                del self._running[path]

    def _give_up(self, path: bytes) -> list[Effect]:
        """One who ran this has dropped it; if it was the last, nobody need wait."""
        if path in self._running:
            return []
        effects: list[Effect] = []
        for waiting in self._awaited.pop(path, ()):
            effects += self._gone(waiting)
        return effects

    def _result(self, waiting: Await, piece: Piece) -> list[Effect]:
        return self._say(waiting.ref.node, Result(waiting.ref, waiting.replica, piece.outcome))

    def _gone(self, waiting: Await) -> list[Effect]:
        return self._say(waiting.ref.node, Gone(waiting.ref, waiting.replica))
