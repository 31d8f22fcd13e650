"""Structured mutations: valid input, made a little wrong.

What lives here: changes of msgpack objects (values replaced, types swapped, items dropped, repeated, spliced), a writer
that can write what no packer would (false lengths, broken UTF-8), changes of a stream of frames, and changes of bytes.
Everything is drawn from the source that is passed in.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import Any

import msgpack

HEADER_BYTES = 4
SIZES = (
    0,
    1,
    2,
    3,
    4,
    5,
    100,
    0x7F,
    0x80,
    0xFFFF,
    0x10000,
    1 << 20,
    (1 << 20) + 1,
    1 << 30,
    (1 << 31) - 1,
    (1 << 32) - 1,
)


class Raw(bytes):
    """Bytes that the writer puts into the output as they are."""


NUMBERS = (0, 1, 2, 7, 31, 127, 255, 65535, 65536, 1 << 31, 1 << 32, (1 << 63) - 1, 1 << 63, (1 << 64) - 1)
SCALARS: tuple[Any, ...] = (
    None, True, False, *NUMBERS, -1, -32, -33, -(1 << 63), 0.0, 1.0, -1.5, float("inf"), float("nan"),
    "", "\0", "f", "x" * 300, b"", b"\0", b"x" * 300, [], {}, {"": None}, [[]], {"a": [1]},
)  # fmt: skip
CRIMES = (
    Raw(b"\xc1"),
    Raw(b"\xa3\xed\xa0\x80"),
    Raw(b"\xa1\xff"),
    Raw(b"\xd9\x04\xf4\x90\x80\x80"),
    Raw(b"\xdd\xff\xff\xff\xff"),
    Raw(b"\xdd\x00\x02\x00\x00"),
    Raw(b"\xdc\xff\xff"),
    Raw(b"\xdf\xff\xff\xff\xff"),
    Raw(b"\xde\xff\xff\x01\x02"),
    Raw(b"\xdb\xff\xff\xff\xff"),
    Raw(b"\xc6\xff\xff\xff\xff"),
    Raw(b"\xc9\xff\xff\xff\xff\x01"),
    Raw(b"\xd4\x01\x00"),
    Raw(b"\xc7\x00\x01"),
    Raw(b"\xd6\xff\x00\x00\x00\x01"),
    Raw(b"\x81\xc0\xc0"),
    Raw(b"\x81\x01\x01"),
    Raw(b"\x81\x90\x01"),
    Raw(b"\x91" * 200),
    Raw(b"\x91" * 1200),
    Raw(b"\x91" * 600 + b"\xc0"),
    Raw(b"\x81\xa0" * 600 + b"\xc0"),
    Raw(b"\xdc\xff\xff" * 300),
    Raw(b"\xdd\x00\x01\x00\x00" * 100),
    Raw(b""),
)


def write(obj: Any) -> bytes:
    """As msgpack, but for what is raw."""
    match obj:
        case Raw():
            return bytes(obj)
        case list() | tuple():
            return b"".join([_head(0x90, 0xDC, len(obj)), *map(write, obj)])
        case dict():
            return b"".join([_head(0x80, 0xDE, len(obj)), *[write(key) + write(obj[key]) for key in obj]])
    packed: bytes = msgpack.packb(obj)
    return packed


def _head(small: int, large: int, count: int) -> bytes:
    if count < 16:
        return bytes([small + count])
    return (
        bytes([large]) + count.to_bytes(2, "big") if count < 1 << 16 else bytes([large + 1]) + count.to_bytes(4, "big")
    )


def mutate_object(rng: Random, obj: Any, others: Sequence[Any]) -> Any:
    """A copy of a nested list that differs in one place or in a few."""
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        obj = _change(rng, obj, others)
    return obj


def _change(rng: Random, obj: Any, others: Sequence[Any]) -> Any:
    if isinstance(obj, list) and obj and rng.random() < 0.85:
        place = rng.randrange(len(obj))
        if rng.random() < 0.8:
            return [*obj[:place], _change(rng, obj[place], others), *obj[place + 1 :]]
        return _change_list(rng, obj, place)
    return rng.choice(_REPLACEMENTS)(rng, obj, others)


def _change_list(rng: Random, items: list[Any], place: int) -> list[Any]:
    match rng.randrange(5):
        case 0:
            return items[:place] + items[place + 1 :]
        case 1:
            return [*items[:place], *[items[place]] * rng.choice((2, 3, 20, 300)), *items[place + 1 :]]
        case 2:
            other = rng.randrange(len(items))
            copy = list(items)
            copy[place], copy[other] = copy[other], copy[place]
            return copy
        case 3:
            return items[:place]
    return [*items[:place], rng.choice(SCALARS), *items[place:]]


def _swap_type(rng: Random, obj: Any, others: Sequence[Any]) -> Any:
    match obj:
        case Raw():
            return obj
        case bool():
            return int(obj)
        case int():
            return rng.choice((float(obj), str(obj), bool(obj), [obj], -obj - 1 if obj < 1 << 63 else 0.0))
        case str():
            return obj.encode()
        case bytes():
            return Raw(_string_head(len(obj)) + obj)
        case list():
            return {str(place): item for place, item in enumerate(obj)}
    return [obj]


def _string_head(size: int) -> bytes:
    return bytes([0xA0 + size]) if size < 32 else b"\xdb" + size.to_bytes(4, "big")


def _splice(rng: Random, obj: Any, others: Sequence[Any]) -> Any:
    part = rng.choice(others)
    while isinstance(part, list) and part and rng.random() < 0.7:
        part = rng.choice(part)
    return part


_REPLACEMENTS: tuple[Callable[[Random, Any, Sequence[Any]], Any], ...] = (
    lambda rng, obj, others: rng.choice(SCALARS),
    lambda rng, obj, others: rng.choice(NUMBERS),
    lambda rng, obj, others: rng.choice(CRIMES),
    lambda rng, obj, others: [obj] * rng.choice((1, 2, 50)),
    _swap_type,
    _splice,
)


def mutate_frames(rng: Random, objects: Sequence[Any], others: Sequence[Any]) -> bytes:
    """A stream of frames with these objects, of which some are changed, and so is their order and framing."""
    stream = [frame(write(obj)) for obj in objects]
    for _ in range(rng.choice((1, 1, 2, 4))):
        place = rng.randrange(len(stream)) if stream else 0
        match rng.randrange(8):
            case 0 if stream:
                del stream[place]
            case 1 if stream:
                stream[place] *= rng.choice((2, 3, 10))
            case 2 if stream:
                other = rng.randrange(len(stream))
                stream[place], stream[other] = stream[other], stream[place]
            case 3 if stream:
                stream[place] = rng.choice(SIZES).to_bytes(HEADER_BYTES, "big") + stream[place][HEADER_BYTES:]
            case 4 if stream:
                stream[place] = mutate_bytes(rng, stream[place])
            case _:
                source = rng.choice(objects) if objects else []
                stream.insert(place, frame(write(mutate_object(rng, source, others))))
    return b"".join(stream)


def frame(body: bytes) -> bytes:
    """With an honest length."""
    return len(body).to_bytes(HEADER_BYTES, "big") + body


def mutate_bytes(rng: Random, data: bytes) -> bytes:
    """Flip, cut, repeat, insert."""
    changed = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 5))):
        place = rng.randrange(len(changed) + 1)
        match rng.randrange(6):
            case 0 | 1 if place < len(changed):
                changed[place] ^= 1 << rng.randrange(8)
            case 2 if place < len(changed):
                changed[place] = rng.choice((0, 1, 0x7F, 0x80, 0x90, 0xC0, 0xDC, 0xDD, 0xFF))
            case 3:
                del changed[place : place + rng.choice((1, 4, 1000))]
            case 4:
                changed[place:place] = changed[place : place + rng.choice((1, 8, 64))]
            case _:
                changed[place:place] = rng.randbytes(rng.choice((1, 2, 8)))
    return bytes(changed)


def pieces(data: bytes, how: int) -> list[bytes]:
    """The data as a network might deliver it: 0 in one piece, 1 byte by byte, else in random pieces."""
    if how == 0:
        return [data] if data else []
    rng = Random(how)
    cut: list[bytes] = []
    start = 0
    while start < len(data):
        size = 1 if how == 1 else rng.choice((1, 2, 3, 5, 17, 60, 1000))
        cut.append(data[start : start + size])
        start += size
    return cut
