"""Bundles: calls of one kind that travel from the program, or a task, to a scheduler, and back, as one task.

What lives here: what the payload of such a task holds, the data of its outcome, and how many calls make one (decisions
16 and 30).  Which calls go together is for `hdphrs/program/calls.py` and `hdphrs/scheduler/away.py` to say, and how
they are run for `hdphrs/scheduler/bundles.py`.  Nobody between knows that a task is a bundle, but for its path, by
which it can be told.

A bundle has a path that no task has; its calls keep their own.  They are all of one function, whose digest, name and
supervision are those of the task.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import NoneType
from typing import Any, Final, NamedTuple, TypeAlias

from hdphrs.protocol.paths import BUNDLE, child_path
from hdphrs.protocol.tasks import Outcome, Payload, Verdict
from hdphrs.wire.bulk import bulk_of
from hdphrs.wire.pickling import dump_plain, load_plain
from hdphrs.wire.values import with_function

SMALL = frozenset({int, float, bool, NoneType, range})
"""Types of values that are pickled many at a time: none of them runs code of the user's, or changes, or is large."""

Arguments: TypeAlias = "tuple[Any, ...] | bytes"
"""Of one call: as they are, if all are `SMALL`, else pickled, as in the payload of a task."""

Packed: TypeAlias = "list[object]"
"""An outcome, as links carry it."""

RETURNED = Outcome(Verdict.LOST, b"")
"""Stands for the outcome of a call that has not been made, and is given back to whoever has made the bundle."""

WHOLE_BYTES_MIN: Final = 1 << 14
"""A call of this size goes alone."""

BUNDLE_S: Final = 20e-3
"""How long a bundle is to take; what surrounds it takes some 0.5 ms of processor time in three processes."""

CALLS_MAX: Final = 512
"""Calls of one bundle."""

BUNDLE_BYTES_MAX: Final = 32 << 10
"""Arguments of one bundle that are pickled already; and values that are expected from it."""

SHARES_PER_CORE: Final = 8
"""A bundle has no more of the calls that wait than one of so many equal parts: towards the end they become smaller."""

LAST: Final = 0.25
"""Weight of the last outcome in what is expected of the next."""

COLD: Final = 4
"""Of the first so many calls the quickest counts: the others may have been the first to run there."""

JUMP_MAX: Final = 4.0
"""So many times what was expected is the most that the last outcome counts for: the processor may have been taken away
from it."""

JUMP_S: Final = 20e-6
"""Less than this is no jump."""

GROWTH: Final = 2
"""A bundle has no more than so many times the calls that have come back: the first may tell little of the others."""


class Expectation:
    """What calls of one function will take, by those that have come back."""

    __slots__ = ("_like", "bytes", "calls", "cost_s")

    def __init__(self, like: Expectation | None = None) -> None:
        """Of calls that take what those of `like` do, as far as anybody knows: it learns what these do."""
        self.cost_s: float = -1.0
        """What a call takes; negative if nobody knows."""
        self.bytes: int = 0
        """How large a value is, pickled."""
        self.calls: int = 0
        """Those that have come back."""
        self._like = like
        if like is not None:
            self.cost_s, self.bytes, self.calls = like.cost_s, like.bytes, like.calls

    def learn(self, cost_s: float, size: int, calls: int = 1) -> None:
        """So it has been with so many together."""
        if self._like is not None:
            self._like.learn(cost_s, size, calls)
        cold = self.calls < COLD
        self.calls += calls
        cost_s /= calls
        size //= calls
        if self.cost_s < 0:
            self.cost_s = cost_s
        elif cold:
            self.cost_s = min(self.cost_s, cost_s)
        else:
            self.cost_s += LAST * (min(cost_s, JUMP_MAX * max(self.cost_s, JUMP_S)) - self.cost_s)
        self.bytes = max(size, self.bytes - self.bytes // 4)

    def jump(self) -> None:
        """A bundle takes longer than was expected."""
        self.cost_s = JUMP_MAX * max(self.cost_s, JUMP_S)

    def fit(self, share: int) -> int:
        """How many calls make a bundle; at most a share of what waits."""
        if self.cost_s < 0:
            return 1
        by_time, by_size = int(BUNDLE_S / max(self.cost_s, 1e-9)), BUNDLE_BYTES_MAX // max(self.bytes, 1)
        return max(1, min(share, GROWTH * self.calls, CALLS_MAX, by_time, by_size))


class Calls(NamedTuple):
    """What the payload of a bundle holds."""

    parent: bytes
    """The path of the task that has spawned them, or of the program."""
    indices: Sequence[int]
    """Under which numbers it has."""
    function: bytes
    """Pickled, if it travels inline."""
    chance: bytes
    """See `hdphrs.wire.code.CodeBook`, and the context that they all have (`code.with_context`); arguments that are
    pickled already hold both too."""
    arguments: Sequence[Arguments]

    def path(self, place: int) -> bytes:
        """That of one call."""
        return child_path(self.parent, self.indices[place])

    def payload(self, place: int) -> bytes:
        """Of the task that this call would be alone."""
        return payload_of(self.function, self.arguments[place], self.chance)


class Answer(NamedTuple):
    """What the outcome of a bundle holds."""

    values: list[Any]
    """By place; None also for those that are not here."""
    others: Mapping[int, Packed | None]
    """Outcomes by place, of calls that have no `SMALL` value; None for those that were given back."""


def bundle_path(parent: bytes, number: int) -> bytes:
    """The path of the program's so-many-th bundle, or of the one that begins with a task's so-many-th child."""
    return BUNDLE + child_path(parent, number)


def is_bundle(path: bytes) -> bool:
    """Whether a task with this path is one."""
    return path.startswith(BUNDLE)


def share_of(waiting: int, cores: int) -> int:
    """Of so many calls that wait for so many cores, those that a bundle may have at most."""
    return max(1, waiting // (SHARES_PER_CORE * max(cores, 1)))


def payload_of(function: bytes, arguments: Arguments, chance: bytes) -> Payload:
    """The payload of a task of one call."""
    data = dump_plain((*arguments, chance)) if isinstance(arguments, tuple) else arguments
    return with_function(function, data) if function else data


def pack_calls(calls: Calls) -> Payload:
    """As a payload."""
    parent, indices, *rest = calls
    if indices[-1] - indices[0] == len(indices) - 1 and all(map(int.__eq__, indices, range(indices[0], indices[-1]))):
        indices = range(indices[0], indices[-1] + 1)
    return bulk_of(dump_plain((parent, indices, *rest)))


def unpack_calls(payload: Payload) -> Calls:
    """The inverse."""
    return Calls(*load_plain(bytes(payload)))


def pack_answer(answer: Answer | None) -> Payload:
    """As the data of an outcome; None if no call has been made, since the bundle is run again."""
    return bulk_of(dump_plain(None if answer is None else tuple(answer)))


def unpack_answer(data: Payload) -> Answer | None:
    """The inverse."""
    answer = load_plain(bytes(data))
    return None if answer is None else Answer(*answer)
