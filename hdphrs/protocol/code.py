"""Code: functions by digest, always sent ahead of the tasks that need them.

What lives here: the bytes behind each digest, and who has been given them.  Since a task and its code take the same
ordered link, nobody ever asks for code, or waits for it.

The program's surroundings (decision 48) go the same way: they are code that every task needs, in the newest version
that its sender knows.  So a task never meets older ones than those that were in force when it was spawned, whichever
way it takes.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable

from hdphrs.protocol.effects import Effect, Send
from hdphrs.protocol.messages import Code
from hdphrs.protocol.surroundings import is_surroundings
from hdphrs.protocol.tasks import NodeId, Payload, Spark


class CodeStore:
    """The code that this node has seen."""

    def __init__(self) -> None:
        self._data: dict[bytes, Payload] = {}
        self._given: dict[Hashable, set[bytes]] = {}
        self._surroundings = b""
        """The digest of the newest; empty as long as there are none."""

    def learn(self, digest: bytes, data: Payload) -> None:
        """New code, from a scheduler, the program or a peer; older surroundings than those that are here do not
        count."""
        if is_surroundings(digest):
            if digest <= self._surroundings:
                return
            self._drop(self._surroundings)
            self._surroundings = digest
        self._data[digest] = data

    def _drop(self, surroundings: bytes) -> None:
        """There are newer ones."""
        self._data.pop(surroundings, None)
        for given in self._given.values():
            given.discard(surroundings)

    def missing(self, receiver: Hashable, sparks: Iterable[Spark]) -> list[tuple[bytes, Payload]]:
        """What `receiver` must be given before these tasks, which counts as given from now on: (digest, data)."""
        given = self._given.setdefault(receiver, set())
        missing = []
        surroundings = self._surroundings
        for spark in sparks:
            if surroundings and surroundings not in given:
                given.add(surroundings)
                missing.append((surroundings, self._data[surroundings]))
            digest = spark.task.code
            if digest and digest not in given:
                given.add(digest)
                missing.append((digest, self._data[digest]))
        return missing

    def has(self, receiver: Hashable, digest: bytes) -> bool:
        """Whether `receiver` has been given this code, unless that is empty, and the newest surroundings."""
        given = self._given.get(receiver, ())
        return (not digest or digest in given) and (not self._surroundings or self._surroundings in given)

    def ahead(self, node: NodeId, sparks: Iterable[Spark]) -> list[Effect]:
        """CODE that goes to a node ahead of these tasks."""
        return [Send(node, Code(digest, data)) for digest, data in self.missing(("node", node), sparks)]

    def knows(self, receiver: Hashable, digest: bytes) -> None:
        """`receiver` had the code before we did; older surroundings than ours say nothing."""
        if digest in self._data:
            self._given.setdefault(receiver, set()).add(digest)

    def forget(self, receiver: Hashable) -> None:
        """A peer or a scheduler is gone."""
        self._given.pop(receiver, None)
