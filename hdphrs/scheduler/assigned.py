"""The tasks that a scheduler gets from its node, and the paths of those that it makes.

What lives here: the future that stands for an assigned task at the bottom of each stack, and the way back to it from
the futures above.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

from hdphrs.api.future import Future
from hdphrs.protocol.paths import child_path
from hdphrs.protocol.tasks import Spark
from hdphrs.scheduler.reuse import Reuse


def _undecoded(*_: Any) -> NoReturn:
    raise AssertionError("an assigned task is decoded before it runs")


class Assigned(Future[Any]):
    """A spark that the node has handed over; waits in the deque with the scheduler's own sparks until it runs."""

    __slots__ = ("careful", "reuse", "serial", "spark")

    def __init__(self, serial: int, spark: Spark) -> None:
        self._function: Callable[..., Any] | None = _undecoded
        self._parent = None
        self.serial: int = serial
        self.spark: Spark = spark
        self.careful: bool = bool(spark.crashes)
        self.reuse: Reuse | None = None
        """What it need not compute again, if it is run again."""


def root_of(future: Future[Any]) -> Assigned:
    """The assigned task that this one descends from."""
    while future._parent is not None:
        future = future._parent
    assert isinstance(future, Assigned)
    return future


def is_below(future: Future[Any], task: Future[Any]) -> bool:
    """Whether the task has spawned this one, or one that has, in this process."""
    above: Future[Any] | None = future
    while above is not None:
        above = getattr(above, "_parent", None)  # one that is just being placed has none yet
        if above is task:
            return True
    return False


def path_of(future: Future[Any]) -> bytes:
    """Digest of the spawn indices from the program down to this task."""
    indices = []
    while future._parent is not None:
        indices.append(future._index)
        future = future._parent
    assert isinstance(future, Assigned)
    path = future.spark.task.path
    for index in reversed(indices):
        path = child_path(path, index)
    return path
