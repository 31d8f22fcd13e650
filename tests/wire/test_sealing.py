"""Records: any cut of the stream gives the same bytes, and whatever is not the peer's next is noticed."""

from __future__ import annotations

from hashlib import blake2b
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hdphrs.errors import ProtocolError
from hdphrs.wire.framing import FrameDecoder, encode_frame
from hdphrs.wire.sealing import (
    FIRST_RECORD_BYTES_MAX,
    HEAD_BYTES,
    RECORD_BYTES_MAX,
    TAG_BYTES,
    Opener,
    Sealer,
)

KEY, OTHER_KEY = b"k" * 32, b"o" * 32
OVERHEAD = HEAD_BYTES + TAG_BYTES

writes = st.lists(st.binary(min_size=1, max_size=60), min_size=1, max_size=6)


def sealed(parts: list[bytes], key: bytes = KEY) -> list[bytes]:
    sealer = Sealer(key)
    return [sealer.seal(part) for part in parts]


def opened(opener: Opener, data: bytes) -> bytes:
    return b"".join(bytes(part) for part in opener.open(data))


def all_that_is_believed(stream: bytes, cuts: list[int]) -> tuple[bytes, bool]:
    """What comes out of a stream that arrives in these pieces, and whether it was refused."""
    opener = Opener(KEY)
    believed = b""
    bounds = sorted({0, len(stream), *(cut % (len(stream) + 1) for cut in cuts)})
    for start, end in pairwise(bounds):
        try:
            believed += opened(opener, stream[start:end])
        except ProtocolError:
            with pytest.raises(ProtocolError):  # it never gets better
                opener.open(b"x")
            return believed, True
    return believed, False


@given(writes, st.lists(st.integers(0, 1000), max_size=20))
def test_any_cut_of_the_stream_gives_what_was_sealed(parts: list[bytes], cuts: list[int]) -> None:
    stream = b"".join(sealed(parts))
    assert all_that_is_believed(stream, cuts) == (b"".join(parts), False)
    assert all_that_is_believed(stream, list(range(len(stream)))) == (b"".join(parts), False)


@given(st.lists(st.binary(max_size=40), max_size=6), st.lists(st.integers(0, 1000), max_size=20))
def test_frames_may_begin_and_end_anywhere_in_records(objects: list[bytes], cuts: list[int]) -> None:
    frames = b"".join(encode_frame(each) for each in objects)
    bounds = sorted({0, len(frames), *(cut % (len(frames) + 1) for cut in cuts)})
    sealer, opener, decoder = Sealer(KEY), Opener(KEY), FrameDecoder()
    decoded = [
        frame
        for start, end in pairwise(bounds)
        for part in opener.open(sealer.seal(frames[start:end]))
        for frame in decoder.feed(part)
    ]
    assert decoded == objects


@given(writes, st.data(), st.lists(st.integers(0, 1000), max_size=5))
def test_one_byte_that_differs_ends_it_before_anything_of_its_record_is_believed(
    parts: list[bytes], data: st.DataObject, cuts: list[int]
) -> None:
    records = sealed(parts)
    which = data.draw(st.integers(0, len(records) - 1))
    where = data.draw(st.integers(0, len(records[which]) - 1))
    flip = data.draw(st.integers(1, 255))
    record = records[which]
    records[which] = record[:where] + bytes([record[where] ^ flip]) + record[where + 1 :]
    believed, refused = all_that_is_believed(b"".join(records), cuts)
    assert b"".join(parts[:which]).startswith(believed)
    assert refused or where < HEAD_BYTES  # a longer record may never be complete


@given(writes, st.data(), st.lists(st.integers(0, 1000), max_size=5))
def test_a_byte_too_many_or_too_few_ends_it(parts: list[bytes], data: st.DataObject, cuts: list[int]) -> None:
    stream = b"".join([*sealed(parts), Sealer(OTHER_KEY).seal(b"more")])
    where = data.draw(st.integers(0, len(b"".join(sealed(parts))) - 1))
    more = data.draw(st.binary(max_size=3))
    bent = stream[:where] + more + stream[where + (not more) :]
    believed, refused = all_that_is_believed(bent, cuts)
    whole = b"".join(parts)
    assert whole.startswith(believed)
    assert refused or len(believed) < len(whole) or bent.startswith(b"".join(sealed(parts)))


@given(writes.filter(lambda parts: len(parts) > 1), st.data(), st.lists(st.integers(0, 1000), max_size=5))
def test_record_left_out_repeated_or_in_another_place_ends_it(
    parts: list[bytes], data: st.DataObject, cuts: list[int]
) -> None:
    records = sealed(parts)
    which = data.draw(st.integers(0, len(parts) - 2))
    bent = data.draw(
        st.sampled_from(
            [
                records[:which] + records[which + 1 :],
                records[: which + 1] + records[which:],
                [*records[:which], records[which + 1], records[which], *records[which + 2 :]],
            ]
        )
    )
    believed, refused = all_that_is_believed(b"".join(bent), cuts)
    assert refused
    assert b"".join(parts[: which + 1]).startswith(believed)


@pytest.mark.parametrize("key", [OTHER_KEY, KEY[:-1] + b"x"])
def test_records_of_another_connection_or_the_other_direction_are_refused(key: bytes) -> None:
    with pytest.raises(ProtocolError, match="something between has changed it"):
        Opener(KEY).open(Sealer(key).seal(b"frames"))


def test_records_of_an_earlier_connection_are_refused_even_in_their_order() -> None:
    old = Sealer(OTHER_KEY).seal(b"an order of yesterday")
    opener = Opener(KEY)
    assert opened(opener, Sealer(KEY).seal(b"hello")) == b"hello"
    with pytest.raises(ProtocolError):
        opener.open(old)


@given(writes, st.integers(0, 1000))
def test_stream_that_ends_anywhere_gives_the_records_that_were_whole_and_no_part_of_one(
    parts: list[bytes], end: int
) -> None:
    records = sealed(parts)
    stream = b"".join(records)
    end %= len(stream) + 1
    opener = Opener(KEY)
    whole, size = b"", 0
    for part, record in zip(parts, records, strict=True):
        size += len(record)
        whole += part if size <= end else b""
    assert opened(opener, stream[:end]) == whole
    assert opener.amid == (end not in [sum(map(len, records[:count])) for count in range(len(records) + 1)])


@pytest.mark.parametrize("size", [0, RECORD_BYTES_MAX + 1, (1 << 32) - 1])
def test_length_that_no_record_has_is_refused_before_anything_is_kept(size: int) -> None:
    opener = Opener(KEY)
    with pytest.raises(ProtocolError, match=rf"a sealed record of {size:,} bytes, the limit is {RECORD_BYTES_MAX:,}"):
        opener.open(size.to_bytes(HEAD_BYTES, "big") + bytes(1 << 20))
    assert not opener._body


def test_reader_keeps_no_more_than_one_record_of_what_never_comes_to_an_end() -> None:
    opener = Opener(KEY)
    opener.open(RECORD_BYTES_MAX.to_bytes(HEAD_BYTES, "big"))
    for _ in range(RECORD_BYTES_MAX // 1024):
        assert opener.open(bytes(1024)) == []
    assert len(opener._body) == RECORD_BYTES_MAX
    with pytest.raises(ProtocolError):
        opener.open(bytes(1024))


def test_much_at_once_becomes_records_that_grow_and_every_one_is_short_enough() -> None:
    sealer, opener = Sealer(KEY), Opener(KEY)
    data = bytes(range(256)) * (1 << 13)
    stream = sealer.seal(data)
    sizes, rest = [], stream
    while rest:
        sizes.append(int.from_bytes(rest[:HEAD_BYTES], "big"))
        rest = rest[sizes[-1] + OVERHEAD :]
    assert sizes[:3] == [FIRST_RECORD_BYTES_MAX << power for power in range(3)]
    assert max(sizes) == RECORD_BYTES_MAX
    assert opened(opener, stream) == data
    assert len(sealer.seal(bytes(RECORD_BYTES_MAX))) == RECORD_BYTES_MAX + OVERHEAD


@pytest.mark.parametrize("end", [1_100, 5_000, 50_000, 500_000])
def test_of_a_connection_that_breaks_early_about_half_has_been_of_use(end: int) -> None:
    stream = Sealer(KEY).seal(bytes(1 << 20))
    assert len(opened(Opener(KEY), stream[:end])) >= 0.45 * end


def test_nothing_to_seal_is_no_record() -> None:
    assert Sealer(KEY).seal(b"") == b""
    assert Opener(KEY).open(b"") == []


@pytest.mark.parametrize("size", [1, 100, FIRST_RECORD_BYTES_MAX])
def test_tag_is_keyed_and_counts_the_records(size: int) -> None:
    sealer = Sealer(KEY)
    for number in range(3):
        body = bytes([number]) * size
        head = size.to_bytes(HEAD_BYTES, "big")
        tag = blake2b(number.to_bytes(8, "big") + head + body, key=KEY, digest_size=TAG_BYTES).digest()
        assert sealer.seal(body) == head + body + tag
