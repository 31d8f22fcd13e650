"""The first frames after the handshake: who dials, why, and the answer.

What lives here: the greetings as types, to and from plain lists.

    dialer                              listener
    Join(host, slots, pid, port)   ───▶            a newcomer that has no id yet
                                   ◀─── Admitted(node)
    Resume(node, to, attempt, progress) ─▶         a member
                                   ◀─── Wait       I do not know you yet; said again and again
                                   ◀─── Resumed(progress) | IsFenced | NotMe
"""

from __future__ import annotations

from typing import Final, NamedTuple

from hdphrs.errors import ProtocolError
from hdphrs.protocol.tasks import NodeId
from hdphrs.records import dataclass
from hdphrs.wire.items import unpack_address, unpack_natural, unpack_str


class Progress(NamedTuple):
    """How far one end has received."""

    received: int
    """Messages."""
    bulks: int
    """Large payloads of the first message that has any and is not among these, which are complete."""
    bulk_bytes: int
    """What there is of the next one."""


NOTHING: Final = Progress(0, 0, 0)
"""At the beginning."""


@dataclass(frozen=True, slots=True)
class Join:
    """A newcomer asks the root to be admitted."""

    host: str
    slots: int
    pid: int
    port: int
    """Where it listens, at the host that this connection comes from."""


@dataclass(frozen=True, slots=True)
class Resume:
    """Member `node` goes on with its session with `to`."""

    node: NodeId
    to: NodeId
    attempt: int
    """Counts from 1; what an attempt that was given up left behind on the way is recognized by it."""
    progress: Progress


@dataclass(frozen=True, slots=True)
class Admitted:
    """You are `node`.  The session begins."""

    node: NodeId


@dataclass(frozen=True, slots=True)
class Resumed:
    """The session goes on."""

    progress: Progress


@dataclass(frozen=True, slots=True)
class Wait:
    """Nobody has told this end about you yet; hold on."""


@dataclass(frozen=True, slots=True)
class IsFenced:
    """You have been declared dead."""


@dataclass(frozen=True, slots=True)
class NotMe:
    """This process is not the node that you look for; that one is gone, and its port is ours now."""


Greeting = Join | Resume
Answer = Admitted | Resumed | Wait | IsFenced | NotMe


def pack_greeting(greeting: Greeting | Answer) -> list[object]:
    """`[kind, field, ...]`."""
    match greeting:
        case Join(host, slots, pid, port):
            return ["join", host, slots, pid, port]
        case Resume(node, to, attempt, progress):
            return ["resume", node, to, attempt, *progress]
        case Admitted(node):
            return ["admitted", node]
        case Resumed(progress):
            return ["resumed", *progress]
        case Wait():
            return ["wait"]
        case IsFenced():
            return ["fenced"]
        case NotMe():
            return ["not me"]


def unpack_greeting(packed: object) -> Greeting:
    """What a dialer said.

    Raises:
        ProtocolError: no greeting.
    """
    match packed:
        case ["join", host, slots, pid, port]:
            _, port = unpack_address(["", port])
            return Join(unpack_str(host), unpack_natural(slots), unpack_natural(pid), port)
        case ["resume", node, to, attempt, *progress]:
            return Resume(
                NodeId(unpack_natural(node)),
                NodeId(unpack_natural(to)),
                unpack_natural(attempt),
                _unpack_progress(progress),
            )
    raise ProtocolError("not a greeting")


def unpack_answer(packed: object) -> Answer:
    """What a listener answered.

    Raises:
        ProtocolError: no answer.
    """
    match packed:
        case ["admitted", node]:
            return Admitted(NodeId(unpack_natural(node)))
        case ["resumed", *progress]:
            return Resumed(_unpack_progress(progress))
        case ["wait"]:
            return Wait()
        case ["fenced"]:
            return IsFenced()
        case ["not me"]:
            return NotMe()
    raise ProtocolError("not an answer to a greeting")


def _unpack_progress(packed: list[object]) -> Progress:
    if len(packed) != len(Progress._fields):
        raise ProtocolError("not how far a session has come")
    received, bulks, bulk_bytes = packed
    return Progress(unpack_natural(received), unpack_natural(bulks), unpack_natural(bulk_bytes))
