"""Results of assigned tasks, on their way to the node.

What lives here: they gather while tasks are quick, and leave in one frame when the next task may take long, or there is
none.
"""

from __future__ import annotations

from collections import deque
from dataclasses import fields
from typing import Any

from hdphrs.protocol.tasks import Outcome, Task
from hdphrs.wire import local

GATHERED_MAX = 16
"""Results that wait for each other."""

QUICK_S = 100e-6
"""A task that is expected to take less may run before the results of the last ones leave."""

_FIELDS = [field.name for field in fields(Outcome)]
DATA, COST = _FIELDS.index("data"), _FIELDS.index("cost_s")
"""Where a packed outcome has its bytes, and the work behind it."""


class Answers:
    """Those of one scheduler."""

    def __init__(self) -> None:
        self.gathered: deque[list[Any]] = deque()
        """Items of RESULTS."""
        self._took_s: dict[tuple[bytes, str], float] = {}
        """How long the last task of each kind has taken, by code and name."""

    def __len__(self) -> int:
        return len(self.gathered)

    def add(self, answer: list[Any]) -> None:
        """An item of RESULTS."""
        self.gathered.append(answer)

    def are_due(self, task: Task) -> bool:
        """Whether those that have gathered are to leave before this task runs."""
        gathered = len(self.gathered)
        took_s = self._took_s.get((task.code, task.name), QUICK_S)
        return gathered > 0 and (gathered >= GATHERED_MAX or took_s >= QUICK_S)

    def took(self, task: Task, for_s: float) -> None:
        """This task has ended."""
        self._took_s[task.code, task.name] = for_s

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
