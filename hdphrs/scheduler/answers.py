"""Results of assigned tasks, on their way to the node.

What lives here: they gather while tasks are quick, and leave in one frame when the next task may take long, or there is
none.
"""

from __future__ import annotations

from collections import deque
from dataclasses import fields
from time import perf_counter
from typing import Any

from hdphrs.protocol.tasks import Outcome
from hdphrs.wire import local

GATHERED_MAX = 16
"""Results that wait for each other."""

LONG_S = 30e-3
"""If the next task takes so long, the helper thread would send results before there is one more: they do not wait."""

WAIT_S = 1e-3
"""How long a result may wait for others to end."""

_FIELDS = [field.name for field in fields(Outcome)]
DATA, COST = _FIELDS.index("data"), _FIELDS.index("cost_s")
"""Where a packed outcome has its bytes, and the work behind it."""


class Answers:
    """Those of one scheduler."""

    def __init__(self) -> None:
        self.gathered: deque[list[Any]] = deque()
        """Items of RESULTS."""
        self._until_s = 0.0
        """The oldest of them waits until then at most, if somebody may wait for it who has nothing else to do."""

    def __len__(self) -> int:
        return len(self.gathered)

    def add(self, answer: list[Any]) -> None:
        """An item of RESULTS."""
        if not self.gathered:
            self._until_s = perf_counter() + WAIT_S
        self.gathered.append(answer)

    def are_due(self, next_s: float | None, *, nobody_waits: bool) -> bool:
        """Whether those that have gathered are to leave before the next task runs, which takes about so long, if
        somebody knows.

        Args:
            nobody_waits: whether all schedulers have something to do; the helper thread sends results then.
        """
        if next_s is None or next_s >= LONG_S or len(self.gathered) >= GATHERED_MAX:
            return True
        return not nobody_waits and perf_counter() + next_s > self._until_s

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
