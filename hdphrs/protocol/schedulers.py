"""The schedulers of this node, as its core sees them: who is up, who is hungry, who holds what.

What lives here: handing tasks from the pool to hungry schedulers, and what becomes of the tasks of one that dies.  Who
became hungry last is fed first (decision 24).  Only the task on whose stack a scheduler died is blamed; the blame is
remembered by path, because a parent that is run again makes the child anew, and a child that took its parent's process
down must not start from zero each time (decision 3).
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import islice

from hdphrs.config import CoreConfig
from hdphrs.protocol.effects import Deliver
from hdphrs.protocol.paths import BUNDLE, call_of, may_hold
from hdphrs.protocol.sparkpool import Sparkpool
from hdphrs.protocol.tasks import Blame, Cause, Crash, Origin, Orphan, Outcome, Piece, Spark, Task, TaskRef, Verdict

BLAME_MAX = 64
"""Tasks whose crashes go along with a SCHEDULE: each may have kilobytes of last words."""


@dataclass(slots=True)
class _Scheduler:
    room: int = 0
    """Tasks it waits for; 0 while it is busy."""
    held: dict[tuple[TaskRef, int], Spark] = field(default_factory=dict)
    """What it has got and not answered, in the order of `Start`."""
    again: dict[tuple[TaskRef, int], Spark] = field(default_factory=dict)
    """Those of them that need not compute everything, since they are run again."""

    beside: dict[tuple[TaskRef, int], None] = field(default_factory=dict)
    """Those that were to be started before what ran."""

    def take(self, copy: tuple[TaskRef, int]) -> Spark:
        """It has no part in this one any more."""
        self.beside.pop(copy, None)
        self.again.pop(copy, None)
        return self.held.pop(copy)


class Schedulers:
    """The crew of one node."""

    def __init__(self, config: CoreConfig, pool: Sparkpool, is_wanted: Callable[[Spark], bool]) -> None:
        """`is_wanted` tells whether a copy is still worth running."""
        self._config = config
        self._pool = pool
        self._is_wanted = is_wanted
        self._up: dict[Origin, _Scheduler] = {}
        self._hungry: dict[Origin, None] = {}
        """In the order in which they asked."""
        self._blame: dict[bytes, tuple[Crash, ...]] = {}
        """By path; the oldest are forgotten."""
        self.is_crowded: bool = False
        """Nobody gets anything: what it would come to could not leave this node soon (`events.Crowded`)."""

    @property
    def hungry(self) -> bool:
        """Whether somebody waits for work, and may have some."""
        return bool(self._hungry) and not self.is_crowded

    @property
    def next_fed(self) -> Origin | None:
        """Who of the hungry gets something first."""
        return None if self.is_crowded else next(reversed(self._hungry), None)

    @property
    def busy(self) -> bool:
        """Whether somebody runs something, or has got something and not answered."""
        return len(self._hungry) < len(self._up) or any(scheduler.held for scheduler in self._up.values())

    def held(self) -> list[Spark]:
        """For checks of the invariants."""
        return [spark for scheduler in self._up.values() for spark in scheduler.held.values()]

    def holdings(self) -> Iterator[tuple[Origin, Iterable[Spark]]]:
        """What each scheduler has got and not answered."""
        return ((origin, scheduler.held.values()) for origin, scheduler in self._up.items())

    def rise(self, origin: Origin) -> None:
        """A scheduler is ready."""
        self._up[origin] = _Scheduler()

    def starve(self, origin: Origin, room: int) -> None:
        """A scheduler waits for up to `room` tasks, or will soon; who says so once more does by now."""
        self._up[origin].room = room
        self._hungry.pop(origin, None)
        self._hungry[origin] = None

    def sate(self, origin: Origin) -> None:
        """One of its futures is filled: it may have a task to go on with, and asks again when it has not."""
        if origin in self._hungry:
            del self._hungry[origin]
            self._up[origin].room = 0

    def deliver(self, ref: TaskRef, outcome: Outcome) -> Deliver:
        """Fill one of their futures, or of the program's."""
        self.sate(ref.origin)
        return Deliver(ref.origin, ref.slot, outcome)

    def assign(
        self, *, alone: bool = False, threads_only: bool = False
    ) -> tuple[list[tuple[Origin, list[Spark]]], list[tuple[TaskRef, int, Outcome]]]:
        """Hand tasks to the hungry, first to who asked last: a fair share, few when few are left.

        Args:
            alone: no other node may ask for some; if one may, half of them are left.
            threads_only: nothing that may migrate.

        Returns:
            Who gets what; and results for those of which another copy has used up their attempts meanwhile, as `fall`
            has them.
        """
        handed: list[tuple[Origin, list[Spark]]] = []
        given_up: list[tuple[TaskRef, int, Outcome]] = []
        pool = self._pool
        left = len(pool) - pool.stealable if threads_only else len(pool)
        shares = len(self._up) * (1 if alone else 2)
        while self._hungry and left:
            origin = next(reversed(self._hungry))
            scheduler = self._up[origin]
            wanted = max(1, min(-(-left // shares), scheduler.room, self._config.start_max))
            sparks: list[Spark] = []
            while left and len(sparks) < wanted:
                spark = pool.take()
                left -= 1
                if self._is_wanted(spark):
                    if self._blame and len(crashes := self.crashes_of(spark.task.path)) > len(spark.crashes):
                        if self.is_given_up(spark.task, crashes):
                            given_up.append((spark.ref, spark.replica, crashed(spark.task, crashes)))
                            continue
                        spark = replace(spark, crashes=crashes)  # so that it runs carefully
                    sparks.append(self._hold(scheduler, spark))
            if sparks:
                scheduler.room = 0
                del self._hungry[origin]
                handed.append((origin, sparks))
        return handed, given_up

    def _hold(self, scheduler: _Scheduler, spark: Spark) -> Spark:
        """It is this scheduler's from now on, as it is returned."""
        key = (spark.ref, spark.replica)
        assert key not in scheduler.held, f"two copies of {spark.ref}#{spark.replica}"
        if self._blame and spark.pieces:
            spark = self._without_charged(spark)
        scheduler.held[key] = spark
        if spark.pieces:
            scheduler.again[key] = spark
        return spark

    def squeeze(self, *, bundles: bool) -> tuple[Origin, Spark] | None:
        """A task of a call that has none on any scheduler, or, where several calls have some, of one that has the
        fewest, which may all wait for it; and the scheduler that is to run it beside what it runs, the one that was
        asked least.  None if there is none, or enough has been asked of all.

        What has taken down a scheduler before waits until one has nothing else to lose.

        Args:
            bundles: whether it may be a bundle of the program's calls, of which there are mostly more.
        """
        most = self._config.share_max
        busy = [(origin, one) for origin, one in self._up.items() if one.held and len(one.beside) < most]
        if not busy or self.is_crowded:
            return None
        served = Counter([call_of(spark.task.path) for one in self._up.values() for spark in one.held.values()])
        fewest = min(served.values()) if len(served) > 1 else 0
        while (spark := self._pool.take_least(served, fewest, bundles=bundles)) is not None:
            if self._is_wanted(spark):
                if spark.crashes or self.crashes_of(spark.task.path):
                    self._pool.put_back([spark])
                    return None
                origin, scheduler = min(busy, key=lambda item: len(item[1].beside))
                spark = self._hold(scheduler, spark)
                scheduler.beside[spark.ref, spark.replica] = None
                return origin, spark
        return None

    def copy(self, origin: Origin, ref: TaskRef, replica: int) -> Spark:
        """What a scheduler has got and not answered."""
        return self._up[origin].held[ref, replica]

    def finish(self, origin: Origin, ref: TaskRef, replica: int) -> Task:
        """A scheduler has answered this task."""
        scheduler, copy = self._up[origin], (ref, replica)
        if scheduler.again:
            scheduler.again.pop(copy, None)
        if scheduler.beside:
            scheduler.beside.pop(copy, None)
        return scheduler.held.pop(copy).task

    def give_back(self, origin: Origin, sparks: tuple[tuple[TaskRef, int], ...]) -> list[Spark]:
        """A scheduler returns what it has not started: these, which the caller puts back."""
        return [self._up[origin].take(spark) for spark in sparks]

    def left_of(self, origin: Origin, path: bytes) -> tuple[Piece | Orphan, ...]:
        """What is left of a child that a task on this scheduler has spawned, if that task is run again."""
        scheduler = self._up.get(origin)
        if scheduler is None or not scheduler.again:
            return ()
        ancestors = [
            spark
            for spark in scheduler.again.values()
            if path.startswith(spark.task.path) and spark.task.path != path  # it may hold an orphan at this very path
        ]
        if not ancestors:
            return ()
        # the nearest has what the others had below it, and no piece twice
        pieces = max(ancestors, key=lambda spark: len(spark.task.path)).pieces
        start = end = bisect_left(pieces, path, key=lambda piece: piece.path)
        while end < len(pieces) and pieces[end].path.startswith(path):
            end += 1
        return pieces[start:end]

    def crashes_of(self, path: bytes) -> tuple[Crash, ...]:
        """The crashes that are charged to the task at this path; of a bundle, also those of a task that it may hold.

        So that one comes alone: one is charged for its value, and given up, by its own path.
        """
        if not self._blame:
            return ()
        crashes = self._blame.get(path, ())
        return crashes or (self._crashes_within(path) if path.startswith(BUNDLE) else ())

    def _crashes_within(self, bundle: bytes) -> tuple[Crash, ...]:
        charged = (crashes for path, crashes in self._blame.items() if may_hold(bundle, path))
        return next(charged, ())

    def _without_charged(self, spark: Spark) -> Spark:
        """It is not handed finished parts that have taken down who unpickled them: it makes the task anew, and hears
        from this node if that is given up."""
        return replace(spark, pieces=tuple(piece for piece in spark.pieces if not self._is_deadly(piece)))

    def _is_deadly(self, part: Piece | Orphan) -> bool:
        charged = self._blame.get(part.path, ())
        return isinstance(part, Piece) and any(crash.cause is Cause.VALUE for crash in charged)

    def blame_of(self, paths: Iterable[bytes]) -> tuple[Blame, ...]:
        """What is charged to the tasks at these paths and to what descends from them, which each re-run makes anew: the
        newest of it."""
        if not self._blame:
            return ()
        above = tuple(paths)
        newest = (Blame(path, crashes) for path, crashes in reversed(self._blame.items()) if path.startswith(above))
        return tuple(islice(newest, BLAME_MAX))[::-1]

    def is_given_up(self, task: Task, crashes: tuple[Crash, ...]) -> bool:
        """Whether these are as many as its attempts."""
        return len(crashes) >= (task.attempts or self._config.attempts_max)

    def fall(
        self, origin: Origin, running: tuple[TaskRef, int] | None, crash: Crash | None
    ) -> tuple[list[Spark], list[tuple[TaskRef, int, Outcome]]]:
        """A scheduler is dead: blame the task it was running, for all that it held is lost with it.

        Args:
            crash: None if nobody is to blame.

        Returns:
            What is to be run again, oldest first, which the caller puts back; and results for the tasks that have
            used up their attempts: (ref, replica, verdict).
        """
        scheduler = self._up.pop(origin, None)
        self._hungry.pop(origin, None)
        if scheduler is None:
            return [], []
        given_up: list[tuple[TaskRef, int, Outcome]] = []
        survivors: list[Spark] = []
        for key, spark in scheduler.held.items():
            if key != running or crash is None:
                survivors.append(spark)
                continue
            blamed = replace(spark, crashes=(*spark.crashes, crash))
            self.charge(spark.task.path, blamed.crashes)
            if not self.is_given_up(spark.task, blamed.crashes):
                survivors.append(blamed)
            else:
                given_up.append((*key, crashed(spark.task, blamed.crashes)))
        return survivors, given_up

    def convict(self, path: bytes, crashes: tuple[Crash, ...]) -> None:
        """The task at this path has used up its attempts on another node: it is not tried again for a parent here."""
        self._remember(path, crashes)

    def charge(self, path: bytes, crashes: tuple[Crash, ...]) -> None:
        """The task at this path, or what it left behind, has taken a scheduler down: made anew, it runs carefully.

        So a culprit among its children crashes alone, if it may leave: then its parent is not charged again.  One that
        never leaves its parent's process shares its fate, and the parent shares the child's.

        Args:
            crashes: what it had been charged with when it ran, and this one, or what it is charged with where it comes
                from; runs without care do not add up.
        """
        if len(crashes) > len(self.crashes_of(path)):
            self._remember(path, crashes)

    def accuse(self, path: bytes, crash: Crash) -> tuple[Crash, ...]:
        """What the task at this path has come to has taken down who unpickled it, wherever that task has run: all that
        is charged to it now."""
        crashes = (*self._blame.get(path, ()), crash)
        self._remember(path, crashes)
        return crashes

    def _remember(self, path: bytes, crashes: tuple[Crash, ...]) -> None:
        self._blame.pop(path, None)
        self._blame[path] = crashes
        if len(self._blame) > self._config.remembered_crashes_max:
            del self._blame[next(iter(self._blame))]


def crashed(task: Task, crashes: tuple[Crash, ...]) -> Outcome:
    """The end of a task that has used up its attempts."""
    return Outcome(Verdict.CRASHED, task.name.encode(), crashes)
