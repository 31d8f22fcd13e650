"""Stopping tasks of this process that were cancelled (decision 14).

What lives here: which tasks are to end, and what of theirs can end at once: sparks that wait in the deque, futures that
are away, assigned tasks that have not started.  A task that has started raises `Cancelled` at its next spawn or get,
again and again until it ends.  Main and helper thread may stop at the same time; what either takes is taken.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any

from hdphrs.api import future as fast
from hdphrs.api.future import DONE, FAILED, Future, take
from hdphrs.errors import Cancelled
from hdphrs.protocol.tasks import TaskRef
from hdphrs.scheduler.assigned import Assigned, Root, is_below
from hdphrs.scheduler.bundles import Bundles
from hdphrs.scheduler.export import Exporter
from hdphrs.scheduler.meter import Meter
from hdphrs.wire.codec import pack_outcome
from hdphrs.wire.page import Line
from hdphrs.wire.values import dump_error


class Stopper:
    """Those of one scheduler."""

    def __init__(
        self, exporter: Exporter, meter: Meter, line: Line, bundles: Bundles, answer: Callable[[list[Any]], None]
    ) -> None:
        """`answer` takes the result of an assigned task."""
        self.stopping: dict[Future[Any], None] = {}
        """Tasks that have started and are to end."""
        self._exporter = exporter
        self._meter = meter
        self._line = line
        self._bundles = bundles
        self._answer = answer

    def stop_copies(self, copies: Iterable[Any]) -> None:
        """STOP: what the node wants no more, if it is still here."""
        unwanted = {(TaskRef(*ref), replica) for ref, replica in copies}
        self._bundles.stop(unwanted)
        for future in list(fast.sparks):
            if not isinstance(future, Assigned) or future.copy not in unwanted or future.has_begun:
                continue
            if take(future) is not None:
                spark = future.spark
                outcome = dump_error(spark.task.name, Cancelled("the task was cancelled before it had started"))
                self._answer([list(spark.ref), spark.replica, pack_outcome(outcome), 0.0, 0.0])
        for future in self._meter.owners():
            if isinstance(future, Root) and future.copy in unwanted:
                self.stop(future)

    def stop(self, task: Future[Any]) -> None:
        """A task that has started is to end, and all that it has spawned."""
        for ended in [one for one in list(self.stopping) if getattr(one, "_status", None) in (DONE, FAILED)]:
            self.stopping.pop(ended, None)
        self.stopping[task] = None
        self._line.again()
        self._exporter.cancel_below(task)

    def check(self) -> None:
        """The running task spawns, or gets what is not here.

        Raises:
            Cancelled: it is to end.
        """
        if self.stopping and self._is_stopping(fast.current):
            raise Cancelled("the task was cancelled")

    def check_spawn(self) -> None:
        """As `check`, for a task that has just pushed a spark: that vanishes."""
        if self._is_stopping(fast.current):
            with suppress(IndexError):
                take(fast.sparks.pop())
            raise Cancelled("the task was cancelled")

    def ended(self, task: Future[Any]) -> None:
        """A task has come to its end; what it has spawned since it was cancelled goes with it."""
        if task in self.stopping:
            self._exporter.cancel_below(task)
            self.stopping.pop(task, None)

    def _is_stopping(self, task: Future[Any] | None) -> bool:
        return task is not None and any(one is task or is_below(task, one) for one in list(self.stopping))
