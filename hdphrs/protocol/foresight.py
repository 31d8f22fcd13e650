"""Foresight: what a node is sure to do about the next event, told before it is asked to (decision 31).

What lives here: questions of the driver about the commonest steps of somebody who waits.  They change nothing, take a
few looks, and have an answer only where it is certain; what the core does then must agree, which simulator and explorer
verify at each step.
"""

from __future__ import annotations

from hdphrs.protocol.code import CodeStore, party
from hdphrs.protocol.leaving import Leaving
from hdphrs.protocol.membership import Membership
from hdphrs.protocol.pieces import Pieces
from hdphrs.protocol.schedulers import Schedulers
from hdphrs.protocol.supervisor import Supervisor
from hdphrs.protocol.tasks import NodeId, Origin, Spark, TaskRef


class Foresight:
    """That of one node."""

    def __init__(
        self,
        members: Membership,
        supervisor: Supervisor,
        schedulers: Schedulers,
        leaving: Leaving,
        code: CodeStore,
        pieces: Pieces,
    ) -> None:
        self._members = members
        self._supervisor = supervisor
        self._schedulers = schedulers
        self._leaving = leaving
        self._code = code
        self._pieces = pieces

    def taker(self, path: bytes, code: bytes) -> Origin | None:
        """The scheduler that will get a new task of the program's, if that is the only one exported, is not pinned,
        and goes there as its first copy, with nothing before it; None if that is not certain."""
        return None if self._pieces.below(path) else self._next(path, code)

    def host(self, sender: NodeId, thread: Spark) -> Origin | None:
        """The scheduler that will get a thread that this node has been sent, in the same way."""
        return None if self._members.is_dead(sender) else self._next(thread.task.path, thread.task.code)

    def fills(self, ref: TaskRef, source: NodeId) -> bool:
        """Whether the outcome of a copy of this task, from here or from another node, will fill a future of this one:
        the first one does, whichever copy it is of, and what is cancelled or has run for too long has no record."""
        return self._supervisor.record(ref) is not None and not self._members.is_dead(source)

    def _next(self, path: bytes, code: bytes) -> Origin | None:
        """Nothing waits in the pool while somebody is hungry, unless the node is on its leave."""
        origin = self._schedulers.next_fed
        if origin is None or self._leaving.under_way or self._schedulers.crashes_of(path):
            return None
        return origin if self._code.has(party(origin), code) else None
