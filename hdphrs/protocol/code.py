"""Code: functions by digest, always sent ahead of the tasks that need them.

What lives here: the bytes behind each digest, and who has been given them.  Since a task and its code take the same
ordered link, nobody ever asks for code, or waits for it.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable

from hdphrs.protocol.effects import Effect, Send
from hdphrs.protocol.messages import Code
from hdphrs.protocol.tasks import NodeId, Payload, Spark


class CodeStore:
    """The code that this node has seen."""

    def __init__(self) -> None:
        self._data: dict[bytes, Payload] = {}
        self._given: dict[Hashable, set[bytes]] = {}

    def learn(self, digest: bytes, data: Payload) -> None:
        """New code, from a scheduler, the program or a peer."""
        self._data[digest] = data

    def missing(self, receiver: Hashable, sparks: Iterable[Spark]) -> list[tuple[bytes, Payload]]:
        """What `receiver` must be given before these tasks, which counts as given from now on: (digest, data)."""
        given = self._given.setdefault(receiver, set())
        missing = []
        for spark in sparks:
            digest = spark.task.code
            if digest and digest not in given:
                given.add(digest)
                missing.append((digest, self._data[digest]))
        return missing

    def has(self, receiver: Hashable, digest: bytes) -> bool:
        """Whether `receiver` has been given this code."""
        return digest in self._given.get(receiver, ())

    def ahead(self, node: NodeId, sparks: Iterable[Spark]) -> list[Effect]:
        """CODE that goes to a node ahead of these tasks."""
        return [Send(node, Code(digest, data)) for digest, data in self.missing(("node", node), sparks)]

    def knows(self, receiver: Hashable, digest: bytes) -> None:
        """`receiver` had the code before we did."""
        self._given.setdefault(receiver, set()).add(digest)

    def forget(self, receiver: Hashable) -> None:
        """A peer or a scheduler is gone."""
        self._given.pop(receiver, None)
