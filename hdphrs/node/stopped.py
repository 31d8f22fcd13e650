"""Schedulers that do not go on: their process is stopped, or what they send has no end (decision 44).

What lives here: the rule by which that is told, in virtual time, and the watch that asks the kernel.  It asks only of
schedulers that have something to do, and whose line of the page has not changed since the last look; while no scheduler
has anything to do it sleeps.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from enum import Enum
from math import inf
from typing import Final

import trio

from hdphrs.node.kernel import STOPPED, TRACED, Stat, stat_of
from hdphrs.node.links import SPOILT
from hdphrs.node.scheduler import Fault, Scheduler

LOOK_S: Final = 2.0
"""How often schedulers are looked at, at most."""

SAY_S: Final = 10.0
"""For so long a process is stopped before a line says so."""

UNFINISHED_S: Final = 10.0
"""For so long a message may be sent, without a byte of it: its sender does nothing else until it is sent."""

LATE_S: Final = 1.0
"""A look that is later than this does not count: this node may have been stopped itself."""


class Verdict(Enum):
    """On one scheduler, at one look."""

    GOES_ON = "goes on"
    SAY = "is stopped, and a person is to know"
    REPLACE = "is stopped, and is to be replaced"
    SPOILT = "sends something that has no end"


class Steady:
    """For how long something has been the same, as far as looks that came in time can tell."""

    def __init__(self, look_s: float) -> None:
        """`look_s` is how often it is looked at, in seconds."""
        self._late_s = look_s + LATE_S
        self._looked_s = -inf
        self._since_s = 0.0
        self._what: object = None

    def look(self, now_s: float, what: object) -> float:
        """It is this now, or nothing of interest, which is None; for how long it has been, in seconds."""
        if what is None or what != self._what or now_s - self._looked_s > self._late_s:
            self._since_s = now_s
        self._looked_s, self._what = now_s, what
        return now_s - self._since_s


class Suspect:
    """One scheduler that has something to do."""

    def __init__(self, look_s: float, replace_after_s: float | None) -> None:
        """
        Args:
            look_s: how often it is looked at, in seconds.
            replace_after_s: for how long its process may be stopped before it is replaced; None: for ever.
        """
        self.stopped_s: float = 0.0
        """For how long it has been stopped."""
        self._replace_after_s = inf if replace_after_s is None else replace_after_s
        self._stopped = Steady(look_s)
        self._unfinished = Steady(look_s)
        self._is_said = False

    def judge(self, now_s: float, stat: Stat | None, unfinished_bytes: int) -> Verdict:
        """
        Args:
            now_s: the time.
            stat: of its process; None if that need not be asked for, or nothing is known.
            unfinished_bytes: what has come of a message whose rest has not.
        """
        is_stopped = stat is not None and stat.state in (STOPPED, TRACED)
        self.stopped_s = self._stopped.look(now_s, stat if is_stopped else None)
        unfinished_s = self._unfinished.look(now_s, None if is_stopped else unfinished_bytes or None)
        if not is_stopped:
            self._is_said = False
        if stat is not None and stat.state == STOPPED and self.stopped_s >= self._replace_after_s:
            return Verdict.REPLACE
        if unfinished_s >= UNFINISHED_S:
            return Verdict.SPOILT
        if self.stopped_s >= SAY_S and not self._is_said:
            self._is_said = True
            return Verdict.SAY
        return Verdict.GOES_ON


class Watch:
    """That of one node."""

    def __init__(
        self,
        schedulers: Collection[Scheduler],
        *,
        host: str,
        replace_after_s: float | None,
        say: Callable[[str], None],
        stat_of: Callable[[int], Stat | None] = stat_of,
    ) -> None:
        """
        Args:
            schedulers: those that there are, at each time.
            host: where this is, for people.
            replace_after_s: as for `Suspect`.
            say: prints a line for the user.
            stat_of: asks the kernel of a process.
        """
        self._schedulers = schedulers
        self._host = host
        self._replace_after_s = replace_after_s
        self._say = say
        self._stat_of = stat_of
        self._look_s = LOOK_S if replace_after_s is None else min(LOOK_S, replace_after_s / 2)
        self._suspects: dict[Scheduler, tuple[Suspect, object]] = {}
        """And what their line of the page said at the last look."""
        self._wanted = trio.Event()
        self.sleeps: bool = True
        """Whether it waits for somebody to have something to do."""

    def wake(self) -> None:
        """A scheduler has something to do."""
        self.sleeps = False
        self._wanted.set()

    async def run(self) -> None:
        """Look at them, until cancelled."""
        while True:
            await self._wanted.wait()
            await trio.sleep(self._look_s)
            self.look(trio.current_time())
            if not self._suspects:
                self.sleeps, self._wanted = True, trio.Event()

    def look(self, now_s: float) -> None:
        """Look at all that have something to do."""
        before, self._suspects = self._suspects, {}
        for one in [one for one in self._schedulers if one.handed or not one.ready]:
            line = one.process.line
            shown = line.running, line.busy_s, line.since_s, line.laid
            suspect, last = before.get(one) or (Suspect(self._look_s, self._replace_after_s), None)
            self._suspects[one] = suspect, shown
            stat = self._stat_of(one.process.pid) if last in (None, shown) else None
            self._act(one, suspect, suspect.judge(now_s, stat, one.link.unfinished_bytes), stat)

    def _act(self, one: Scheduler, suspect: Suspect, verdict: Verdict, stat: Stat | None) -> None:
        running = one.process.line.running
        if verdict is Verdict.SPOILT:
            one.spoil(SPOILT)
        elif verdict is Verdict.REPLACE:
            one.condemn(Fault(f"was stopped for {suspect.stopped_s:.0f} s and then killed", running, forgiven=True))
        elif verdict is Verdict.SAY:
            pid, spark = one.process.pid, one.handed.get(running)
            doing = "and has begun no task" if spark is None else f"in task {spark.task.name}"
            if stat is not None and stat.state == TRACED:
                self._say(
                    f"scheduler process {pid} on {self._host} has been held by a debugger for {SAY_S:g} s, {doing}"
                )
                return
            self._say(
                f"scheduler process {pid} on {self._host} has been stopped (SIGSTOP) for {SAY_S:g} s, {doing}; there, "
                f"kill -CONT {pid} lets it go on, and kill -KILL {pid} has it replaced, as --detect-stopped S does"
            )
