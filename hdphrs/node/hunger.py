"""Hunger on one node: which schedulers wait for tasks, and which are asked for some.

What lives here: `Hunger`, which sets the demand bytes and knows who has answered them.  What does not: who gets what
(`hdphrs.protocol.schedulers`), and when a scheduler says that it is hungry (`hdphrs.scheduler.habits`, decision 29).
"""

from __future__ import annotations

from collections.abc import Collection
from math import inf
from time import perf_counter

from hdphrs.node.nudges import Nudges
from hdphrs.node.scheduler import Scheduler
from hdphrs.wire import local


class Hunger:
    """That of the schedulers of one node."""

    def __init__(self, schedulers: Collection[Scheduler]) -> None:
        """`schedulers` are those that there are, at each time."""
        self._schedulers = schedulers
        self.nudges: Nudges = Nudges(schedulers)
        """Asks helper threads; somebody has to run it."""
        self._wanted = False
        """Whether somebody is hungry whom the pool cannot feed."""
        self._has_asked_ahead = False
        """Whether somebody was hungry ahead since all have been asked."""
        self._has_fed = False
        """Whether somebody has got tasks since they were last sent."""

    def demand(self, wanted: bool) -> None:
        """Set the bytes; helper threads of those that have something are asked after `NUDGE_S`."""
        self._wanted = wanted
        now_s = perf_counter()
        holds = False
        for scheduler in self._schedulers:
            scheduler.process.line.want(wanted)
            if scheduler.handed:
                holds = True
                scheduler.asked_s = min(scheduler.asked_s, now_s)
        if wanted and holds:
            self.nudges.want()

    def join(self, scheduler: Scheduler) -> None:
        """It is new, perhaps in the place of a dead one: it is asked for what the others have been."""
        scheduler.process.line.want(self._wanted)

    def feed(self, scheduler: Scheduler) -> None:
        """It gets tasks, which are sent with the rest of the step."""
        scheduler.begin()
        scheduler.fed = True
        self._has_fed = True

    def sent(self) -> None:
        """What somebody gets is on its way: who has got it owes an answer, if others are still hungry."""
        if self._has_fed:
            self._has_fed = False
            if self._wanted:  # still, for it may have been the last hungry one
                self.nudges.want()

    def starves(self, scheduler: Scheduler, how: int) -> bool:
        """It says that it is hungry; whether it still is."""
        if how == local.AGAIN and not scheduler.hungry:
            return False  # what it has got meanwhile it has not read
        if how == local.AHEAD:
            self._has_asked_ahead = True
        elif self._wanted and (self._has_asked_ahead or how == local.AGAIN):
            self._has_asked_ahead = False
            self.demand(True)  # who gave nothing back, for nobody had nothing to do, may do so now
        scheduler.fed, scheduler.hungry, scheduler.asked_s = False, True, inf
        return True
