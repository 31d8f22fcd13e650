"""Messages between nodes, to and from plain lists that a frame can hold.

What lives here: one row per type of `hdphrs.protocol.messages.Message`.  What does not: the packers for what is inside
them, which the links between the processes of one host use too (`items.py`).  A packed message is `[kind, field, ...]`
in the order of the type's fields; how a field is packed follows from its annotation, so that a new field cannot be
forgotten here.

Unpacking believes nothing: an unknown kind, a wrong number of fields or a wrong type is a `ProtocolError`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from hdphrs.protocol import messages as m
from hdphrs.protocol.tasks import (
    Blame,
    Crash,
    FishId,
    Member,
    NodeId,
    Orphan,
    Outcome,
    Parting,
    Piece,
    RecallId,
    RequestId,
    Spark,
    TaskRef,
)
from hdphrs.wire.items import (
    pack_blame,
    pack_crash,
    pack_member,
    pack_orphan,
    pack_outcome,
    pack_part,
    pack_piece,
    pack_ref,
    pack_spark,
    unpack_blame,
    unpack_bool,
    unpack_bytes,
    unpack_counter,
    unpack_crash,
    unpack_many,
    unpack_member,
    unpack_natural,
    unpack_orphan,
    unpack_outcome,
    unpack_part,
    unpack_parting,
    unpack_payload,
    unpack_piece,
    unpack_ref,
    unpack_seconds,
    unpack_spark,
)
from hdphrs.wire.rows import Pack, Rows, Unpack, itself

ROWS: Final[dict[int, type[m.Message]]] = {
    1: m.Fish,
    2: m.NoWork,
    3: m.Req,
    4: m.Auth,
    5: m.Denied,
    6: m.Obsolete,
    7: m.Schedule,
    8: m.Ack,
    9: m.Push,
    10: m.Result,
    11: m.Code,
    12: m.Welcome,
    13: m.Joined,
    14: m.Suspect,
    15: m.DeadNode,
    16: m.Term,
    17: m.TermAck,
    18: m.Purge,
    19: m.Keep,
    20: m.Recall,
    21: m.Recalled,
    22: m.Leaving,
    23: m.Noted,
    24: m.Bye,
    25: m.Orphans,
    26: m.Await,
    27: m.Gone,
    28: m.Cancel,
    29: m.Discard,
    30: m.Forget,
}
"""Kind number to type.  Numbers are never used again; a change of meaning raises `WIRE_VERSION`."""


def pack_message(message: m.Message) -> list[object]:
    """`[kind, field, ...]`."""
    return _MESSAGES.pack(message)


def unpack_message(packed: object) -> m.Message:
    """The message of `[kind, field, ...]`.

    Raises:
        ProtocolError: it is none.
    """
    return _MESSAGES.unpack(packed)


def accused(packed: Sequence[object]) -> NodeId | None:
    """The node of which `[kind, field, ...]` says that it is dead, or may be."""
    if len(packed) > 1:
        kind = packed[0]
        if type(kind) is int and kind in _ACCUSATIONS and type(packed[1]) is int:
            return NodeId(packed[1])
    return None


def is_quick(packed: Sequence[object]) -> bool:
    """Whether `[kind, field, ...]` is of a steal."""
    return packed[0] in _QUICK


def brings_tasks(packed: Sequence[object]) -> bool:
    """Whether `[kind, field, ...]` is a SCHEDULE."""
    return packed[0] == _SCHEDULE


def is_code(packed: Sequence[object]) -> bool:
    """Whether `[kind, field, ...]` is a CODE."""
    return packed[0] == _CODE


# How a field is packed, by its annotation.


def many(pack: Pack, unpack: Unpack, what: str) -> tuple[Pack, Unpack]:
    """How a tuple of any length is packed and unpacked."""
    return (lambda items: [pack(item) for item in items]), (lambda value: unpack_many(value, unpack, what))


BY_ANNOTATION: Final[dict[Any, tuple[Pack, Unpack]]] = {
    int: (itself, unpack_natural),
    NodeId: (itself, unpack_natural),
    FishId: (itself, unpack_natural),
    RequestId: (itself, unpack_natural),
    RecallId: (itself, unpack_natural),
    bool: (itself, unpack_bool),
    float: (itself, unpack_seconds),
    bytes: (itself, unpack_payload),  # code may be large
    TaskRef: (pack_ref, unpack_ref),
    Spark: (pack_spark, unpack_spark),
    Outcome: (pack_outcome, unpack_outcome),
    Member: (pack_member, unpack_member),
    Parting: (int, unpack_parting),
    tuple[Spark, ...]: many(pack_spark, unpack_spark, "list of sparks"),
    tuple[bytes, ...]: many(itself, unpack_bytes, "list of bytes"),
    tuple[Piece, ...]: many(pack_piece, unpack_piece, "list of pieces"),
    tuple[Crash, ...]: many(pack_crash, unpack_crash, "crashes"),
    tuple[Blame, ...]: many(pack_blame, unpack_blame, "list of blame"),
    tuple[Orphan, ...]: many(pack_orphan, unpack_orphan, "list of orphans"),
    tuple[Piece | Orphan, ...]: many(pack_part, unpack_part, "list of pieces"),
    tuple[TaskRef, ...]: many(pack_ref, unpack_ref, "list of refs"),
    tuple[Member, ...]: many(pack_member, unpack_member, "list of members"),
    tuple[NodeId, ...]: many(itself, unpack_natural, "list of nodes"),
    tuple[tuple[str, int], ...]: many(list, unpack_counter, "list of counters"),
}


EVIDENT: Final[dict[Unpack, str]] = {
    unpack_natural: "type({v}) is int and {v} >= 0",
    unpack_bool: "type({v}) is bool",
    unpack_payload: "type({v}) is bytes",
}
"""Which values are looked at without a call; see `Rows`."""


_MESSAGES: Final = Rows[m.Message]("message", ROWS, BY_ANNOTATION, EVIDENT)

_ACCUSATIONS: Final = frozenset(kind for kind, message in ROWS.items() if message in (m.Suspect, m.DeadNode))

_QUICK: Final = frozenset(kind for kind, message in ROWS.items() if message in m.QUICK)

_SCHEDULE, _CODE = (next(kind for kind, row in ROWS.items() if row is message) for message in (m.Schedule, m.Code))
