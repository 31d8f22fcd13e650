"""Waiting for an answer that may come at once (decision 34).

What lives here: looking out for it before one sleeps.  Who sleeps is woken by the system, on a core that may sleep too:
four times in a round trip, six from node to node, which takes longer than all that is done in it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from time import perf_counter
from typing import Any, TypeAlias

NEAR_S = 300e-6
"""How long a scheduler looks out for what its own node can answer."""

FAR_S = 2e-3
"""The same, if it may come from another node."""

Poll: TypeAlias = Callable[[float | None], Sequence[Any]]
"""Waits for so many seconds at most, or for as long as it takes, and returns what has come."""


def _stay() -> None:
    """Where one cannot let others have the core."""


def leaves_room(nodes: Sequence[Sequence[Any]], cores: int) -> bool:
    """Whether who looks out on this host takes the core from nobody who computes: there is one for each scheduler.

    Args:
        nodes: id, host and schedulers of each live node, that of this host first; without a host, and with no
            schedulers, while nothing is known of it: then it may be here, and has one.
        cores: of this host.
    """
    schedulers: int = sum(max(slots, 1) for _, host, slots in nodes if host in ("", nodes[0][1]))
    return schedulers <= cores


def look_out_s(nodes: Sequence[Sequence[Any]], cores: int) -> float:
    """How long a scheduler looks out; the arguments are those of `leaves_room`."""
    if not leaves_room(nodes, cores):
        return 0.0
    return NEAR_S if len(nodes) == 1 else FAR_S


_give_way: Callable[[], None] = getattr(os, "sched_yield", _stay)


def look_out(poll: Poll, for_s: float, clock: Callable[[], float] = perf_counter) -> Sequence[Any]:
    """What comes within this time, without a sleep; between two looks whoever wants the core has it."""
    end_s = clock() + for_s
    while not (found := poll(0.0)) and clock() < end_s:
        _give_way()
    return found


class Lookout:
    """That of one who waits for the same things, again and again."""

    def __init__(self, poll: Poll, clock: Callable[[], float] = perf_counter) -> None:
        self._poll = poll
        self._clock = clock
        self.for_s: float = NEAR_S
        """How long to look out; and not at all after a wait that took longer, for then nobody talks."""
        self._talks = False
        """Something came in the last wait, and soon."""

    def wait(self, for_s: float | None = None) -> Sequence[Any]:
        """What comes, within this time if there is one; looks out for it first, if that may help."""
        began_s = self._clock()
        found: Sequence[Any] = ()
        if self._talks and self.for_s:
            found = look_out(self._poll, self.for_s if for_s is None else min(self.for_s, for_s), self._clock)
        if not found:
            found = self._poll(None if for_s is None else max(0.0, began_s + for_s - self._clock()))
        self._talks = bool(found) and self._clock() - began_s < self.for_s
        return found
