"""Foresight: what a node is sure to do about the next event, told before it is asked to (decision 31).

What lives here: two questions of the driver about the commonest steps of a program that waits.  They change nothing,
take a few looks, and have an answer only where it is certain; what the core does then must agree, which simulator and
explorer verify at each step.
"""

from __future__ import annotations

from hdphrs.protocol.code import CodeStore
from hdphrs.protocol.pieces import Pieces
from hdphrs.protocol.schedulers import Schedulers
from hdphrs.protocol.supervisor import Supervisor
from hdphrs.protocol.tasks import Origin, TaskRef


class Foresight:
    """That of one node."""

    def __init__(
        self,
        supervisor: Supervisor,
        schedulers: Schedulers,
        code: CodeStore,
        pieces: Pieces,
    ) -> None:
        self._supervisor = supervisor
        self._schedulers = schedulers
        self._code = code
        self._pieces = pieces

    def taker(self, path: bytes, code: bytes) -> Origin | None:
        """The scheduler that will get a new task of the program's, if that is the only one exported, is not pinned,
        and goes there as its first copy, with nothing before it; None if that is not certain.

        Nothing waits in the pool of the root, where the program is, while somebody is hungry: it is never on its leave.
        """
        schedulers = self._schedulers
        origin = schedulers.next_fed
        if origin is None or schedulers.crashes_of(path) or self._pieces.below(path):
            return None
        return origin if not code or self._code.has(("scheduler", origin), code) else None

    def fills(self, ref: TaskRef) -> bool:
        """Whether the outcome of a copy of this task of the program's, which has ended here, will fill its future: the
        first one does, whichever copy it is of, and what is cancelled or has run for too long has no record."""
        return self._supervisor.record(ref) is not None
