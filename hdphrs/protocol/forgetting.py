"""Forgetting: code is dropped when no task needs it and nobody may send one that does (decision 54).

What lives here: which tasks a node has, whatever becomes of them next, and what it asks of others when code has piled
up.  What does not: claims on code, and how they are counted (`code.py`).
"""

from __future__ import annotations

from hdphrs.protocol.code import CodeStore
from hdphrs.protocol.effects import Effect, Send, Unlearn
from hdphrs.protocol.messages import Forget
from hdphrs.protocol.reruns import Reruns
from hdphrs.protocol.schedulers import Schedulers
from hdphrs.protocol.sparkpool import Sparkpool
from hdphrs.protocol.supervisor import Supervisor
from hdphrs.protocol.tasks import NodeId, Origin
from hdphrs.protocol.victim import Victim


class Forgetting:
    """Drops the code of one node."""

    def __init__(
        self,
        pool: Sparkpool,
        supervisor: Supervisor,
        schedulers: Schedulers,
        victim: Victim,
        reruns: Reruns,
        code: CodeStore,
    ) -> None:
        self._pool = pool
        self._supervisor = supervisor
        self._schedulers = schedulers
        self._victim = victim
        self._reruns = reruns
        self._code = code

    def needed(self) -> set[bytes]:
        """The digests of all tasks that are here, or may have to be made again here."""
        digests = {spark.task.code for spark in self._pool}
        digests.update(spark.task.code for spark in self._schedulers.held())
        digests.update(spark.task.code for spark in self._victim.guarded())
        digests.update(spark.task.code for spark in self._reruns)
        digests.update(self._supervisor.codes())
        return digests

    def look(self, *coming: bytes) -> list[Effect]:
        """If code has piled up, drop what is not needed, and ask others to let go of it.

        Args:
            coming: has just come, and the tasks that need it are on their way.
        """
        if not self._code.is_due:
            return []
        effects: list[Effect] = []
        for receiver, digest, times in self._code.sweep(self.needed().union(coming)):
            kind, number = receiver
            if kind == "node":
                effects.append(Send(NodeId(number), Forget(digest, times)))
            else:
                effects.append(Unlearn(Origin(number), digest))
        return effects
