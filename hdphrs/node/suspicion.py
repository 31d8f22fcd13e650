"""Whether a scheduler that was killed was killed by the task that it ran (decision 43).

What lives here: `Suspicion`, which decides it from what else has been killed on the node.  It has no clock.  The kernel
does not say who has sent a SIGKILL: it may have been the task itself, or a person, a supervisor of the host, a program
that tests failures.  Such a kill is charged to the task, unless

- a scheduler that ran no task was killed within `IDLE_S`: no task does that, so something else kills schedulers; or
- a scheduler that ran another task was killed at the same moment, which counts `TOGETHER_MAX` times until the task gets
  on; or
- schedulers that ran other tasks were killed within `WINDOW_S`, and at the rate of those kills chance may well have hit
  this task as often as it was hit, which counts `SPARED_MAX` times until it gets on.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from math import exp
from typing import Final

WINDOW_S: Final = 10.0
"""For how long a kill tells that something else kills schedulers here."""

IDLE_S: Final = 2.0
"""For how long the kill of a scheduler that ran no task tells so for certain."""

TOGETHER_MAX: Final = 16
"""Kills that are not charged to a task, one after the other, because others were killed at the same moment: tasks that
kill their processes may do so at the same moment, too."""

OTHERS_MIN: Final = 2
"""Kills of schedulers that ran something else, in that time, from which on it is believed."""

CHANCE_MIN: Final = 1e-4
"""If it is less likely than this that chance has hit a task so often, it is no chance."""

SPARED_MAX: Final = 32
"""Kills that are not charged to a task, one after the other, while nothing is finished below it."""

KILLS_MAX: Final = 1024
SUSPECTS_MAX: Final = 1024
"""Kills and tasks that are remembered."""


@dataclass(slots=True)
class _Record:
    """Of a task whose scheduler was killed, since it has last got on."""

    kills: int = 0
    lived_s: float = 0.0
    """How long all those processes had been ready."""
    together: int = 0
    """Kills at the same moment as others, which are in neither of these."""


class Suspicion:
    """On one node."""

    def __init__(self, schedulers: int) -> None:
        """
        Args:
            schedulers: how many the node has.
        """
        self._schedulers = schedulers
        self._kills: deque[tuple[float, bytes | None]] = deque(maxlen=KILLS_MAX)
        """When, and the path of the task that ran."""
        self._records: dict[bytes, _Record] = {}

    def __bool__(self) -> bool:
        """Whether there is a task for which it matters that it gets on."""
        return bool(self._records)

    def is_outside(
        self, path: bytes | None, now_s: float, lived_s: float, fellows: Sequence[bytes | None] = ()
    ) -> bool:
        """A scheduler was killed by a signal: whether something else than its task has done it.

        Args:
            path: of the task that it ran, or that had left behind what ran there; None if there was none.
            now_s: when it was killed, by any clock that goes on.
            lived_s: for how long it had been ready.
            fellows: the same path of each scheduler that was killed at the same moment.
        """
        while self._kills and self._kills[0][0] < now_s - WINDOW_S:
            self._kills.popleft()
        others = [at_s for at_s, other in self._kills if _is_other(path, other)]
        is_certain = None in fellows or any(
            other is None and at_s >= now_s - IDLE_S for at_s, other in reversed(self._kills)
        )
        self._kills.append((now_s, path))
        if path is None or is_certain:
            return True
        record = self._records.setdefault(path, _Record())
        if len(self._records) > SUSPECTS_MAX:
            del self._records[next(iter(self._records))]
        if record.together < TOGETHER_MAX and any(_is_other(path, other) for other in fellows):
            record.together += 1
            return True
        record.kills += 1
        record.lived_s += lived_s
        if len(others) < OTHERS_MIN or record.kills > SPARED_MAX:
            return False
        rate = len(others) / (max(1.0, now_s - others[0]) * self._schedulers)
        return chance_of(record.kills, rate * record.lived_s) >= CHANCE_MIN

    def got_on(self, path: bytes) -> None:
        """Something at this path is finished, and kept: the task itself, or a part of it that it need not do again."""
        for suspect in [each for each in self._records if path.startswith(each)]:
            del self._records[suspect]


def chance_of(kills: int, expected: float) -> float:
    """How likely it is that there are so many, or more, where so many are expected (Poisson's distribution)."""
    term = exp(-expected)
    less = 0.0
    for number in range(1, kills + 1):
        less += term
        term *= expected / number
    return max(0.0, 1.0 - less)


def _is_other(path: bytes | None, other: bytes | None) -> bool:
    """Whether the end of a scheduler that ran `other` cannot be the doing of the task at `path`.  It can if that is an
    ancestor: then the task ran in its place."""
    return path is None or other is None or not path.startswith(other)
