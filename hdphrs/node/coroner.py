"""Of what a scheduler has died, and who is to blame.

What lives here: `Coroner`, which says so once for each dead scheduler.  What does not: its burial, and its heir
(`crew.py`); what a crash costs a task (`hdphrs.protocol`).
"""

from __future__ import annotations

import signal
from collections.abc import Iterable, Sequence
from time import perf_counter

from hdphrs.node.links import LOST
from hdphrs.node.scheduler import NOBODY, Named, Scheduler
from hdphrs.node.starts import is_from_outside
from hdphrs.node.suspicion import Suspicion
from hdphrs.oom import OomWitness
from hdphrs.protocol.events import SchedulerDied
from hdphrs.protocol.tasks import Cause, Crash, Piece, Spark
from hdphrs.wire.bundle import is_bundle
from hdphrs.wire.page import Label, Reading
from hdphrs.wire.settings import LINKS_LOST_STATUS

REMEMBERED_MAX = 1024
"""Cancelled tasks of which it is remembered that they took an ancestor along; and tasks that have been forgiven."""


class Coroner:
    """That of one node."""

    def __init__(self, host: str, schedulers: int = 1) -> None:
        self._host = host
        self._witness = OomWitness()
        self._suspicion = Suspicion(schedulers)
        self._stubborn: dict[bytes, int] = {}
        """Paths of cancelled tasks that have taken an ancestor along."""
        self._forgiven: dict[bytes, int] = {}
        """Paths of tasks that have not been charged with a fault."""
        self._suspects: dict[bytes, int] = {}
        """How often the tasks at these paths may have been the one that wrote into a link."""

    def inquire(self, scheduler: Scheduler, others: Iterable[Scheduler] = ()) -> tuple[str, SchedulerDied]:
        """A line for the user, and what the core is to hear.

        Args:
            scheduler: has been reaped, and all that it said has been heard.
            others: the schedulers of the node besides; some may have ended too.
        """
        process = scheduler.process
        fault = scheduler.fault
        serial = process.line.running if fault is None else fault.running
        if fault is not None and fault.suspects:
            serial = self._most_suspect(scheduler, fault.suspects)
        running, ended = scheduler.handed.get(serial), scheduler.ended.get(serial)
        is_known = scheduler.stubborn is not None or (fault is not None and fault.suspects)
        label = Label() if is_known else process.line.unpickles
        how = process.how_it_ended()
        may_be_outside = scheduler.stubborn is None and fault is None and is_from_outside(process)
        if process.process.returncode == LINKS_LOST_STATUS:
            how = LOST
        elif fault is not None and process.process.returncode == -signal.SIGKILL:
            how = fault.how
        elif process.process.returncode == -signal.SIGKILL and self._witness.has_risen():
            how += ", out of memory"
            may_be_outside = False
        doing, left, cause, read_of = "while it ran no task", NOBODY, Cause.RUN, b""
        if label.reading is Reading.VALUE:
            doing = f"while it unpickled the value of task {label.name}"
            running, cause, read_of = None, Cause.VALUE, label.path
        elif label.reading is Reading.FIND:
            doing, running = "while it unpickled what a task of a search had found", None
        elif running is not None and label.reading is Reading.ARGUMENTS:
            doing, cause = f"while it unpickled the arguments of task {running.task.name}", Cause.ARGUMENTS
        elif running is not None:
            doing = f"while it ran task {running.task.name}"
        elif ended is not None:
            doing, left = f"while it ran what task {ended.task.name} had left behind", ended
        copy = None if running is None else (running.ref, running.replica)
        arguments = "" if running is None else scheduler.arguments.get(serial, "")
        crash = Crash(self._host, process.pid, how, arguments, scheduler.speaker.errors.text(), cause)
        stubborn = scheduler.stubborn
        suspect = read_of or (left.task.path if running is None else running.task.path) or None
        if may_be_outside:
            for other in others:
                if is_from_outside(other.process):
                    scheduler.fellows.append(_task_of(other))
                    other.fellows.append(suspect)
        blameless = stubborn is not None or (fault is not None and fault.forgiven and self._is_forgiven(suspect))
        if may_be_outside and self._is_outside(scheduler, suspect):
            doing += ", which is not to blame"
            blameless, read_of = True, b""
        if stubborn is not None:
            doing = f"while it ran task {stubborn.name}, which was cancelled and did not end"
            if culprit := self._blamed(scheduler, stubborn, serial):
                copy, blameless = (culprit.ref, culprit.replica), False
                why = f"{how}, because task {stubborn.name} was cancelled and did not end"
                crash = Crash(self._host, process.pid, why, "", crash.words)
        return (
            f"scheduler process {process.pid} on {self._host} {how} {doing}",
            SchedulerDied(scheduler.origin, copy, crash, blameless, left.task.path, left.crashes, read_of),
        )

    def got_on(self, kept: Iterable[Piece]) -> None:
        """These are finished, and need not be done again whatever is killed."""
        if self._suspicion:
            for piece in kept:
                self._suspicion.got_on(piece.path)

    def _is_outside(self, scheduler: Scheduler, suspect: bytes | None) -> bool:
        """Whether something else than the task at this path has killed it; None if no task did anything there."""
        now_s = perf_counter()
        lived_s = max(0.0, now_s - scheduler.ready_s)
        is_outside = self._suspicion.is_outside(suspect, now_s, lived_s, scheduler.fellows)
        return is_outside and suspect is not None

    def _most_suspect(self, scheduler: Scheduler, serials: Sequence[int]) -> int:
        """Which of these has most probably done it: it is there each time, and others are there by chance; of those
        that are there as often, the last that ran."""
        found: dict[int, int] = {}
        for serial in serials:
            if serial in scheduler.handed:  # else it has been answered meanwhile
                path = scheduler.handed[serial].task.path
                found[serial] = self._suspects.get(path, 0) + 1
                _remember(self._suspects, path, found[serial])
        return max(found, key=lambda serial: (found[serial], serial), default=0)

    def _is_forgiven(self, path: bytes | None) -> bool:
        """Whether a fault is not charged to the task at this path: it is when it comes again."""
        if path is None:
            return True
        if path in self._forgiven:
            return False
        _remember(self._forgiven, path, 1)
        return True

    def _blamed(self, scheduler: Scheduler, cancelled: Named, running: int) -> Spark | None:
        """Whose fault it is that a cancelled task has not ended, and its scheduler is replaced: nobody's, unless the
        same task takes an ancestor along for the second time.  That would make and cancel it again, and so on for ever.
        (What has run for too long is not made again, decision 19.)  A bundle that is charged comes back as calls alone,
        to which nothing is charged by that (decision 16)."""
        above = scheduler.above(cancelled.path, running)
        if above is None or cancelled.path in self._stubborn:
            return above
        _remember(self._stubborn, cancelled.path, 1)
        return above if is_bundle(above.task.path) else None


def _remember(paths: dict[bytes, int], path: bytes, times: int) -> None:
    paths[path] = times
    if len(paths) > REMEMBERED_MAX:
        del paths[next(iter(paths))]


def _task_of(scheduler: Scheduler) -> bytes | None:
    """The path of the task that runs, or last ran, in a scheduler, as far as its node knows; None if there is none."""
    serial = scheduler.process.line.running
    if (spark := scheduler.handed.get(serial)) is not None:
        return spark.task.path
    return ended.task.path if (ended := scheduler.ended.get(serial)) is not None else None
