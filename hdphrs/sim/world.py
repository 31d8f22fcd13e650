"""Virtual time, and the record of what has happened in it.

What lives here: `World`, the queue of what is due, in the order of time and then of posting; the trace, a number into
which every event is folded; the last events in full, for the report of a failure; and the tallies.  What does not: any
knowledge of nodes, messages or faults.

An event is one call of `Node.handle`, or one step of the simulation that makes none.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable
from typing import Any

from hdphrs.sim.errors import Stuck

TAIL = 20
"""Events that are remembered."""

FOLD = 6364136223846793005
MASK = (1 << 64) - 1

Action = Callable[[Any], None]
Happening = tuple[int, int, Any, Any]
"""When, to whom, and two things that tell what."""


class World:
    """The time of one run, in nanoseconds."""

    def __init__(self) -> None:
        self.now_ns: int = 0
        self.events: int = 0
        self.fold: int = 0
        """What the trace has come to."""
        self.tail: deque[Happening] = deque(maxlen=TAIL)
        self.tallies: dict[str, int] = {}
        self.over = False
        """Set by who decides that the run has ended."""
        self.narrate: Callable[[Happening], None] | None = None
        """Told of everything, if somebody wants to know."""
        self._due: list[tuple[int, int, Action, Any]] = []
        self._posted = 0

    def post(self, delay_ns: int, action: Action, argument: Any = None) -> None:
        """Call `action(argument)` when so much time has passed."""
        self._posted += 1
        heapq.heappush(self._due, (self.now_ns + delay_ns, self._posted, action, argument))

    def tally(self, what: str, amount: int = 1) -> None:
        """Count something that has happened."""
        self.tallies[what] = self.tallies.get(what, 0) + amount

    def note(self, node: int, what: Any, more: Any = ()) -> None:
        """Remember an event, for the report of a failure."""
        happening = (self.now_ns, node, what, more)
        self.tail.append(happening)
        if self.narrate is not None:
            self.narrate(happening)

    def run(self, events_max: int, until_event: int | None = None) -> None:
        """Let time pass until the run is over.

        Args:
            until_event: stop when there have been so many events.

        Raises:
            Stuck: nothing is due any more, or there are more events than any right run has.
        """
        due, pop = self._due, heapq.heappop
        last = events_max if until_event is None else min(events_max, until_event)
        while not self.over:
            if not due:
                raise Stuck("nothing is due any more, and the run has not ended")
            self.now_ns, _, action, argument = pop(due)
            before = self.events
            try:
                action(argument)
            finally:  # what fails is an event too
                if self.events == before:
                    self.events = before + 1
                    self.fold = (self.fold * FOLD + self.now_ns) & MASK
            if self.events >= last:
                if self.events < events_max:
                    return
                raise Stuck(f"more than {events_max} events, and no end")
