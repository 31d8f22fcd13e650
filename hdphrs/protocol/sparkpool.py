"""The sparkpool: tasks of this node that wait to be run or stolen.

What lives here: two queues, oldest first.  Sparks may migrate; threads, placed here by `spawn_at`, may not.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator

from hdphrs.protocol.tasks import Spark


class Sparkpool:
    """Waiting sparks and threads of one node (paper, section 6.1)."""

    def __init__(self) -> None:
        self._sparks: deque[Spark] = deque()
        self._threads: deque[Spark] = deque()

    def __len__(self) -> int:
        """Everything that waits to be run."""
        return len(self._sparks) + len(self._threads)

    @property
    def stealable(self) -> int:
        """How many may migrate."""
        return len(self._sparks)

    def __iter__(self) -> Iterator[Spark]:
        """For checks of the invariants."""
        yield from self._threads
        yield from self._sparks

    def add(self, spark: Spark) -> None:
        """A new spark, or a thread, at the young end."""
        (self._threads if spark.placed else self._sparks).append(spark)

    def put_back(self, sparks: Iterable[Spark]) -> None:
        """Sparks that had left the pool, and the re-created ones, at the old end, in the order given."""
        for spark in reversed(list(sparks)):
            (self._threads if spark.placed else self._sparks).appendleft(spark)

    def take(self) -> Spark:
        """The next one to run here: threads first, then the oldest spark."""
        return (self._threads or self._sparks).popleft()

    def take_for_thief(self) -> Spark:
        """The oldest spark."""
        return self._sparks.popleft()

    def purge(self, is_orphan: Callable[[Spark], bool]) -> int:
        """Drop all that match; how many there were."""
        before = len(self)
        self._sparks = deque(spark for spark in self._sparks if not is_orphan(spark))
        self._threads = deque(spark for spark in self._threads if not is_orphan(spark))
        return before - len(self)
