"""The targets that read bytes and objects: frames, messages, greetings, settings, outcomes, a session.

What lives here: pure code only.  Besides the rule that nothing but a refusal is raised, each says what else must hold:
what was accepted survives the way back, and how the bytes were cut makes no difference.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from random import Random
from typing import Any

import msgpack

from hdphrs.errors import ProtocolError, StartError
from hdphrs.protocol.tasks import NodeId, Verdict
from hdphrs.protocol.tasks import Outcome as TaskOutcome
from hdphrs.transport.greeting import (
    Admitted,
    Answer,
    Greeting,
    IsFenced,
    Join,
    NotMe,
    Progress,
    Resume,
    Resumed,
    Wait,
    pack_greeting,
    unpack_answer,
    unpack_greeting,
)
from hdphrs.transport.session import ACK, ASK, DATA, NOTE, SAID, TOLD, Session
from hdphrs.wire.bulk import BULK_BYTES_MIN, Bulk
from hdphrs.wire.codec import pack_message, unpack_message
from hdphrs.wire.framing import FrameDecoder, encode_frame, piece_head
from hdphrs.wire.items import pack_outcome, unpack_outcome
from hdphrs.wire.settings import encode_settings, read_settings
from hdphrs.wire.values import dump_error, load_outcome
from tests.fuzz import seeds
from tests.fuzz.mutate import frame, mutate_bytes, mutate_frames, mutate_object, pieces, write
from tests.fuzz.target import Outcome, Target, refused

FRAME_BYTES_MAX = 1 << 20


def decode(body: bytes) -> Any:
    """The object of one frame."""
    (obj,) = FrameDecoder().feed(frame(body))
    return obj


# Messages.


def _run_codec(data: bytes) -> Outcome:
    try:
        message = unpack_message(decode(data))
    except ProtocolError as error:
        return refused(error)
    assert unpack_message(decode(encode_frame(pack_message(message))[4:])) == message
    hash(message)
    return Outcome(True, type(message).__name__)


def _objects(name: str, make: Callable[[Random], list[Any]], run: Callable[[bytes], Outcome], **more: Any) -> Target:
    """A target that reads one object; `make` draws valid ones."""
    pool = [obj for round_ in range(20) for obj in make(seeds.seed_number(f"{name} {round_}"))]

    def draw(rng: Random) -> bytes:
        if rng.random() < 0.1:
            return mutate_bytes(rng, write(rng.choice(pool)))
        return write(mutate_object(rng, rng.choice(pool), pool))

    return Target(name, run, lambda: [write(obj) for obj in pool], draw, **more)


# Frames.


def _feed(data: bytes, how: int, *, in_pieces: bool = False) -> tuple[list[Any], str | None]:
    decoder = FrameDecoder(FRAME_BYTES_MAX, pieces=in_pieces)
    got: list[Any] = []
    fed = 0
    for piece in pieces(data, how):
        fed += len(piece)
        try:
            got += decoder.feed(piece)
        except ProtocolError as error:
            refused(error)
            _must_stay_lost(decoder, str(error))
            return got, str(error)
        assert len(decoder._buffer) <= min(fed, FRAME_BYTES_MAX + 4)
    return got, None


def _must_stay_lost(decoder: FrameDecoder, fault: str) -> None:
    try:
        decoder.feed(b"")
    except ProtocolError as error:
        again = str(error)
    else:
        again = "nothing"
    assert again == fault


def _are_alike(one: object, other: object) -> bool:
    """Whether two frames are equal, nan like nan, however deep they are."""
    pairs = [(one, other)]
    while pairs:
        one, other = pairs.pop()
        if type(one) is not type(other):
            return False
        if isinstance(one, dict) and isinstance(other, dict):
            one, other = (
                [part for item in one.items() for part in item],
                [part for item in other.items() for part in item],
            )
        if isinstance(one, list | tuple) and isinstance(other, list | tuple):
            if len(one) != len(other):
                return False
            pairs += zip(one, other, strict=True)
        elif isinstance(one, Bulk) and isinstance(other, Bulk):
            if bytes(one) != bytes(other):
                return False
        elif repr(one) != repr(other):
            return False
    return True


def _run_framing(data: bytes) -> Outcome:
    return _run_frames(data, in_pieces=False)


def _run_pieces(data: bytes) -> Outcome:
    return _run_frames(data, in_pieces=True)


def _run_frames(data: bytes, *, in_pieces: bool) -> Outcome:
    how, stream = (data[0], data[1:]) if data else (0, b"")
    whole, fault = _feed(stream, 0, in_pieces=in_pieces)
    cut, fault_when_cut = _feed(stream, how, in_pieces=in_pieces)
    assert fault == fault_when_cut, f"{fault} in one piece, {fault_when_cut} in several"
    if fault is not None:
        return refused(ProtocolError(fault))
    assert _are_alike(whole, cut)
    return Outcome(True, f"{min(len(whole), 5)} frames")


# Bulks in pieces, and frames between them.

_SIZES = (1, 1000, BULK_BYTES_MIN - 1, BULK_BYTES_MIN, FRAME_BYTES_MAX + 1)


def _in_pieces(rng: Random, *, sound: bool) -> bytes:
    """Some bulks, each followed by a frame with a token for it."""
    parts: list[bytes] = []
    for number in range(rng.randrange(1, 4)):
        left = BULK_BYTES_MIN + rng.randrange(3)
        while left:
            size = left if rng.random() < 0.4 else rng.randrange(1, left + 1)
            left -= size
            says = (size, left)
            if not sound and rng.random() < 0.1:
                says = rng.choice(((rng.choice(_SIZES), left), (size, rng.choice(_SIZES)), (0, left), (left, size)))
            parts += [piece_head(*says), bytes([number]) * size]
            if rng.random() < 0.3:
                parts.append(encode_frame([number]))
        parts.append(frame(b"\x92\x01" + _TOKEN))
    if not sound and rng.random() < 0.5:
        place = rng.randrange(len(parts))
        parts[place : place + 1] = rng.choice(([], [parts[place]] * 2, [frame(_TOKEN)], [rng.randbytes(8)]))
    return b"".join(parts)


_TOKEN = b"\xc7\x00\x01"


def _of_pieces() -> Target:
    def draw(rng: Random) -> bytes:
        return rng.randbytes(1) + _in_pieces(rng, sound=rng.random() < 0.2)

    def valid() -> list[bytes]:
        return [b"\x02" + _in_pieces(seeds.seed_number(f"pieces {number}"), sound=True) for number in range(5)]

    return Target("pieces", _run_pieces, valid, draw)


# A session, as a link reads it.


def _run_session(data: bytes) -> Outcome:
    how, pushed, stream = (data[0], data[1] % 4, data[2:]) if len(data) > 2 else (0, 0, b"")
    decoder, session = FrameDecoder(FRAME_BYTES_MAX, pieces=True), Session()
    for number in range(pushed):
        session.push([2, number])
    session.batch()
    kinds: dict[str, None] = {}
    count = 0
    try:
        for piece in pieces(stream, how):
            frames = decoder.feed(piece)
            session.on_bytes(len(piece), amid=decoder.amid)
            for received in frames:
                session.accused(received)
                packed = session.on_frame(received)
                if packed is not None:
                    count += 1
                    kinds[type(unpack_message(packed)).__name__] = None
    except ProtocolError as error:
        return refused(error)
    assert session.received == count
    assert len(session.batch()) <= 64
    return Outcome(True, " ".join(kinds)[:80])


def _sessions() -> list[list[Any]]:
    """Conversations: frames with the right numbers."""
    conversations = []
    for number in range(20):
        rng = seeds.seed_number(f"session {number}")
        said: list[Any] = []
        for message in rng.sample(seeds.packed(rng), 6):
            said.append([DATA, 1 + sum(frame_[0] == DATA for frame_ in said), message])
            if rng.random() < 0.3:
                others = (
                    [ACK, 0],
                    [ASK],
                    [NOTE, [0.0, 1.0, 2.0]],
                    [TOLD, b"topic", 1.0, b"find"],
                    [SAID, 0, b"bundle"],
                )
                said.append(rng.choice(others))
        conversations.append(said)
    return conversations


def _streams(name: str, prefix_bytes: int, conversations: list[list[Any]], run: Callable[[bytes], Outcome]) -> Target:
    """A target that reads frames, after some bytes that say how they come."""
    pool = [obj for said in conversations for obj in said]

    def draw(rng: Random) -> bytes:
        said = rng.choice(conversations)
        return rng.randbytes(prefix_bytes) + mutate_frames(rng, said[: rng.randrange(len(said)) + 1], pool)

    return Target(name, run, lambda: [bytes([2] * prefix_bytes) + seeds.frames(said) for said in conversations], draw)


# Greetings.


def _run_greeting(data: bytes) -> Outcome:
    try:
        obj = decode(data)
    except ProtocolError as error:
        return refused(error)
    complaint: ProtocolError | None = None
    unpackers: tuple[Callable[[object], Greeting | Answer], ...] = (unpack_greeting, unpack_answer)
    for unpack in unpackers:
        try:
            greeting = unpack(obj)
        except ProtocolError as error:
            complaint = error
        else:
            assert unpack(decode(encode_frame(pack_greeting(greeting))[4:])) == greeting
            return Outcome(True, type(greeting).__name__)
    assert complaint is not None
    return refused(complaint)


def _greetings(rng: Random) -> list[Any]:
    some: list[Greeting | Answer] = [
        Join("h", 2, 77, 4000),
        Resume(NodeId(3), NodeId(1), 1, Progress(9, 1, 70000)),
        Admitted(NodeId(3)),
        Resumed(Progress(9, 0, 5)),
    ]
    return [pack_greeting(greeting) for greeting in (*some, Wait(), IsFenced(), NotMe())]


# Settings: they come from the launcher, but anybody can start a node process by hand.


def _run_settings(data: bytes) -> Outcome:
    try:
        settings = read_settings(io.BytesIO(data))
    except StartError as error:
        return refused(error)
    return Outcome(True, "root" if settings.root else "other")


def _settings() -> Target:
    valid = [encode_settings(settings) for settings in seeds.settings()]
    maps = [msgpack.unpackb(data[4:]) for data in valid]
    pool = [value for each in maps for value in each["settings"].values()]

    def draw(rng: Random) -> bytes:
        if rng.random() < 0.3:
            return mutate_bytes(rng, rng.choice(valid))
        message = rng.choice(maps)
        changed = {**message, "settings": dict(message["settings"])}
        inner = rng.choice((changed, changed["settings"], changed["settings"], changed["settings"]))
        key = rng.choice(list(inner))
        if rng.random() < 0.2:
            del inner[key]
        else:
            inner[key] = mutate_object(rng, inner[key], pool)
        return frame(write(changed))

    return Target("settings", _run_settings, lambda: list(valid), draw)


# Outcomes, on their way into a future: after authentication, in a scheduler or the program.


def _run_outcome(data: bytes) -> Outcome:
    try:
        outcome = unpack_outcome(decode(data))
    except ProtocolError as error:
        return refused(error)
    succeeded, content = load_outcome(outcome)  # the tripwire stands in for the unpickler
    assert not succeeded
    assert isinstance(content, BaseException)
    str(content)
    str(content.__cause__)
    return Outcome(True, f"{outcome.verdict.name} {type(content).__name__}")


def _outcomes(rng: Random) -> list[Any]:
    error = dump_error("f", ValueError("x"))
    inner = [None, "f", "ValueError", "x", "Traceback ...", "that exception does not pickle"]
    broken = [TaskOutcome(Verdict.RAISED, write(mutate_object(rng, inner, [inner]))) for _ in range(20)]
    return [
        pack_outcome(outcome)
        for outcome in (
            error,
            TaskOutcome(Verdict.RAISED, write(inner)),
            *broken,
            TaskOutcome(Verdict.VALUE, b"N."),
            TaskOutcome(Verdict.CRASHED, b"f", ()),
            TaskOutcome(Verdict.CRASHED, b"\xff"),
            TaskOutcome(Verdict.LOST, b"a sentence"),
        )
    ]


CODEC = _objects("codec", seeds.packed, _run_codec)
FRAMING = _streams("framing", 1, _sessions(), _run_framing)
PIECES = _of_pieces()
SESSION = _streams("session", 2, _sessions(), _run_session)
GREETING = _objects("greeting", _greetings, _run_greeting)
SETTINGS = _settings()
OUTCOME = _objects("outcome", _outcomes, _run_outcome, unpickles=True)
