"""Limits: tasks that may run for so long only, `@task(timeout=...)` (decision 19).

What lives here: of one node, the copies that its schedulers have begun and that have a limit.  The time counts from the
beginning of a run, so a copy that is run again, here or elsewhere, has all of it again.  What becomes of those that
take longer is in `unwanted.py`.
"""

from __future__ import annotations

from hdphrs.protocol.cancelling import Copy
from hdphrs.protocol.tasks import Origin, Spark, TaskRef
from hdphrs.records import dataclass


@dataclass(frozen=True, slots=True)
class _Running:
    scheduler: Origin
    spark: Spark
    until_s: float


class Limits:
    """Those of one node."""

    def __init__(self) -> None:
        self._running: dict[Copy, _Running] = {}

    def __len__(self) -> int:
        return len(self._running)

    def begin(self, scheduler: Origin, spark: Spark, now: float) -> None:
        """A scheduler has begun to run this copy."""
        self._running[spark.ref, spark.replica] = _Running(scheduler, spark, now + spark.task.timeout_s)

    def end(self, ref: TaskRef, replica: int) -> None:
        """It has ended."""
        self._running.pop((ref, replica), None)

    def forget(self, scheduler: Origin) -> None:
        """A scheduler is dead, with all that ran there."""
        self._running = {copy: one for copy, one in self._running.items() if one.scheduler != scheduler}

    def overdue(self, now: float) -> list[Spark]:
        """Those that have run too long; each is told once."""
        late = [copy for copy, one in self._running.items() if one.until_s <= now]
        return [self._running.pop(copy).spark for copy in late]

    def next_deadline(self) -> float | None:
        """When the next of them will have."""
        return min([one.until_s for one in self._running.values()]) if self._running else None
