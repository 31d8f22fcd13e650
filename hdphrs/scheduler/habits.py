"""What a scheduler expects of the tasks that it has got, by the last one of each kind.

What lives here: `Habits`, for four questions: how long the next task will take, whether the scheduler will soon have
nothing to do, how long what runs will go on, and how many tasks there is room for.  If it says that it is hungry a
little before it is, the next tasks are here when the last one ends (decision 29).
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from time import perf_counter

from hdphrs.protocol.tasks import Task
from hdphrs.wire.bundle import is_bundle

SOON_S = 12e-3
"""What is expected to be over within this time is soon over: as long as it may take until a scheduler that is deep in a
task has exported some of its sparks, and somebody else has got them."""

AHEAD_S = 30e-3
"""And what is expected to take no longer than this, if it is the last: one may ask for more before it begins."""

WORTH_S = 3e-3
"""And if that takes a message of its own, only if the task takes as long as this: so much is a few times what is lost
while one waits for the node."""

LEFT_S = 3e-3
"""What has come too early goes back to somebody hungry unless that takes about as long as what runs here."""

OVERDUE_S = 0.2
OVERDUE_TIMES = 4
"""What runs is overdue when it has taken this long, and so many times what the last one of its kind took.  What waits
behind it goes back to the node then, which may run it elsewhere, or beside it."""

FEW = 1
"""Tasks that wait at most."""

ROOM_S = 120e-3
"""A hungry scheduler takes as many tasks at a time as take so long, by the last one: what waits behind a long task can
only be had back if that lets go of the interpreter."""

ROOM_MAX = 16
ROOM_MIN = 2
"""But no more, and no fewer: one that runs, and one that waits."""

ROOM_FIRST = 4
"""Before it has run one."""


_Kind = tuple[bytes, str, bool]
"""Code, name, and whether it is a bundle."""


class Habits:
    """Of one scheduler's tasks."""

    def __init__(self, clock: Callable[[], float] = perf_counter) -> None:
        self._clock = clock
        self._until_s = 0.0
        """When what runs is expected to end."""
        self._overdue_s = inf
        """When it is overdue."""
        self.room: int = ROOM_FIRST
        """How many tasks are wanted at a time."""
        self._took_s: dict[_Kind, float] = {}
        """How long the last one has taken."""
        self._fruitful: set[_Kind] = set()
        """Those of which the last one has spawned."""

    def begin(self, task: Task, now_s: float) -> float:
        """This task begins; how long the last of its kind has taken, 0 if nobody knows."""
        took_s = self._took_s.get(_kind(task), 0.0)
        self._until_s = now_s + took_s
        self._overdue_s = now_s + max(OVERDUE_S, OVERDUE_TIMES * took_s)
        return took_s

    def goes_on(self) -> bool:
        """In the helper thread: whether what runs is expected to take some time yet."""
        return self._until_s - self._clock() > LEFT_S

    def is_overdue(self) -> bool:
        """In the helper thread: whether no task has begun for much longer than the last one was expected to take."""
        return self._clock() > self._overdue_s

    def make_room(self, for_s: float) -> None:
        """A task has taken so long."""
        self.room = max(ROOM_MIN, min(int(ROOM_S / max(for_s, 1e-9)), ROOM_MAX))

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
        if took_s is None or kind in self._fruitful or others > FEW:
            return False
        return took_s < AHEAD_S if others == 0 else took_s * (1 + others) < SOON_S


def _kind(task: Task) -> _Kind:
    return task.code, task.name, is_bundle(task.path)
