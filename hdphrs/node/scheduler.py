"""One scheduler as its node sees it.

What lives here: `Scheduler`, a process, a link, and what has been handed to it; and what is remembered of its tasks,
for the day on which it dies.  What does not: all of them together (`crew.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from math import inf
from time import perf_counter
from typing import NamedTuple

from hdphrs.node.link import NodeLink
from hdphrs.node.process import SchedulerProcess
from hdphrs.node.voices import Speaker, Voices
from hdphrs.protocol.paths import BUNDLE
from hdphrs.protocol.tasks import Crash, Origin, Spark, Task, TaskRef
from hdphrs.wire.bundle import is_bundle
from hdphrs.wire.page import Reading
from hdphrs.wire.tray import Taker

ENDED_MAX = 1024
"""Ended tasks of one scheduler that are remembered."""


class Named(NamedTuple):
    """What is remembered of a task: not its payload."""

    name: str
    path: bytes


class Behind(NamedTuple):
    """The call of a bundle that a cancelled task descends from, as its scheduler says."""

    serial: int
    """Of the bundle; 0 if there is none."""
    call: bytes
    """Its path."""


class Fault(NamedTuple):
    """Why its node has ended its process."""

    how: str
    """How it has ended, for people."""
    running: int
    """The serial number of the task that had its core then; 0 for none."""
    forgiven: bool = False
    """Whether no task is charged for it the first time."""
    suspects: tuple[int, ...] = ()
    """The serial numbers of the tasks of which one has done it, if that cannot be known for sure."""


class Ended(NamedTuple):
    """And if it has ended: it may have left something behind."""

    task: Named
    crashes: tuple[Crash, ...] = ()
    """What it had been charged with when it was handed out."""


NOBODY = Ended(Named("", b""))


class Scheduler:
    """One scheduler as its node sees it: a process, a link, and what has been handed to it."""

    def __init__(self, origin: Origin, process: SchedulerProcess, voices: Voices) -> None:
        self.origin: Origin = origin
        self.process: SchedulerProcess = process
        self.link: NodeLink = NodeLink(process.work, process.line.post)
        self.tray: Taker = Taker(process.tray, process.line)
        self.speaker: Speaker = Speaker(voices, process, self.running)
        self.ready: bool = False
        self.began_s: float = perf_counter()
        self.ready_s: float = inf
        """When it was started, and when it was ready."""
        self.fellows: list[bytes | None] = []
        """Of the schedulers that were killed at the same moment, the paths of their tasks; None for none."""
        self.handed: dict[int, Spark] = {}
        """By serial, what it has got and not answered."""
        self.ended: dict[int, Ended] = {}
        """By serial, the tasks that it has answered last: sparks that they did not get may still run."""
        self.arguments: dict[int, str] = {}
        """serial -> a summary of the arguments, of those that have crashed before."""
        self.look_s: float = 0.0
        """When to see again whether it computes or waits."""
        self.fed: bool = False
        """Whether it has got tasks since it was hungry."""
        self.asked_s: float = inf
        """When it was to see the demand byte, or got what it has; endless if it has nothing, or has been nudged."""
        self.hungry: bool = False
        """Whether it waits for tasks, or soon will."""
        self.is_asked: bool = False
        """Whether its helper thread is to look: what it has was cancelled, or something is to run before that."""
        self.stubborn: Named | None = None
        """The cancelled task because of which its process was ended."""
        self.fault: Fault | None = None
        """Because of which its process was ended."""
        self.unwanted: set[tuple[TaskRef, int]] = set()
        """Of what it has got, what is cancelled."""
        self.behind: dict[int, Behind] = {}
        """By serial, of those that are cancelled and had begun."""
        self._serials: dict[tuple[TaskRef, int], int] = {}

    def begin(self) -> None:
        """It has something to do."""
        self.hungry = False
        self.asked_s = min(self.asked_s, perf_counter())

    def hand(self, serial: int, spark: Spark) -> None:
        """It gets this task."""
        self.handed[serial] = spark
        self._serials[spark.ref, spark.replica] = serial

    def runs(self, copies: Sequence[tuple[TaskRef, int]]) -> Task | None:
        """Which of these has its core."""
        running = self.process.line.running
        if running != 0 and any(self._serials.get(copy) == running for copy in copies):
            return self.handed[running].task
        return None

    def replace(self, stubborn: Named) -> None:
        """A cancelled task has its core, and does not end: the process is."""
        self.stubborn = stubborn
        self.process.process.kill()

    def condemn(self, fault: Fault) -> None:
        """Nothing can be done with its process any more, unless that has been found before: it is ended."""
        if self.fault is None:
            self.fault = fault
            self.process.process.kill()

    def spoil(self, how: str) -> None:
        """A task has written into one of its links: that which runs, or one that has run since it was last heard, for
        the next one may have begun.  Not one that is charged already: it runs apart from others (`Mail.settle`)."""
        running = self.process.line.running
        if running in self.handed and self.handed[running].crashes:
            self.condemn(Fault(how, running))
            return
        suspects = [
            serial for serial, spark in self.handed.items() if not spark.crashes and (running == 0 or serial <= running)
        ]
        self.condemn(Fault(how, running, False, tuple(suspects)))

    def running(self) -> Named:
        """Name and path of the task whose value it unpickles, or which has its core, or had it last, as far as one
        knows."""
        label = self.process.line.unpickles
        if label.reading is Reading.VALUE:
            return Named(label.name, label.path)
        spark = self.handed.get(self.process.line.running)
        if spark is None:
            return next(reversed(self.ended.values()), NOBODY).task
        return Named(spark.task.name, b"" if is_bundle(spark.task.path) else spark.task.path)

    def above(self, path: bytes, running: int) -> Spark | None:
        """The nearest ancestor of a cancelled task that it has got, and that somebody wants, or the bundle of it.

        If the scheduler has not said which bundle that is, since something kept even its helper thread from running, it
        may be any.

        Args:
            path: of the task, which is what `running` stands for, or was spawned by that on its scheduler.
            running: the serial of what had the core.
        """
        wanted = {serial: self.handed[serial] for copy, serial in self._serials.items() if copy not in self.unwanted}
        bundles = {serial: spark for serial, spark in wanted.items() if is_bundle(spark.task.path)}
        if running in bundles:
            return bundles[running]
        path = path.removeprefix(BUNDLE)  # of a task's bundle, it is that of its first call
        above = {
            spark.task.path: spark
            for spark in wanted.values()
            if path.startswith(spark.task.path) and path != spark.task.path
        }
        behind = self.behind.get(running)
        if behind is not None and behind.serial in bundles:
            above[behind.call] = bundles[behind.serial]
        if above:
            return above[max(above, key=len)]
        return next(iter(bundles.values()), None) if behind is None else None

    @property
    def is_idle(self) -> bool:
        """Whether it waits for tasks, and runs none meanwhile."""
        return self.hungry and self.process.line.since_s == 0.0

    @property
    def owes_an_answer(self) -> bool:
        """Whether it has not answered the demand byte, and is deep in a task or about to begin."""
        line = self.process.line
        return line.demand and (self.fed or (line.running != 0 and not self.hungry))

    def ask(self, what: bytes) -> None:
        """Something for its helper thread."""
        with suppress(OSError):  # it has been asked often enough, or is dead
            self.process.control.send(what)

    def take_back(self, ref: TaskRef, replica: int) -> Task:
        """It has answered, or given back, this task."""
        serial = self._serials.pop((ref, replica))
        self.unwanted.discard((ref, replica))
        self.behind.pop(serial, None)
        spark = self.handed.pop(serial)
        self.ended[serial] = Ended(Named(spark.task.name, spark.task.path), spark.crashes)
        if len(self.ended) > ENDED_MAX:
            del self.ended[next(iter(self.ended))]
        self.arguments.pop(serial, None)
        return spark.task

    def kill(self) -> None:
        """End the process, and close every descriptor."""
        self.process.kill()
        self.speaker.close()

    def forget(self) -> None:
        """It is buried: let go of what it had, for it is part of cycles, and payloads have descriptors."""
        self.link.close()
        for memory in (self.handed, self.ended, self.arguments, self.behind, self._serials):
            memory.clear()
        self.unwanted.clear()
