"""The tasks that a scheduler gets from its node, and the paths of those that it makes.

What lives here: the future that stands for an assigned task at the bottom of each stack, and the way back to it from
the futures above.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

from hdphrs.api.future import Future
from hdphrs.protocol.paths import child_path
from hdphrs.protocol.tasks import Spark, TaskRef
from hdphrs.scheduler.reuse import Reuse

Copy = tuple[TaskRef, int]
"""(ref, replica)."""


def undecoded(*_: Any) -> NoReturn:
    raise AssertionError("an assigned task is decoded before it runs")


class Root(Future[Any]):
    """A task that was not spawned in this process: the tasks above it on a stack descend from it."""

    __slots__ = ()

    @property
    def path(self) -> bytes:
        """Its own."""
        raise NotImplementedError

    @property
    def copy(self) -> Copy:
        """By what the node knows it, or the bundle that it belongs to."""
        raise NotImplementedError

    @property
    def is_supervised(self) -> bool:
        """Whether it is run again if it is lost."""
        raise NotImplementedError

    @property
    def assigned(self) -> Assigned:
        """What the node has handed over: itself, or the bundle that it belongs to."""
        raise NotImplementedError


class Assigned(Root):
    """A spark that the node has handed over; waits in the deque with the scheduler's own sparks until it runs."""

    __slots__ = ("careful", "reuse", "serial", "spark")

    def __init__(self, serial: int, spark: Spark) -> None:
        self._function: Callable[..., Any] | None = undecoded
        self._parent = None
        self._spawned = 0
        self.serial: int = serial
        self.spark: Spark = spark
        self.careful: bool = bool(spark.crashes)
        self.reuse: Reuse | None = None
        """What it need not compute again, if it is run again."""

    @property
    def path(self) -> bytes:
        return self.spark.task.path

    @property
    def copy(self) -> Copy:
        return self.spark.ref, self.spark.replica

    @property
    def is_supervised(self) -> bool:
        return self.spark.task.supervised

    @property
    def assigned(self) -> Assigned:
        return self

    @property
    def has_begun(self) -> bool:
        """Whether only a part of it waits in the deque."""
        return False

    def give_back(self) -> list[object] | None:
        """It was taken out of the deque, for others to run it: the item of RETURN, if there is to be one."""
        return [list(self.spark.ref), self.spark.replica]


def root_of(future: Future[Any]) -> Root:
    """The task that this one descends from, and which was not spawned here."""
    while future._parent is not None:
        future = future._parent
    assert isinstance(future, Root)
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
    assert isinstance(future, Root)
    path = future.path
    for index in reversed(indices):
        path = child_path(path, index)
    return path
