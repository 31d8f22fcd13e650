"""Cancelling: what becomes of copies that nobody wants any more and that schedulers have already (decision 14).

What lives here: of one node, the copies that its schedulers have been told to stop, until they have.  What does not:
copies that have not started, which vanish wherever they are; and the children of those that have, which their
scheduler knows, and cancels in its turn.

A scheduler answers a stopped copy like any other, and the answer is dropped.  A task that does not come to a spawn or a
get keeps its scheduler busy; after a grace the driver is asked, again and again, to replace the scheduler if the task
still has the core.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from hdphrs.config import CoreConfig
from hdphrs.protocol.effects import Cancel, Effect, Replace
from hdphrs.protocol.schedulers import Schedulers
from hdphrs.protocol.tasks import Origin, Spark, TaskRef

Copy = tuple[TaskRef, int]


@dataclass(slots=True)
class _Stopping:
    scheduler: Origin
    path: bytes
    until_s: float | None = None
    """None until the end of the event that has cancelled it."""


class Cancelling:
    """The copies that are being stopped on one node."""

    def __init__(self, config: CoreConfig, schedulers: Schedulers) -> None:
        self._grace_s = config.cancel_grace_s
        self._schedulers = schedulers
        self._stopping: dict[Copy, _Stopping] = {}

    def __len__(self) -> int:
        return len(self._stopping)

    def covers(self, spark: Spark) -> bool:
        """Whether this copy is being stopped."""
        return (spark.ref, spark.replica) in self._stopping

    def stop(self, is_cancelled: Callable[[Spark], bool]) -> list[Effect]:
        """Tell schedulers to stop all copies that match; each is told once."""
        effects: list[Effect] = []
        for origin, sparks in self._schedulers.holdings():
            copies: list[Copy] = []
            for spark in sparks:
                if is_cancelled(spark) and not self.covers(spark):
                    copies.append((spark.ref, spark.replica))
                    self._stopping[spark.ref, spark.replica] = _Stopping(origin, spark.task.path)
            if copies:
                self._schedulers.sate(origin)  # a task that waited there has something to do: it ends
                effects.append(Cancel(origin, tuple(copies)))
        return effects

    def end(self, ref: TaskRef, replica: int) -> bool:
        """A scheduler has no part in this copy any more; whether it was to stop it."""
        return self._stopping.pop((ref, replica), None) is not None

    def paths_on(self, scheduler: Origin) -> tuple[bytes, ...]:
        """Where in the tree the tasks are that one scheduler has been told to stop."""
        return tuple(one.path for one in self._stopping.values() if one.scheduler == scheduler)

    def look(self, now: float) -> list[Effect]:
        """Time passes, or something has been cancelled: those that have not ended within the grace."""
        overdue: dict[Origin, list[Copy]] = {}
        for copy, one in self._stopping.items():
            if one.until_s is None:
                one.until_s = now + self._grace_s
            elif one.until_s <= now:
                one.until_s = now + self._grace_s
                overdue.setdefault(one.scheduler, []).append(copy)
        return [Replace(origin, tuple(copies)) for origin, copies in overdue.items()]

    def next_deadline(self) -> float | None:
        """When the next grace is over."""
        if not self._stopping:
            return None
        return min((one.until_s for one in self._stopping.values() if one.until_s is not None), default=None)
