"""Stopping tasks of this process that were cancelled (decision 14).

What lives here: which tasks are to end, and what of theirs can end at once: sparks that wait in the deque, futures that
are away, assigned tasks that have not started.  A task that has started raises `Cancelled` at its next spawn or get,
again and again until it ends.  Main and helper thread may stop at the same time; what either takes is taken.

The node sees to it that a task ends which it has handed over; it is told which call of a bundle such a task descends
from, since it cannot look into bundles.  Of the others it knows nothing, so the helper thread looks whether one keeps
the core for longer than the grace, and says so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from math import inf
from time import perf_counter
from typing import Any

from hdphrs.api import future as fast
from hdphrs.api.future import DONE, FAILED, Future, name_of, take
from hdphrs.config import CANCEL_GRACE_S
from hdphrs.errors import Cancelled
from hdphrs.protocol.tasks import TaskRef
from hdphrs.scheduler.assigned import Assigned, Root, is_below, path_of, root_of
from hdphrs.scheduler.bundles import Bundles
from hdphrs.scheduler.export import Exporter
from hdphrs.scheduler.handlers import Handlers
from hdphrs.scheduler.meter import Meter
from hdphrs.wire import local
from hdphrs.wire.items import pack_outcome
from hdphrs.wire.page import Line
from hdphrs.wire.values import dump_error


class Stopper:
    """Those of one scheduler."""

    def __init__(
        self,
        exporter: Exporter,
        meter: Meter,
        line: Line,
        bundles: Bundles,
        *,
        answer: Callable[[list[Any]], None],
        tell: Callable[..., None],
    ) -> None:
        """
        Args:
            answer: takes the result of an assigned task.
            tell: takes what the node is to know at once.
        """
        self.stopping: dict[Future[Any], float] = {}
        """Tasks that have started and are to end; until when, if the node does not see to that."""
        self.handlers: Handlers = Handlers(self.has_ended)
        self._exporter = exporter
        self._meter = meter
        self._line = line
        self._bundles = bundles
        self._answer = answer
        self._tell = tell

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
                # Before it is stopped, for the other thread may end it from then on, and answer.
                self._tell([local.BEHIND, future.assigned.serial, *self._bundles.behind(future.path)])
                self.stop(future)

    def stop(self, task: Future[Any]) -> None:
        """A task that has started is to end, and all that it has spawned."""
        self.stopping.setdefault(task, inf if isinstance(task, Root) else perf_counter() + CANCEL_GRACE_S)
        self._line.again()
        self._exporter.cancel_below(task)

    def check(self) -> None:
        """The running task spawns, or gets what is not here.

        Raises:
            Cancelled: it is to end.
            BaseException: a signal handler has raised that, for this task, where the task could not be left.
        """
        if self.stopping and self._is_stopping(fast.here.task):
            raise Cancelled("the task was cancelled")
        if self.handlers.held:
            self.handlers.check()

    def check_spawn(self) -> None:
        """As `check`, for a task that has just pushed a spark: that vanishes."""
        if self._is_stopping(fast.here.task):
            with suppress(IndexError):
                take(fast.sparks.pop())
            raise Cancelled("the task was cancelled")

    def ended(self, task: Future[Any]) -> None:
        """A task has come to its end; what it has spawned since it was cancelled goes with it."""
        if task in self.stopping:
            self._exporter.cancel_below(task)
            self.stopping[task] = min(self.stopping[task], perf_counter() + CANCEL_GRACE_S)  # for children that run on
        for one in [one for one in list(self.stopping) if self._is_over(one)]:
            self.stopping.pop(one, None)

    def stuck(self) -> list[list[Any]]:
        """What the node is to know, if a task that was to end long ago keeps the core; the helper thread asks."""
        now_s = perf_counter()
        late = [task for task, until_s in list(self.stopping.items()) if until_s <= now_s]
        serial, account = self._line.running, self._meter.account
        if not late or account is None:
            return []
        task = fast.here.task
        stubborn: Future[Any] | None = None
        is_running = False  # what has been set aside stays `current` until something else begins
        while task is not None:
            if stubborn is None and task in late:
                stubborn = task
            is_running = is_running or self._meter.owner(task) is account
            task = getattr(task, "_parent", None)
        if stubborn is None or not is_running:
            return []
        function = (self._meter.owner(stubborn) or account).function
        name = root_of(stubborn).assigned.spark.task.name if function is None else name_of(function)
        return [[local.STUCK, serial, name, path_of(stubborn)]]

    def has_ended(self, task: Future[Any]) -> bool:
        """Whether this one has, once it has begun."""
        if self._meter.owner(task) is not None:
            return False
        return isinstance(task, Root) or getattr(task, "_status", None) in (DONE, FAILED)  # else in place

    def _is_over(self, task: Future[Any]) -> bool:
        """Whether this one has ended, and nothing below it runs any more: a child may end after its parent."""
        return self.has_ended(task) and not any(is_below(owner, task) for owner in self._meter.owners())

    def _is_stopping(self, task: Future[Any] | None) -> bool:
        return task is not None and any(one is task or is_below(task, one) for one in list(self.stopping))
