"""Bundles: calls of one kind that travel from the program to a scheduler, and back, as one task (decision 16).

What lives here: what the payload of such a task holds, and the data of its outcome.  Which calls go together is for
`hdphrs/program/calls.py` to say, and how they are run for `hdphrs/scheduler/bundles.py`.  Nobody between the two knows
that a task is a bundle, but for its path, by which it can be told.

A bundle has a path that no task has; its calls keep their own.  They are all of one function, whose digest, name and
supervision are those of the task.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import NoneType
from typing import Any, NamedTuple, TypeAlias

from hdphrs.protocol.paths import PROGRAM_PATH, child_path
from hdphrs.protocol.tasks import Outcome, Verdict
from hdphrs.wire.bulk import bulk_of
from hdphrs.wire.pickling import dump_plain, load_plain
from hdphrs.wire.values import with_function

MARK = b"\x81\x00"
"""How the path of a bundle begins; no index does, it would be 1 with a byte too many."""

SMALL = frozenset({int, float, bool, NoneType})
"""Types of values that are pickled many at a time: none of them runs code of the user's, or changes, or is large."""

Arguments: TypeAlias = "tuple[Any, ...] | bytes"
"""Of one call: as they are, if all are `SMALL`, else pickled, as in the payload of a task."""

Packed: TypeAlias = "list[object]"
"""An outcome, as links carry it."""

RETURNED = Outcome(Verdict.LOST, b"")
"""Stands for the outcome of a call that has not been made, and is given back to the program."""


class Calls(NamedTuple):
    """What the payload of a bundle holds."""

    indices: Sequence[int]
    """Under which numbers the program has spawned them."""
    function: bytes
    """Pickled, if it travels inline."""
    chance: bytes
    """See `hdphrs.wire.code.CodeBook`; arguments that are pickled already hold it too."""
    arguments: Sequence[Arguments]

    def path(self, place: int) -> bytes:
        """That of one call."""
        return child_path(PROGRAM_PATH, self.indices[place])

    def payload(self, place: int) -> bytes:
        """Of the task that this call would be alone."""
        return payload_of(self.function, self.arguments[place], self.chance)


class Answer(NamedTuple):
    """What the outcome of a bundle holds."""

    values: list[Any]
    """By place; None also for those that are not here."""
    others: Mapping[int, Packed | None]
    """Outcomes by place, of calls that have no `SMALL` value; None for those that were given back."""


def bundle_path(number: int) -> bytes:
    """The path of the program's so-many-th bundle."""
    return MARK + child_path(PROGRAM_PATH, number)


def is_bundle(path: bytes) -> bool:
    """Whether a task with this path is one."""
    return path.startswith(MARK)


def payload_of(function: bytes, arguments: Arguments, chance: bytes) -> bytes:
    """The payload of a task of one call."""
    data = dump_plain((*arguments, chance)) if isinstance(arguments, tuple) else arguments
    return with_function(function, data) if function else data


def pack_calls(calls: Calls) -> bytes:
    """As a payload."""
    indices = calls.indices
    if indices[-1] - indices[0] == len(indices) - 1 and all(map(int.__eq__, indices, range(indices[0], indices[-1]))):
        indices = range(indices[0], indices[-1] + 1)
    return bulk_of(dump_plain((indices, *calls[1:])))


def unpack_calls(payload: bytes) -> Calls:
    """The inverse."""
    return Calls(*load_plain(bytes(payload)))


def pack_answer(answer: Answer | None) -> bytes:
    """As the data of an outcome; None if no call has been made, since the bundle is run again."""
    return bulk_of(dump_plain(None if answer is None else tuple(answer)))


def unpack_answer(data: bytes) -> Answer | None:
    """The inverse."""
    answer = load_plain(bytes(data))
    return None if answer is None else Answer(*answer)
