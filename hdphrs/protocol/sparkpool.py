"""The sparkpool: tasks of this node that wait to be run or stolen.

What lives here: threads, placed here by `spawn_at`, which may not migrate; and sparks, which may.  Both wait oldest
first.  Sparks wait by the *call* of the program's that they descend from, and calls take turns, so that a call with
many sparks does not keep others waiting; those of a higher priority come before all others (decision 54).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from hdphrs.protocol.paths import BUNDLE, call_of
from hdphrs.protocol.tasks import Spark


@dataclass(slots=True)
class _Lane:
    """Sparks of one priority."""

    turns: deque[bytes] = field(default_factory=deque)
    """The calls that have some, in the order of their turns."""
    queues: dict[bytes, deque[Spark]] = field(default_factory=dict)

    def take(self) -> Spark:
        """The oldest of the call whose turn it is."""
        call = self.turns.popleft()
        queue = self.queues[call]
        spark = queue.popleft()
        if queue:
            self.turns.append(call)
        else:
            del self.queues[call]
        return spark

    def take_of(self, call: bytes) -> Spark:
        """The oldest of this call."""
        self.turns.remove(call)
        self.turns.appendleft(call)
        return self.take()


class Sparkpool:
    """Waiting sparks and threads of one node (paper, section 6.1)."""

    def __init__(self) -> None:
        self.arrivals: int = 0
        """Grows when something comes of a call that has nothing here."""
        self._lanes: dict[int, _Lane] = {0: _Lane()}
        """By priority; the one of priority 0 is always there."""
        self._stealable = 0
        self._threads: deque[Spark] = deque()

    def __len__(self) -> int:
        """Everything that waits to be run."""
        return self._stealable + len(self._threads)

    @property
    def stealable(self) -> int:
        """How many may migrate."""
        return self._stealable

    def __iter__(self) -> Iterator[Spark]:
        """All, by call; for checks of the invariants."""
        yield from self._threads
        for lane in self._lanes.values():
            for call in lane.turns:
                yield from lane.queues[call]

    def add(self, spark: Spark) -> None:
        """A new spark, or a thread, at the young end."""
        if spark.placed:
            self._threads.append(spark)
            self.arrivals += 1
            return
        lane, call = self._lane(spark), call_of(spark.task.path)
        self._stealable += 1
        queue = lane.queues.get(call)
        if queue is None:
            lane.queues[call] = deque((spark,))
            lane.turns.append(call)
            self.arrivals += 1
        else:
            queue.append(spark)

    def put_back(self, sparks: Iterable[Spark]) -> None:
        """Sparks that had left the pool, and the re-created ones, at the old end, in the order given."""
        for spark in reversed(list(sparks)):
            if spark.placed:
                self._threads.appendleft(spark)
                self.arrivals += 1
                continue
            lane, call = self._lane(spark), call_of(spark.task.path)
            self._stealable += 1
            queue = lane.queues.get(call)
            if queue is None:
                lane.queues[call] = deque((spark,))
                lane.turns.appendleft(call)
                self.arrivals += 1
            else:
                queue.appendleft(spark)

    def take(self) -> Spark:
        """The next one to run here: threads first, then the oldest spark of the call whose turn it is."""
        return self._threads.popleft() if self._threads else self.take_for_thief()

    def take_for_thief(self) -> Spark:
        """The oldest spark of the call whose turn it is."""
        self._stealable -= 1
        lanes = self._lanes
        if len(lanes) == 1:
            return lanes[0].take()
        priority = max(priority for priority, lane in lanes.items() if lane.queues)
        spark = lanes[priority].take()
        self._clear(priority)
        return spark

    def take_least(self, served: Mapping[bytes, int], most: int, *, bundles: bool = True) -> Spark | None:
        """The next one of a call that is served least, by so many schedulers at most; None if there is none.

        Args:
            bundles: whether it may be a bundle of the program's calls.
        """
        for few in range(most + 1):
            for place, thread in enumerate(self._threads):
                if served.get(call_of(thread.task.path), 0) <= few:
                    del self._threads[place]
                    return thread
            for priority, lane in sorted(self._lanes.items(), reverse=True):
                for call in lane.turns:
                    if served.get(call, 0) <= few and (bundles or not call.startswith(BUNDLE)):
                        spark = lane.take_of(call)
                        self._stealable -= 1
                        self._clear(priority)
                        return spark
        return None

    def purge(self, is_orphan: Callable[[Spark], bool]) -> int:
        """Drop all that match; how many there were."""
        before = len(self)
        self._threads = deque(spark for spark in self._threads if not is_orphan(spark))
        for priority, lane in list(self._lanes.items()):
            for call, queue in list(lane.queues.items()):
                kept = deque(spark for spark in queue if not is_orphan(spark))
                self._stealable -= len(queue) - len(kept)
                if kept:
                    lane.queues[call] = kept
                else:
                    del lane.queues[call]
                    lane.turns.remove(call)
            self._clear(priority)
        return before - len(self)

    def _lane(self, spark: Spark) -> _Lane:
        lane = self._lanes.get(spark.task.priority)
        if lane is None:
            lane = self._lanes[spark.task.priority] = _Lane()
        return lane

    def _clear(self, priority: int) -> None:
        if priority and not self._lanes[priority].queues:
            del self._lanes[priority]
