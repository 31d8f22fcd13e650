"""What a scheduler expects of the tasks that it has got, by the last one of each kind.

What lives here: `Habits`, for two questions: how long the next task will take, and whether the scheduler will soon have
nothing to do.  If it says that it is hungry a little before it is, the next tasks are here when the last one ends
(decision 29).
"""

from __future__ import annotations

from hdphrs.protocol.tasks import Task
from hdphrs.wire.bundle import is_bundle

SOON_S = 12e-3
"""What is expected to be over within this time is soon over: as long as it may take until a scheduler that is deep in a
task has exported some of its sparks, and somebody else has got them."""

FEW = 1
"""Tasks that wait at most."""


_Kind = tuple[bytes, str, bool]
"""Code, name, and whether it is a bundle."""


class Habits:
    """Of one scheduler's tasks."""

    def __init__(self) -> None:
        self._took_s: dict[_Kind, float] = {}
        """How long the last one has taken."""
        self._fruitful: set[_Kind] = set()
        """Those of which the last one has spawned."""

    def learn(self, task: Task, for_s: float, spawned: int) -> None:
        """This task has ended, and has spawned so many."""
        kind = _kind(task)
        self._took_s[kind] = for_s
        if spawned:
            self._fruitful.add(kind)
        else:
            self._fruitful.discard(kind)

    def took_s(self, task: Task) -> float | None:
        """How long the last of its kind has taken; None if there was none."""
        return self._took_s.get(_kind(task))

    def is_soon_over(self, task: Task, others: int) -> bool:
        """Whether this one, and so many others if they are like it, will soon have ended and left nothing to do."""
        kind = _kind(task)
        took_s = self._took_s.get(kind)
        return took_s is not None and kind not in self._fruitful and others <= FEW and took_s * (1 + others) < SOON_S


def _kind(task: Task) -> _Kind:
    return task.code, task.name, is_bundle(task.path)
