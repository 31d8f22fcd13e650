"""How often a scheduler's helper thread looks after what runs.

What lives here: `Rhythm`.  While tasks come and go there is a tick every so often; if ticks find nothing to do, again
and again, they come more rarely, since each takes the interpreter from the task that runs.  When nothing has changed
since the last one, neither what runs nor how many tasks have run, the next comes later and later, after `PATIENCE` of
the time for which nothing has changed; and when nothing has run for `ASLEEP_S`, not until the thread is woken.  So an
idle scheduler does nothing at all, and what may go unseen after a long quiet time is short against that time.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from time import perf_counter

PATIENCE = 1 / 8
"""Of the time for which nothing has changed, that is how long the next tick takes to come."""

TICK_S_MAX = 0.25
"""But no longer than this while something runs."""

VAIN_S_MAX = 0.12
"""And no longer than this while tasks come and go, and ticks find nothing to do."""

ASLEEP_S = 0.5
"""When nothing has run for so long, there is none."""

NOTHING = 0
"""What runs, when nothing does."""


class Rhythm:
    """Of one helper thread."""

    def __init__(self, state: Callable[[], tuple[int, ...]], clock: Callable[[], float] = perf_counter) -> None:
        """`state` is what runs, or `NOTHING`, and whatever else changes when something happens."""
        self.is_slow: bool = False
        """Whether the thread must be woken when something else begins: by whoever begins it, after `state` says so."""
        self._state = state
        self._clock = clock
        self._seen: tuple[int, ...] = ()
        self._since_s = 0.0
        """When that began."""
        self._vain_s = 0.0
        """The last pause, if the tick before it had nothing to do."""
        self._next_s = 0.0
        """When the next tick is to come."""

    def change(self) -> None:
        """Something else begins."""
        self.is_slow = False
        self._seen = ()
        self._vain_s = 0.0

    def is_later_than(self, for_s: float) -> bool:
        """Whether the next tick comes later than that."""
        return self._next_s > self._clock() + for_s

    def quiet_s(self) -> float:
        """For how long nothing has changed, as far as has been seen."""
        return self._clock() - self._since_s if self._state() == self._seen else 0.0

    def pause_s(self, tick_s: float, *, patient: bool, useful: bool) -> float:
        """How long until the next tick; without end if there is none.

        Args:
            tick_s: how often one comes while tasks come and go.
            patient: whether it may come later while nothing changes.
            useful: whether the last one had something to do, or the next one will.
        """
        self.is_slow = True  # before the look: who begins something now sees this, or else is seen
        now_s = self._clock()
        seen = self._state()
        if seen != self._seen:
            self._seen, self._since_s = seen, now_s
        quiet_s = now_s - self._since_s
        runs = seen[0] != NOTHING
        if not runs and quiet_s >= ASLEEP_S:
            self._next_s = inf
            return inf
        self._vain_s = tick_s if useful else max(tick_s, min(2 * self._vain_s, VAIN_S_MAX))
        pause_s = max(self._vain_s, min(quiet_s * PATIENCE, TICK_S_MAX)) if patient or not runs else tick_s
        self.is_slow = pause_s > self._vain_s
        self._next_s = now_s + pause_s
        return pause_s
