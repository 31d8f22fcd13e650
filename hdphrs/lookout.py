"""Waiting for an answer that may come at once (decision 34).

What lives here: looking out for it before one sleeps.  Who sleeps is woken by the system, on a core that may sleep too:
four times in a round trip, which takes longer than all that is done in it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from time import perf_counter
from typing import Any

LOOK_OUT_S = 300e-6
"""How long one looks out; and not at all after a wait that took longer, for then nobody talks."""


def _stay() -> None:
    """Where one cannot let others have the core."""


def leaves_room(nodes: Sequence[Sequence[Any]], cores: int) -> bool:
    """Whether who looks out on this host takes the core from nobody who has something to say: there is one node, or a
    core for each node and scheduler.

    Args:
        nodes: id, host and schedulers of each live node, that of this host first; without a host, if that is not known
            yet, for then it may be here.
        cores: of this host.
    """
    here = [slots for _, host, slots in nodes if host in ("", nodes[0][1])]
    return len(here) == 1 or len(here) + sum(here) <= cores


_give_way: Callable[[], None] = getattr(os, "sched_yield", _stay)


class Lookout:
    """That of one who waits for the same things, again and again."""

    def __init__(
        self, poll: Callable[[float | None], Sequence[Any]], clock: Callable[[], float] = perf_counter
    ) -> None:
        """`poll` waits for so many seconds at most, or for as long as it takes, and returns what has come."""
        self._poll = poll
        self._clock = clock
        self.is_worth_it: bool = True
        """Whether to look out at all."""
        self._talks = False
        """The last wait was short."""

    def wait(self, for_s: float | None = None) -> Sequence[Any]:
        """What comes, within this time if there is one; looks out for it first, if that may help, and lets whoever
        wants the core have it."""
        began_s = now_s = self._clock()
        found: Sequence[Any] = ()
        if self._talks and self.is_worth_it:
            while not (found := self._poll(0.0)) and now_s - began_s < LOOK_OUT_S:
                _give_way()
                now_s = self._clock()
        if not found:
            found = self._poll(for_s)
        self._talks = self._clock() - began_s < LOOK_OUT_S
        return found
