"""Sparks, outcomes and whatever else is in a message, to and from plain lists that a frame can hold.

What lives here: packers for what messages between nodes hold, and those between the processes of one host.  What does
not: the messages, whose types take a tenth of a scheduler's start to make (`codec.py`).

Unpacking believes nothing: a wrong number of fields or a wrong type is a `ProtocolError`.  Payloads stay bytes; nothing
is unpickled.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final, TypeVar

from hdphrs.config import PRIORITY_MAX
from hdphrs.protocol.tasks import (
    Blame,
    Cause,
    Crash,
    Member,
    NodeId,
    Origin,
    Orphan,
    Outcome,
    Parting,
    Payload,
    Piece,
    Spark,
    Task,
    TaskRef,
    Verdict,
)
from hdphrs.wire.bulk import Bulk
from hdphrs.wire.rows import wrong

T = TypeVar("T")

PORT_MAX: Final = 65535

_VERDICTS: Final = {int(verdict): verdict for verdict in Verdict}
_PLAIN_TASK: Final = (str, bytes, bytes, bytes, bool, bytes, int, float, list, int)
"""The types of the fields of nearly all tasks, which are looked at in one step."""
_PARTINGS: Final = {int(parting): parting for parting in Parting}
_CAUSES: Final = {int(cause): cause for cause in Cause}


# Plain values.


def unpack_natural(value: object) -> int:
    """An int that is not negative."""
    if type(value) is not int or value < 0:
        raise wrong("number", value)
    return value


def unpack_bytes(value: object) -> bytes:
    if not isinstance(value, bytes):  # a digest of code may be of a class of its own until it has left its process
        raise wrong("bytes", value)
    return value


def unpack_payload(value: object) -> Payload:
    """Bytes, or what stands for many of them."""
    if type(value) is bytes or isinstance(value, Bulk):
        return value
    raise wrong("payload", value)


def unpack_str(value: object) -> str:
    if type(value) is not str:
        raise wrong("text", value)
    return value


def unpack_priority(value: object) -> int:
    if type(value) is not int or abs(value) > PRIORITY_MAX:
        raise wrong("priority", value)
    return value


def unpack_bool(value: object) -> bool:
    if type(value) is not bool:
        raise wrong("truth value", value)
    return value


def unpack_seconds(value: object) -> float:
    """A duration."""
    if type(value) is not float or not 0.0 <= value < math.inf:
        raise wrong("duration", value)
    return value


def unpack_fields(value: object, count: int, what: str) -> list[Any]:
    """A list of exactly `count` fields of whatever type; `what` is for the error."""
    if type(value) is not list or len(value) != count:
        raise wrong(what, value)
    return value


def unpack_list(value: object, what: str) -> list[Any]:
    """A list of any length, of whatever; `what` is for the error."""
    if type(value) is not list:
        raise wrong(what, value)
    return value


def unpack_many(value: object, unpack: Callable[[object], T], what: str) -> tuple[T, ...]:
    """A list of any length; `what` is for the error."""
    return tuple([unpack(item) for item in unpack_list(value, what)])


# The values inside messages.


def pack_ref(ref: TaskRef) -> list[object]:
    return list(ref)


def unpack_ref(value: object) -> TaskRef:
    if type(value) is not list or len(value) != 3:
        raise wrong("ref", value)
    node, origin, slot = value
    if type(node) is type(origin) is type(slot) is int and node >= 0 and origin >= 0 and slot >= 0:
        return TaskRef(node, origin, slot)  # type: ignore[arg-type]
    return TaskRef(NodeId(unpack_natural(node)), Origin(unpack_natural(origin)), unpack_natural(slot))


def pack_task(task: Task) -> list[object]:
    return [
        task.name,
        task.path,
        task.code,
        task.payload,
        task.supervised,
        task.memo,
        task.attempts,
        task.timeout_s,
        list(task.pin),
        task.priority,
    ]


def unpack_task(value: object) -> Task:
    packed = unpack_fields(value, 10, "task")
    name, path, code, payload, supervised, memo, attempts, timeout_s, pin, priority = packed
    if tuple(map(type, packed)) == _PLAIN_TASK and not pin and attempts == 0 and timeout_s == 0.0 and priority == 0:
        return Task(name, path, code, payload, supervised, memo)
    return Task(
        unpack_str(name),
        unpack_bytes(path),
        unpack_bytes(code),
        unpack_payload(payload),
        unpack_bool(supervised),
        unpack_bytes(memo),
        unpack_natural(attempts),
        unpack_seconds(timeout_s),
        tuple([NodeId(unpack_natural(node)) for node in unpack_list(pin, "list of nodes")]),
        unpack_priority(priority),
    )


def pack_crash(crash: Crash) -> list[object]:
    return [crash.host, crash.pid, crash.how, crash.arguments, crash.words, int(crash.cause)]


def unpack_crash(value: object) -> Crash:
    host, pid, how, arguments, words, cause = unpack_fields(value, 6, "crash")
    known = _CAUSES.get(cause) if type(cause) is int else None
    if known is None:
        raise wrong("cause of a crash", cause)
    told = unpack_str(how), unpack_str(arguments), unpack_str(words)
    return Crash(unpack_str(host), unpack_natural(pid), *told, known)


def pack_blame(blame: Blame) -> list[object]:
    return [blame.path, [pack_crash(crash) for crash in blame.crashes]]


def unpack_blame(value: object) -> Blame:
    path, crashes = unpack_fields(value, 2, "blame")
    return Blame(unpack_bytes(path), unpack_many(crashes, unpack_crash, "crashes"))


def pack_spark(spark: Spark) -> list[object]:
    return [
        list(spark.ref),
        spark.replica,
        pack_task(spark.task),
        [pack_crash(crash) for crash in spark.crashes] if spark.crashes else [],
        spark.placed,
        spark.epoch,
        [pack_part(part) for part in spark.pieces] if spark.pieces else [],
    ]


def unpack_spark(value: object) -> Spark:
    ref, replica, task, crashes, placed, epoch, pieces = unpack_fields(value, 7, "spark")
    if (
        crashes == [] == pieces
        and type(replica) is int is type(epoch)
        and replica >= 0
        and epoch >= 0
        and type(placed) is bool
    ):
        return Spark(unpack_ref(ref), replica, unpack_task(task), (), placed, epoch)
    return Spark(
        unpack_ref(ref),
        unpack_natural(replica),
        unpack_task(task),
        () if crashes == [] else unpack_many(crashes, unpack_crash, "crashes"),
        unpack_bool(placed),
        unpack_natural(epoch),
        () if pieces == [] else unpack_many(pieces, unpack_part, "pieces"),
    )


def pack_piece(piece: Piece) -> list[object]:
    return [piece.path, piece.check, pack_outcome(piece.outcome)]


def unpack_piece(value: object) -> Piece:
    path, check, outcome = unpack_fields(value, 3, "piece")
    return Piece(unpack_bytes(path), unpack_bytes(check), unpack_outcome(outcome))


def pack_orphan(orphan: Orphan) -> list[object]:
    return [orphan.path, orphan.check, orphan.node]


def unpack_orphan(value: object) -> Orphan:
    path, check, node = unpack_fields(value, 3, "orphan")
    return Orphan(unpack_bytes(path), unpack_bytes(check), NodeId(unpack_natural(node)))


def pack_part(part: Piece | Orphan) -> list[object]:
    return pack_piece(part) if isinstance(part, Piece) else pack_orphan(part)


def unpack_part(value: object) -> Piece | Orphan:
    """Where a piece has its outcome, which is a list, an orphan has its node."""
    is_orphan = type(value) is list and len(value) == 3 and type(value[2]) is int
    return unpack_orphan(value) if is_orphan else unpack_piece(value)


def pack_outcome(outcome: Outcome) -> list[object]:
    crashes = [pack_crash(crash) for crash in outcome.crashes] if outcome.crashes else []
    return [int(outcome.verdict), outcome.data, crashes, outcome.cost_s, outcome.span_s]


def unpack_outcome(value: object) -> Outcome:
    verdict, data, crashes, cost_s, span_s = unpack_fields(value, 5, "outcome")
    known = _VERDICTS.get(verdict) if type(verdict) is int else None
    if known is None:
        raise wrong("verdict", verdict)
    plain = crashes == [] and type(data) is bytes and type(cost_s) is float is type(span_s)
    if plain and 0.0 <= cost_s < math.inf and 0.0 <= span_s < math.inf:
        return Outcome(known, data, (), cost_s, span_s)
    times_s = unpack_seconds(cost_s), unpack_seconds(span_s)
    crashed = () if crashes == [] else unpack_many(crashes, unpack_crash, "crashes")
    return Outcome(known, unpack_payload(data), crashed, *times_s)


def pack_address(address: tuple[str, int]) -> list[object]:
    return list(address)


def unpack_address(value: object) -> tuple[str, int]:
    host, port = unpack_fields(value, 2, "address")
    if unpack_natural(port) > PORT_MAX:
        raise wrong("port", port)
    return unpack_str(host), port


def pack_member(member: Member) -> list[object]:
    return [member.node, member.host, member.slots, pack_address(member.address), member.pid]


def unpack_parting(value: object) -> Parting:
    known = _PARTINGS.get(value) if type(value) is int else None
    if known is None:
        raise wrong("parting", value)
    return known


def unpack_member(value: object) -> Member:
    node, host, slots, address, pid = unpack_fields(value, 5, "member")
    return Member(
        NodeId(unpack_natural(node)),
        unpack_str(host),
        unpack_natural(slots),
        unpack_address(address),
        unpack_natural(pid),
    )


def unpack_counter(value: object) -> tuple[str, int]:
    name, count = unpack_fields(value, 2, "counter")
    return unpack_str(name), unpack_natural(count)
