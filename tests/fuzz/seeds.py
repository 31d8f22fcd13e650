"""Valid input to begin with: messages of every type, greetings, settings, and the frames that carry them.

What lives here: values drawn from a seeded source, the same on every machine.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from random import Random
from typing import Any, get_type_hints

from hdphrs.protocol import messages as msg
from hdphrs.protocol.tasks import (
    Blame,
    Cause,
    Crash,
    FishId,
    Member,
    NodeId,
    Origin,
    Orphan,
    Outcome,
    Parting,
    Piece,
    RecallId,
    RequestId,
    Spark,
    Task,
    TaskRef,
    Verdict,
)
from hdphrs.wire.codec import ROWS, pack_message
from hdphrs.wire.framing import encode_frame
from hdphrs.wire.settings import Credentials, NodeSettings

CODE = b"digest of f"


def seed_number(name: str) -> Random:
    """A source of chance of its own for each name."""
    return Random(f"hdphrs fuzz {name}")


def every_message(rng: Random) -> list[msg.Message]:
    """One message of each type."""
    return [message_of(rng, message_type) for message_type in ROWS.values()]


def message_of(rng: Random, message_type: type[msg.Message]) -> msg.Message:
    """A message of this type with small ids, so that they meet those of others."""
    hints = get_type_hints(message_type)
    return message_type(*[_value(rng, hints[field.name]) for field in fields(message_type)])


def packed(rng: Random) -> list[Any]:
    """One packed message of each type."""
    return [pack_message(message) for message in every_message(rng)]


def _value(rng: Random, annotation: Any) -> Any:
    make = _MAKERS.get(annotation)
    if make is not None:
        return make(rng)
    (item, *_) = annotation.__args__
    return tuple([_value(rng, item) for _ in range(rng.randrange(4))])


def _ref(rng: Random) -> TaskRef:
    return TaskRef(NodeId(rng.randrange(4)), Origin(rng.randrange(2)), rng.randrange(6))


def _text(rng: Random) -> str:
    return rng.choice(["", "f", "module.function", "größer", "a b"])


def _bytes(rng: Random) -> bytes:
    return rng.choice([b"", CODE, rng.randbytes(16), rng.randbytes(40)])


def _crash(rng: Random) -> Crash:
    pid = rng.randrange(1 << 16)
    return Crash("host", pid, "was killed by SIGSEGV", cause=Cause(pid % len(Cause)))


def _blame(rng: Random) -> Blame:
    return Blame(rng.randbytes(rng.randrange(4)), (_crash(rng),))


def _task(rng: Random) -> Task:
    name, path, payload, supervised = _text(rng), rng.randbytes(16), _bytes(rng), rng.random() < 0.9
    pin = tuple([NodeId(rng.randrange(5)) for _ in range(rng.choice((0, 0, 0, 1, 2)))])
    return Task(name, path, CODE, payload, supervised, b"", rng.choice((0, 0, 1, 5)), rng.choice((0.0, 0.0, 1.5)), pin)


def _spark(rng: Random) -> Spark:
    crashes = tuple([_crash(rng) for _ in range(rng.randrange(3))])
    return Spark(_ref(rng), rng.randrange(3), _task(rng), crashes, rng.random() < 0.1)


def _outcome(rng: Random) -> Outcome:
    crashes = tuple([_crash(rng) for _ in range(rng.randrange(3))])
    return Outcome(rng.choice(list(Verdict)), _bytes(rng), crashes)


def _piece(rng: Random) -> Piece:
    return Piece(rng.randbytes(rng.randrange(4)), rng.randbytes(16), _outcome(rng))


def _orphan(rng: Random) -> Orphan:
    return Orphan(rng.randbytes(rng.randrange(4)), rng.randbytes(16), NodeId(rng.randrange(5)))


def _part(rng: Random) -> Piece | Orphan:
    return rng.choice((_piece, _orphan))(rng)


def _member(rng: Random) -> Member:
    return Member(NodeId(rng.randrange(1, 5)), "host", rng.randrange(8), ("127.0.0.1", 4000), rng.randrange(1 << 16))


_MAKERS: dict[Any, Any] = {
    int: lambda rng: rng.choice([0, 1, 2, 3, 16, 1 << 32, (1 << 64) - 1]),
    NodeId: lambda rng: NodeId(rng.randrange(5)),
    FishId: lambda rng: FishId(rng.randrange(1, 5)),
    RecallId: lambda rng: RecallId(rng.randrange(1, 5)),
    RequestId: lambda rng: RequestId(rng.randrange(1, 5)),
    bytes: _bytes,
    TaskRef: _ref,
    Spark: _spark,
    Crash: _crash,
    Outcome: _outcome,
    Blame: _blame,
    Piece: _piece,
    Orphan: _orphan,
    Piece | Orphan: _part,
    bool: lambda rng: rng.random() < 0.5,
    float: lambda rng: rng.choice([0.0, 0.1, 1e300]),
    Member: _member,
    Parting: lambda rng: rng.choice(list(Parting)),
    tuple[str, int]: lambda rng: ("tasks_started", rng.randrange(100)),
}


def frames(objects: Sequence[object]) -> bytes:
    """Each in a frame of its own."""
    return b"".join(map(encode_frame, objects))


def settings() -> list[NodeSettings]:
    """What a root and another node are told."""
    return [
        NodeSettings(root=True, host="localhost", slots=2, secret=b"s" * 32, program_fd=3),
        NodeSettings(
            root=False,
            host="b",
            slots=0,
            secret=b"s" * 32,
            root_addresses=(("10.0.0.1", 4000),),
            credentials=Credentials(certificate=b"c", key=b"k", authority=b"a"),
            program_archive=b"PK",
        ),
    ]
