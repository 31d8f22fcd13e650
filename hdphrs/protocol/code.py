"""Code: functions by digest, sent ahead of the tasks that need them, and dropped when nobody needs them any more.

What lives here: the bytes behind each digest, who has been given them, and who relies on this node to have them.  Since
a task and its code take the same ordered link, nobody ever asks for code, or waits for it.  What does not: which tasks
are here (`forgetting.py`).

The program's surroundings (decision 48) go the same way: they are code that every task needs, in the newest version
that its sender knows.  So a task never meets older ones than those that were in force when it was spawned, whichever
way it takes.  There is one version of them here, on which nobody has claims.

Theory of operation
-------------------

Whoever may send this node a task by its digest alone has *claims* on that code, and code with claims is kept.  Each
time that code passes between this node and another party, in whichever direction, that party has one claim more, for it
knows from then on that the code is here.  Claims are counted and not merely noted, so that it does not matter which of
two messages on a link comes first.

* The program, or a scheduler, withdraws one claim for each time it has sent or been given the code (event `Released`),
  when the function is gone there and no task that needs it waits to be sent.
* Another node withdraws all of its claims by FORGET, with their number as that node counts it.  What is on its way
  meanwhile is in the difference.  Whoever gets a FORGET answers in kind, and its own claims are gone.

This node asks for both, from a scheduler with `Unlearn` and from a node with FORGET, when no task here needs the code.
Between asking and answer a task may come that needs it, so what has no claims is dropped only after another look.
"""

from __future__ import annotations

from collections.abc import Container, Iterable

from hdphrs.protocol.effects import Effect, Send
from hdphrs.protocol.messages import Code, Forget
from hdphrs.protocol.surroundings import is_surroundings
from hdphrs.protocol.tasks import PROGRAM, NodeId, Origin, Payload, Spark

Party = tuple[str, int]
"""Who has claims: ("program", 0), ("scheduler", origin) or ("node", id)."""

CODE_OVERHEAD_BYTES = 512
"""What a small function costs beside its pickle."""


class _Code:
    """One function."""

    __slots__ = ("claims", "data", "size")

    def __init__(self, data: Payload) -> None:
        self.data = data
        self.size = len(data) + CODE_OVERHEAD_BYTES
        self.claims: dict[Party, int] = {}
        """By party, how many claims it has; all are positive."""


class CodeStore:
    """The code that this node has."""

    def __init__(self, bytes_max: int = 32 << 20) -> None:
        """`bytes_max`: a look is due when the code has grown by so much since the last one."""
        self._bytes_max = bytes_max
        self._codes: dict[bytes, _Code] = {}
        self._given: dict[Party, dict[bytes, int]] = {}
        """By receiver, what it has from here, or this node from it, and how many times that has passed since it was
        last withdrawn."""
        self._bytes = 0
        self._look_at = bytes_max
        """A look is due when the bytes exceed this: what was needed or wanted the last time, and has not been released
        since, and as much as may pile up."""
        self._surroundings: tuple[bytes, Payload] = b"", b""
        """The newest, by digest; an empty one as long as there are none."""
        self._informed: dict[Party, bytes] = {}
        """By receiver, the digest of the newest that it has."""

    def __contains__(self, digest: bytes) -> bool:
        return digest in self._codes

    @property
    def size(self) -> int:
        """What all of it takes."""
        return self._bytes

    # ---- what comes and what goes ----------------------------------------------------------------------------

    def learn(self, digest: bytes, data: Payload, origin: Origin = PROGRAM) -> None:
        """New code from the program or a scheduler, which has a claim on it from now on."""
        if is_surroundings(digest):
            self._take(digest, data)
            return
        self._claim(digest, party(origin), data)

    def receive(self, node: NodeId, digest: bytes, data: Payload) -> None:
        """CODE: the other node has it, and knows that it is here."""
        receiver = ("node", node)
        if is_surroundings(digest):
            self._take(digest, data)
            self._informed[receiver] = max(digest, self._informed.get(receiver, b""))
            return
        self._claim(digest, receiver, data)
        self._give(receiver, digest)

    def missing(self, receiver: Party, sparks: Iterable[Spark]) -> list[tuple[bytes, Payload]]:
        """What `receiver` must be given before these tasks, which counts as given from now on: (digest, data)."""
        given = self._given.setdefault(receiver, {})
        missing = []
        newest, said = self._surroundings
        for spark in sparks:
            if self._informed.get(receiver, b"") < newest:
                self._informed[receiver] = newest
                missing.append((newest, said))
            digest = spark.task.code
            if digest and digest not in given:
                given[digest] = 1
                data = self._codes[digest].data
                self._claim(digest, receiver, data)
                missing.append((digest, data))
        return missing

    def has(self, receiver: Party, digest: bytes) -> bool:
        """Whether `receiver` has been given this code, unless that is empty, and the newest surroundings."""
        if digest and digest not in self._given.get(receiver, ()):
            return False
        return self._informed.get(receiver, b"") >= self._surroundings[0]

    def ahead(self, node: NodeId, sparks: Iterable[Spark]) -> list[Effect]:
        """CODE that goes to a node ahead of these tasks."""
        return [Send(node, Code(digest, data)) for digest, data in self.missing(("node", node), sparks)]

    # ---- claims ----------------------------------------------------------------------------------------------

    def release(self, receiver: Party, digest: bytes, times: int = 1) -> None:
        """Withdraw claims; those of a party that is gone are withdrawn already."""
        code = self._codes.get(digest)
        if code is None or receiver not in code.claims:
            return
        code.claims[receiver] -= times
        if code.claims[receiver] <= 0:
            self._disclaim(code, receiver)

    def on_forget(self, node: NodeId, digest: bytes, times: int) -> list[Effect]:
        """FORGET: the other node does not rely on this one any more; nor does this one on the other."""
        receiver = ("node", node)
        self.release(receiver, digest, times)
        mine = self._given.get(receiver, {}).pop(digest, 0)
        return [Send(node, Forget(digest, mine))] if mine else []

    def forget(self, receiver: Party) -> None:
        """A peer or a scheduler is gone."""
        self._given.pop(receiver, None)
        self._informed.pop(receiver, None)
        for code in self._codes.values():
            if receiver in code.claims:
                self._disclaim(code, receiver)

    # ---- looking around --------------------------------------------------------------------------------------

    @property
    def is_due(self) -> bool:
        """Whether it is time to look for what nobody needs."""
        return self._bytes > self._look_at

    def sweep(self, needed: Container[bytes]) -> list[tuple[Party, bytes, int]]:
        """Drop what has no claims, and find what is claimed only by those who were told of it: (receiver, digest,
        times), each to be asked to withdraw.

        Args:
            needed: digests of the tasks that are here, whatever becomes of them next.
        """
        asked: list[tuple[Party, bytes, int]] = []
        self._look_at = self._bytes_max
        for digest, code in list(self._codes.items()):
            if digest in needed or self._is_wanted(digest, code):
                self._look_at += code.size
            elif not code.claims:
                del self._codes[digest]
                self._bytes -= code.size
            else:
                for receiver, given in self._given.items():
                    times = given.pop(digest, 0)
                    if times:
                        asked.append((receiver, digest, times))
        return asked

    def _is_wanted(self, digest: bytes, code: _Code) -> bool:
        """Whether the program has registered it and not released it, or a scheduler has, which may send it again."""
        for receiver, claims in code.claims.items():
            kind, _ = receiver
            if kind != "node" and claims > self._given.get(receiver, {}).get(digest, 0):
                return True
        return False

    def _take(self, digest: bytes, data: Payload) -> None:
        """Surroundings that are older than those that are here do not count."""
        if digest > self._surroundings[0]:
            self._surroundings = digest, data

    def _claim(self, digest: bytes, receiver: Party, data: Payload) -> None:
        code = self._codes.get(digest)
        if code is None:
            code = self._codes[digest] = _Code(data)
            self._bytes += code.size
        code.claims[receiver] = code.claims.get(receiver, 0) + 1

    def _give(self, receiver: Party, digest: bytes) -> None:
        given = self._given.setdefault(receiver, {})
        given[digest] = given.get(digest, 0) + 1

    def _disclaim(self, code: _Code, receiver: Party) -> None:
        del code.claims[receiver]
        self._look_at -= code.size


def party(origin: Origin) -> Party:
    """How the store knows the program, or a scheduler."""
    return ("program", 0) if origin == PROGRAM else ("scheduler", origin)
