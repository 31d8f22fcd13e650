"""Stragglers: the last few tasks of many, which keep everybody waiting (`--speculate`, decision 12).

What lives here: noticing them.  A task is one if, while somebody here or elsewhere had nothing to do, it could have
been run twice, to judge by the others of its kind: the same function, spawned by the same scheduler or program at the
same depth.  Then it is started once more, and the first answer wins.  A kind of which few have ended, like the halves
of a divide-and-conquer tree, says nothing about the rest of it, so none of these are run twice.
"""

from __future__ import annotations

from dataclasses import dataclass

from hdphrs.config import CoreConfig
from hdphrs.protocol.supervisor import OnNode, Record, Supervisor
from hdphrs.protocol.tasks import Origin, Outcome, Task, TaskRef, Verdict

Kind = tuple[Origin, bytes, int]


@dataclass(slots=True)
class _Ended:
    count: int = 0
    cost_s: float = 0.0
    """Of all of them."""


class Stragglers:
    """Those among the tasks that one node supervises."""

    def __init__(self, config: CoreConfig, supervisor: Supervisor) -> None:
        self._config = config
        self._supervisor = supervisor
        self._ended: dict[Kind, _Ended] = {}
        self._noticed_s: dict[tuple[TaskRef, int], float] = {}
        """(ref, replica): when somebody had nothing to do, and these were not done."""
        self._doubled: dict[TaskRef, None] = {}
        """Those that have been started once more."""
        self._next_s: float | None = None

    def next_deadline(self) -> float | None:
        """When the next of them may have taken too long."""
        return self._next_s

    def on_end(self, ref: TaskRef, task: Task, outcome: Outcome) -> None:
        """A task has ended."""
        self._doubled.pop(ref, None)
        if self._config.speculate and outcome.verdict is Verdict.VALUE:
            ended = self._ended.setdefault(_kind(ref, task), _Ended())
            ended.count += 1
            ended.cost_s += outcome.cost_s

    def drop(self, ref: TaskRef) -> None:
        """Nobody waits for this one any more."""
        self._doubled.pop(ref, None)

    def forget(self, origin: Origin) -> None:
        """A scheduler is dead, and all that waited there."""
        self._ended = {kind: ended for kind, ended in self._ended.items() if kind[0] != origin}
        self._doubled = {ref: None for ref in self._doubled if ref.origin != origin}

    def look(self, now: float, *, idle: bool) -> list[TaskRef]:
        """Those that are to be started once more.

        Args:
            idle: whether anybody has nothing to do.
        """
        self._next_s = None
        config = self._config
        if not idle or not config.speculate or len(self._supervisor) > config.stragglers_max:
            return []
        few = {ref: record for ref, record in self._supervisor.records() if self._may_be_doubled(ref, record)}
        waiting: dict[Kind, int] = {}
        for ref, record in few.items():
            kind = _kind(ref, record.task)
            waiting[kind] = waiting.get(kind, 0) + 1
        due: list[TaskRef] = []
        noticed_s, self._noticed_s = self._noticed_s, {}
        for ref, record in few.items():
            kind = _kind(ref, record.task)
            ended = self._ended.get(kind)
            if ended is None or ended.count < config.siblings_min * waiting[kind]:
                continue
            patience_s = max(config.straggler_s, config.straggler_ratio * ended.cost_s / ended.count)
            since_s = self._noticed_s[ref, record.replica] = noticed_s.get((ref, record.replica), now)
            late_s = since_s + patience_s
            if late_s <= now:
                self._doubled[ref] = None
                due.append(ref)
            elif self._next_s is None or late_s < self._next_s:
                self._next_s = late_s
        return due

    def _may_be_doubled(self, ref: TaskRef, record: Record) -> bool:
        free = record.task.supervised and not record.placed
        return free and isinstance(record.location, OnNode) and ref not in self._doubled


def _kind(ref: TaskRef, task: Task) -> Kind:
    return ref.origin, task.code, len(task.path)
