"""Which tasks that run in place take long, so that their results are worth keeping (decision 8).

What lives here: samples of the running stack, taken by the helper thread now and then.  A future that is found on
the stack for the second time is *watched*: when `get` has run it, and before its caller sees the value, which it may
change, `Watcher.finished` is called.  The fast path pays for all this with one comparison.
"""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter
from typing import Any, NamedTuple

from hdphrs.api import future as fast
from hdphrs.api.future import Future
from hdphrs.config import PIECE_COST_S

DEPTH_MAX = 10_000
"""Futures of one stack that are looked at."""


class Since(NamedTuple):
    """The beginning of a future's run."""

    about_s: float
    """As far as one can tell."""
    seen_s: float
    """When it was first seen; so it began before."""


class Sample(NamedTuple):
    """Futures on the running stack, innermost first, and since when they run."""

    futures: list[Future[Any]]
    since: dict[Future[Any], Since]
    looked_s: float
    """When the sample was taken."""


NOTHING = Sample([], {}, 0.0)


class Watcher:
    """Watches the stacks of one scheduler; the helper thread looks, the main thread does the rest."""

    def __init__(self, clock: Callable[[], float], wall: Callable[[], float] = perf_counter) -> None:
        """`clock` tells for how long the running stack has run, and stands still for those that are set aside; `wall`
        does not."""
        self.on_change: Callable[[], None] = lambda: None
        """Called in the main thread when a watched future has its value, and something else runs."""
        self.sees_much: bool = True
        """Whether what was there at one of the last two looks may be worth keeping: it was seen twice, has children of
        its own (and at looks that are rare it would be seen but once), or may take half as long as a piece must."""
        self._saw = False
        """The same of the last look alone: where a child ends that was its parent's last, several end at once."""
        self._clock = clock
        self._wall = wall
        self._sample = NOTHING
        self._ran = 0
        """How many children had run in place at the last look."""
        self._at_s = 0.0
        """When that was."""

    def look(self) -> None:
        """Sample the stack."""
        now_s = self._clock()
        known = self._sample.since
        looked_s = self._sample.looked_s
        about_s = (now_s + (looked_s if looked_s < now_s else 0.0)) / 2  # those that are new, on the average
        new = Since(about_s, now_s)
        futures: list[Future[Any]] = []
        future = fast.here.task
        while future is not None and future._parent is not None and len(futures) < DEPTH_MAX:
            futures.append(future)
            future = future._parent
        self._sample = Sample(futures, {future: known.get(future, new) for future in futures}, now_s)
        fast.watched = next((future for future in futures if future in known), None)
        self._judge(len(futures))

    def _judge(self, depth: int) -> None:
        at_s, ran = self._wall(), fast.here.ran
        are_long = depth > 0 and at_s - self._at_s > PIECE_COST_S / 2 * (1 + ran - self._ran)
        saw, self._saw = self._saw, depth > 1 or fast.watched is not None or are_long
        self.sees_much = self._saw or saw
        self._at_s, self._ran = at_s, ran

    def finished(self, future: Future[Any]) -> tuple[float, float]:
        """The watched future has its value; returns for how many seconds it has run, about, and how many surely."""
        self.on_change()
        sample = self._sample
        since = sample.since.get(future)
        now_s = self._clock()
        if since is None:  # the helper has looked a moment ago
            fast.watched = None
            return 0.0, 0.0
        outer = sample.futures[sample.futures.index(future) + 1 :]
        fast.watched = outer[0] if outer else None
        return now_s - since.about_s, now_s - since.seen_s

    def leave(self) -> Sample:
        """The running stack has ended, or sets itself aside; what has been seen of it is for `resume`, or nobody."""
        sample, self._sample = self._sample, NOTHING
        fast.watched = None
        return sample

    def resume(self, sample: Sample) -> None:
        """A stack that was left goes on."""
        self._sample = sample
        fast.watched = sample.futures[0] if sample.futures else None
