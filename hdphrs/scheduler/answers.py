"""Results of assigned tasks, on their way to the node.

What lives here: they gather while tasks are quick, and leave in one frame when the next task may take long, or there is
none.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import fields
from time import perf_counter
from typing import Any

from hdphrs.protocol.tasks import Outcome
from hdphrs.wire import local

GATHERED_MAX = 16
"""Results that wait for each other."""

LONG_S = 30e-3
"""Before a task that takes so long none waits."""

LATE_S = 60e-3
LEDGER_LATE_S = 30e-3
"""How long a result waits for others at most while nobody has nothing else to do; and in a run with a ledger, where it
is of use to the next run.  Before a task that would take it beyond that it leaves, and if that was not foreseen, the
helper thread sends it at its next tick."""

WAIT_S = 1e-3
"""And how long if somebody may wait for it."""

_FIELDS = [field.name for field in fields(Outcome)]
DATA, COST = _FIELDS.index("data"), _FIELDS.index("cost_s")
"""Where a packed outcome has its bytes, and the work behind it."""


class Answers:
    """Those of one scheduler."""

    def __init__(self, late_s: float, clock: Callable[[], float] = perf_counter) -> None:
        """`late_s` is how long they wait at most while nobody has nothing else to do."""
        self._late_s = late_s
        self._clock = clock
        self.gathered: deque[list[Any]] = deque()
        """Items of RESULTS."""
        self._since_s = 0.0
        """When the oldest of them came."""

    def __len__(self) -> int:
        return len(self.gathered)

    def add(self, answer: list[Any]) -> None:
        """An item of RESULTS."""
        if not self.gathered:
            self._since_s = self._clock()
        self.gathered.append(answer)

    def are_due(self, next_s: float | None, *, nobody_waits: bool) -> bool:
        """Whether those that have gathered are to leave before the next task runs, which takes about so long, if
        somebody knows.

        Args:
            nobody_waits: whether all schedulers have something to do.
        """
        if next_s is None or next_s >= LONG_S or len(self.gathered) >= GATHERED_MAX:
            return True
        return self._clock() + next_s > self._since_s + (self._late_s if nobody_waits else WAIT_S)

    def are_due_at_a_tick(self, *, nobody_waits: bool) -> bool:
        """In the helper thread: whether it is to send those that have gathered."""
        return bool(self.gathered) and (not nobody_waits or self._clock() > self._since_s + self._late_s)

    def take(self) -> list[list[Any]]:
        """Those that have gathered, as messages; the helper thread may do the same at the same time."""
        gathered = self.gathered
        answers = []
        try:
            while gathered:
                answers.append(gathered.popleft())
        except IndexError:  # it was faster
            pass
        if len(answers) < 2:
            return [[local.RESULTS, answers]] if answers else []
        return [[local.RESULTS, chunk] for chunk in local.chunks(answers, _bytes)]


def _bytes(answer: list[Any]) -> int:
    return len(answer[2][DATA])
