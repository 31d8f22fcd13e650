"""Frames survive any cutting of the stream; nothing but frames survives at all."""

from __future__ import annotations

import contextlib
import tracemalloc
from typing import Any

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hdphrs.wire.framing as framing
from hdphrs.errors import InternalError, MessageTooLargeError, ProtocolError
from hdphrs.wire.bulk import BULK_BYTES_MIN, bulk_of
from hdphrs.wire.framing import FrameDecoder, encode_frame, piece_head, plain_frame

scalars = st.none() | st.booleans() | st.integers(-(1 << 63), (1 << 64) - 1) | st.floats(allow_nan=False)
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
objects = st.recursive(
    scalars | texts | st.binary(max_size=40),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=20,
)


def framed(body: bytes) -> bytes:
    return len(body).to_bytes(4, "big") + body


@given(st.lists(objects, max_size=6), st.randoms(use_true_random=False), st.booleans())
def test_frames_cut_anywhere_come_out_whole_and_in_order(sent: list[object], random: object, trusted: bool) -> None:
    stream = b"".join(encode_frame(obj) for obj in sent)
    decoder = FrameDecoder(trusted=trusted)
    received: list[object] = []
    rest = memoryview(stream)
    while rest:
        cut = random.randint(1, len(rest))  # type: ignore[attr-defined]  # hypothesis hides its random's type
        received += decoder.feed(rest[:cut])
        rest = rest[cut:]
    assert received == sent


@pytest.mark.parametrize("size", [0, 100, 1 << 14, (1 << 14) + 1, 3_000_000])
def test_frames_of_any_size_survive_small_pieces(size: int) -> None:
    decoder = FrameDecoder()
    stream = encode_frame([b"x" * size]) + encode_frame("next")
    step = max(1, len(stream) // 50)
    received = [obj for i in range(0, len(stream), step) for obj in decoder.feed(stream[i : i + step])]
    assert received == [[b"x" * size], "next"]


def test_oversized_frame_is_refused_before_its_bytes_are_kept() -> None:
    decoder = FrameDecoder(bytes_max=100)
    assert decoder.feed(framed(msgpack.packb(b"x" * 98))) == [b"x" * 98]
    with pytest.raises(ProtocolError, match=r"101 bytes, the limit is 100"):
        decoder.feed((101).to_bytes(4, "big"))


@given(st.lists(st.lists(objects, max_size=4), max_size=4))
def test_frame_made_in_the_short_way_is_the_same_and_is_read_in_the_short_way_too(sent: list[list[object]]) -> None:
    decoder = FrameDecoder(trusted=True)
    for items in sent:
        frame = plain_frame(items)
        assert frame == encode_frame(items)
        assert frame is not None
        assert decoder.messages(frame) == items
    assert decoder.messages(b"".join(map(encode_frame, sent))) == [item for items in sent for item in items]


def test_what_may_hold_a_bulk_is_not_made_nor_read_in_the_short_way() -> None:
    bulk: Any = bulk_of(bytes(BULK_BYTES_MIN))
    assert plain_frame([[1, bulk]]) is None
    decoder = FrameDecoder(trusted=True)
    frame = encode_frame([[1, bulk]], lambda _: framing.TOKEN)
    assert decoder.peek(frame) is None
    decoder.bulks.append(bulk)
    assert decoder.messages(frame) == [[1, bulk]]


def test_trusting_decoder_after_a_violation_refuses_everything() -> None:
    decoder = FrameDecoder(trusted=True)
    assert decoder.feed(encode_frame([1])) == [[1]]
    for data in (framed(b"\xc1"), encode_frame([2])):
        with pytest.raises(ProtocolError, match="malformed"):
            decoder.feed(data)


def test_decoder_after_a_violation_refuses_everything() -> None:
    decoder = FrameDecoder(bytes_max=10)
    with pytest.raises(ProtocolError):
        decoder.feed(b"\xff" * 8)
    with pytest.raises(ProtocolError):
        decoder.feed(encode_frame(1))


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"\xc1",
        b"\x01\x02",
        b"\xa1\xff",
        b"\x81\x90\x01",
        b"\x81\x01\x01",
        b"\xd6\xff\x00\x00\x00\x01",
        b"\xdd\xff\xff\xff\xff",
        b"\x91" * 5000,
    ],
    ids=["empty", "unused", "extra", "utf8", "listkey", "intkey", "ext", "claims", "deep"],
)
def test_malformed_frame_is_a_protocol_error(body: bytes) -> None:
    with pytest.raises(ProtocolError, match="malformed frame"):
        FrameDecoder().feed(framed(body))


@given(st.lists(st.binary(max_size=60), max_size=8))
def test_random_bytes_raise_nothing_but_protocol_errors(chunks: list[bytes]) -> None:
    decoder = FrameDecoder(bytes_max=1000)
    with contextlib.suppress(ProtocolError):
        for chunk in chunks:
            decoder.feed(chunk)


@given(st.binary(max_size=200))
def test_random_bodies_raise_nothing_but_protocol_errors(body: bytes) -> None:
    with contextlib.suppress(ProtocolError):
        assert len(FrameDecoder().feed(framed(body))) == 1


ALLOWANCE_BYTES = 64 << 10
"""For the error, and what the decoder needs besides."""


def claims(length: int, levels: int, rest: bytes = b"") -> bytes:
    return (b"\xdd" + length.to_bytes(4, "big")) * levels + rest


@pytest.mark.parametrize(
    "body",
    [
        claims(1 << 20, 500, b"\xc0" * (1 << 20)),
        claims(framing.ITEMS_MAX, 1000),
        claims(framing.ITEMS_MAX, 1),
        claims(1000, 1000, bytes(999)),
        b"\xdc\xff\xff" * 1000,
        b"\xc6\xff\xff\xff\xff",
        b"\xdb\xff\xff\xff\xff",
        b"\xdc\x30\x00" + b"\x90" * 0x3000,
        b"\xdc\x30\x00" + b"\x80" * 0x3000,
        b"\xdc\x30\x00" + b"\x91\xc0" * 0x3000,
        b"\xdc\x30\x00" + b"\x81\xa0\xc0" * 0x3000,
        b"\xdc\x30\x00" + b"\xa2ab" * 0x3000,
    ],
    ids=lambda body: body[:12].hex(),
)
def test_frame_takes_little_memory_whatever_lengths_it_claims(body: bytes) -> None:
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        with contextlib.suppress(ProtocolError):
            FrameDecoder().feed(framed(body))
        peak = tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()
    assert peak <= framing.EXPANSION_MAX * len(body) + ALLOWANCE_BYTES


def test_message_beyond_the_limit_is_refused_at_the_sender(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(framing, "FRAME_BYTES_MAX", 1000)
    with pytest.raises(MessageTooLargeError, match=r"1,005 bytes .* the limit is 1,000"):
        encode_frame(b"x" * 1002)


@pytest.mark.parametrize("obj", [object(), {1, 2}, 1 << 64, "\ud800"])
def test_what_no_frame_can_hold_is_an_internal_error(obj: object) -> None:
    with pytest.raises(InternalError, match="no frame can hold"):
        encode_frame([obj])


TOKEN = b"\xc7\x00\x01"


def test_bulk_in_pieces_stands_where_its_token_was() -> None:
    data = b"x" * BULK_BYTES_MIN
    decoder = FrameDecoder(pieces=True)
    assert decoder.feed(piece_head(10, len(data) - 10) + data[:10] + encode_frame("between")) == ["between"]
    stream = piece_head(len(data) - 10, 0) + data[10:] + framed(b"\x92\x07" + TOKEN)
    received = [obj for i in range(0, len(stream), 777) for obj in decoder.feed(stream[i : i + 777])]
    assert [(number, bytes(bulk)) for number, bulk in received] == [(7, data)]


@pytest.mark.parametrize(
    ("stream", "complaint"),
    [
        (piece_head(10, 10), "a payload of 20 bytes"),
        (piece_head(10, 1 << 21), "a payload of 2,097,162 bytes"),
        (piece_head(0, BULK_BYTES_MIN), "a piece of 0 bytes"),
        (piece_head(1, BULK_BYTES_MIN) + b"x" + piece_head(2, BULK_BYTES_MIN), "a piece of 2 bytes where 65,536"),
        (framed(TOKEN), "token for nothing"),
        ((piece_head(BULK_BYTES_MIN, 0) + bytes(BULK_BYTES_MIN)) * 2 + framed(TOKEN), "not all of its payloads"),
    ],
)
def test_pieces_that_do_not_fit_are_refused(stream: bytes, complaint: str) -> None:
    with pytest.raises(ProtocolError, match=complaint):
        FrameDecoder(1 << 20, pieces=True).feed(stream)


def test_pieces_are_refused_where_there_are_none() -> None:
    with pytest.raises(ProtocolError, match="the limit is"):
        FrameDecoder().feed(piece_head(BULK_BYTES_MIN, 0))
