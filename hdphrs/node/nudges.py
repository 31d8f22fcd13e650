"""Nudges: a scheduler that is deep in a long task is asked for sparks by its helper thread.

What lives here: when.  A scheduler answers the demand byte itself at its next spawn or get; only one that has not done
so for a moment is nudged, since that wakes a thread, and takes the interpreter from the task.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import inf
from time import perf_counter

import trio

from hdphrs.node.scheduler import Scheduler
from hdphrs.wire.page import SPEAK

NUDGE_S = 1e-3
"""How long a scheduler may leave the demand byte unanswered before its helper thread is asked."""


class Nudges:
    """Those of one node."""

    def __init__(self, schedulers: Iterable[Scheduler]) -> None:
        """`schedulers` are those that there are, at each time."""
        self._schedulers = schedulers
        self._wanted = trio.Event()
        self._at_s = inf
        """When to look next, by the clock of trio."""

    def want(self, after_s: float = NUDGE_S) -> None:
        """Somebody has got tasks, or is asked for sparks: look after a moment, unless that is to be done anyway."""
        if self._at_s == inf:
            self._at_s = trio.current_time() + after_s
            self._wanted.set()

    @property
    def are_due(self) -> bool:
        """Whether somebody is to be nudged now."""
        if self._at_s == inf or trio.current_time() < self._at_s:
            return False
        return min([self._due_s(one) for one in self._schedulers], default=inf) <= perf_counter()

    async def run(self) -> None:
        """Have helper threads answer the demand byte for schedulers that are deep in one task; once, for what is
        spawned after that finds the byte set.  Until cancelled.
        """
        while True:
            await self._wanted.wait()
            if any(one.handed or one.process.line.running for one in self._schedulers):
                await trio.sleep_until(self._at_s)
            self._wanted, self._at_s = trio.Event(), inf
            now_s, next_s = perf_counter(), inf
            for one in self._schedulers:
                due_s = self._due_s(one)
                if due_s > now_s:
                    next_s = min(next_s, due_s)
                elif one.process.line.running and not one.hungry:
                    one.asked_s = inf
                    one.ask(SPEAK)
                else:
                    next_s = now_s + NUDGE_S  # it is about to begin
            if next_s < inf:
                self.want(next_s - now_s)

    def _due_s(self, one: Scheduler) -> float:
        """When to nudge it, if it owes an answer."""
        return one.asked_s + NUDGE_S if one.owes_an_answer else inf
