"""Fairness: a call of the program's that nobody serves is run beside those that have the cores (decision 54).

What lives here: when that is done.  What does not: whose turn it is when somebody has nothing to do (`sparkpool.py`),
which scheduler gives way (`schedulers.py`), and how, which is at the next spawn of what runs there
(`hdphrs/scheduler/turn.py`).
"""

from __future__ import annotations

from hdphrs.config import CoreConfig
from hdphrs.protocol.code import CodeStore, party
from hdphrs.protocol.counters import Counters
from hdphrs.protocol.effects import Effect, Start, Teach
from hdphrs.protocol.schedulers import Schedulers
from hdphrs.protocol.sparkpool import Sparkpool

BUNDLE_LOOKS = 4
"""After so many looks in vain a bundle of the program's calls is started beside others too: bundles of many calls come
after each other, each of which takes some `fair_s` and more."""


class Fairness:
    """Shares the cores of one node between calls."""

    def __init__(
        self, config: CoreConfig, pool: Sparkpool, schedulers: Schedulers, code: CodeStore, counters: Counters
    ) -> None:
        self._fair_s = config.fair_s
        self._pool = pool
        self._schedulers = schedulers
        self._code = code
        self._counters = counters
        self._due_s: float | None = None
        self._started = 0
        """Tasks that had been handed out when the time began to run."""
        self._looks = 0
        """That have found nobody."""
        self._seen = -1
        """Arrivals in the pool at the last look that found nobody who is not served."""

    def next_deadline(self) -> float | None:
        """When somebody will have waited for long enough."""
        return self._due_s

    def stir(self) -> None:
        """A task has ended here: its call may have no core any more."""
        self._seen = -1

    def settle(self, now: float, *, leaving: bool) -> list[Effect]:
        """After each event: if nothing has been handed out for `fair_s`, a task of a call that has no core here is
        started before what runs."""
        pool, schedulers = self._pool, self._schedulers
        if not self._fair_s or leaving or not len(pool) or schedulers.hungry:
            self._due_s = None
            return []
        started = self._counters["tasks_started"]
        if self._due_s is None or started != self._started:
            is_new = started != self._started or pool.arrivals != self._seen
            self._looks = 0
            self._due_s, self._started = (now + self._fair_s if is_new else None), started
            return []
        if now < self._due_s:
            return []
        self._due_s = None
        patient = self._looks < BUNDLE_LOOKS
        squeezed = schedulers.squeeze(bundles=not patient)
        if squeezed is None:
            if patient:
                self._looks += 1
                self._due_s = now + self._fair_s
            else:
                self._seen = pool.arrivals
            return []
        self._looks = 0
        self._due_s = now + self._fair_s
        origin, spark = squeezed
        self._counters["tasks_started"] += 1
        self._started = started + 1
        effects: list[Effect] = [
            Teach(origin, digest, data) for digest, data in self._code.missing(party(origin), [spark])
        ]
        return [*effects, Start(origin, (spark,), first=True)]
