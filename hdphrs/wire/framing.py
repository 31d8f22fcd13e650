"""Frames: a length of four bytes, big-endian, then one msgpack object of that many bytes.

A large payload (`bulk.py`) may travel beside its frame; then there is a token in its place.  Between nodes it comes
before the frame, in pieces, between which there may be other frames:

    PIECE + number of bytes, four bytes; number of those that are still to come after them, four bytes; the bytes

What lives here: objects to bytes and bytes to objects, for the links between processes of one host and for
the connections between nodes.  What the objects mean is the business of `codec.py` and of the links.

A decoder looks at the length before it buffers anything, accepts neither extension types nor maps with odd
keys, and allocates at most `EXPANSION_MAX` bytes for each byte of a frame.  Whatever it is fed, it raises
`ProtocolError` or nothing.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Final, NoReturn

import msgpack

from hdphrs.config import FRAME_BYTES_MAX
from hdphrs.errors import InternalError, MessageTooLargeError, ProtocolError
from hdphrs.wire.bulk import BULK_BYTES_MIN, Bulk, Incoming

HEADER_BYTES: Final = 4

PIECE: Final = 1 << 31
"""Added to the length that begins a piece; no frame is as long."""

LEFT_BYTES: Final = 4

PIECE_BYTES: Final = 1 << 17
"""Of a piece: how much is written to a connection before anything else has its turn."""

ITEMS_MAX: Final = 1 << 17
"""Items of a single list or map in a frame."""

EXPANSION_MAX: Final = 100
"""Bytes that a decoded frame may take for each of its own: a map of one item takes 80 for each of its three."""

_TRUSTED_BYTES: Final = 1 << 25
"""A list is allocated when its length is read, and 1024 of them nest: 1 GiB for lengths that are lies.  In a frame of
this size that is within the expansion; the lengths in a smaller one are verified first."""

_SMALL_BYTES_MAX: Final = 1 << 13
"""Of a body that is read by what has read others before."""

_COPY_BYTES_MAX: Final = 1 << 14
"""Up to this size a copy of a frame's bytes is cheaper than a view of them."""


TOKEN: Final = msgpack.ExtType(1, b"")
"""Stands in a frame for a bulk that is not in it."""

Carry = Callable[[Bulk], object]
"""What a frame holds in place of a bulk: the bytes, or `TOKEN` if it gets there in some other way."""


def encode_frame(obj: object, carry: Carry = bytes) -> bytes:
    """One object (None, bool, int, float, str, bytes, bulk, and lists, tuples and maps of these) as one frame.

    Raises:
        MessageTooLargeError: it is larger than `FRAME_BYTES_MAX`.
        InternalError: it holds something that no frame can hold.
    """
    return frame_of(encode_body(obj, carry))


def encode_body(obj: object, carry: Carry = bytes) -> bytes:
    """What is in a frame beside its length; see `encode_frame`."""
    try:
        return encode_object(obj, carry)
    except (TypeError, ValueError, OverflowError) as error:
        raise InternalError(f"no frame can hold this: {error}") from error


def frame_of(*parts: bytes, beside: int = 0) -> bytes:
    """A frame of a body in parts; so many bytes of bulks travel beside it."""
    size = len(parts[0]) if len(parts) == 1 else sum(map(len, parts))
    if size + beside > FRAME_BYTES_MAX:
        raise MessageTooLargeError(
            f"a message of {size + beside:,} bytes cannot leave its process, the limit is {FRAME_BYTES_MAX:,}; "
            f"pass large data by reference (a file, a URL) or in smaller pieces"
        )
    return b"".join((size.to_bytes(HEADER_BYTES, "big"), *parts))


def encode_object(obj: object, carry: Carry = bytes) -> bytes:
    """The body of a frame; what no frame can hold is a `TypeError`, a `ValueError` or an `OverflowError`."""

    def default(value: object) -> object:
        if isinstance(value, Bulk):
            return carry(value)
        raise TypeError(f"a {type(value).__name__}")

    body: bytes = msgpack.packb(obj, default=default)
    return body


_packers: Final[list[msgpack.Packer]] = []
"""That nobody uses just now: to make one takes longer than to pack most frames."""

_PACKERS_MAX: Final = 2

_KEPT_BYTES: Final = 1 << 16
"""A packer keeps room for the largest frame that it has made: one that has made a larger one than this is dropped."""


def plain_frame(obj: object) -> bytes | None:
    """The frame of an object without bulks, as nearly all are; None if there may be one in it.

    Raises:
        MessageTooLargeError: as `encode_frame`.
    """
    try:
        packer = _packers.pop()  # from here on no other thread has it
    except IndexError:
        packer = msgpack.Packer()
    try:
        body: bytes = packer.pack(obj)
    except (TypeError, ValueError, OverflowError):
        return None
    size = len(body)
    if size <= _KEPT_BYTES and len(_packers) < _PACKERS_MAX:
        _packers.append(packer)
    return size.to_bytes(HEADER_BYTES, "big") + body if size <= FRAME_BYTES_MAX else frame_of(body)


def piece_head(size: int, left: int) -> bytes:
    """What comes before a piece of so many bytes, after which so many are still to come."""
    return (PIECE + size).to_bytes(HEADER_BYTES, "big") + left.to_bytes(LEFT_BYTES, "big")


class Unfinished:
    """Large payloads that have arrived in pieces and wait for their frame, and the one of which some pieces have.

    It outlives the connection that has brought them: the next one goes on where that broke off.  All together are no
    larger than a frame may be.
    """

    def __init__(self) -> None:
        self.bulks: deque[Bulk] = deque()
        """Those that have arrived, for the tokens to come."""
        self.incoming: Incoming | None = None
        """One of which some pieces have arrived."""
        self.left: int = 0
        """Bytes that are still to come of it."""
        self.waiting_bytes: int = 0
        """Of all bulks that have arrived in pieces, or begun to."""

    def __bool__(self) -> bool:
        return bool(self.bulks) or self.incoming is not None

    @property
    def incoming_bytes(self) -> int:
        """What has come of the one that is incomplete."""
        return 0 if self.incoming is None else len(self.incoming)

    def clear(self) -> None:
        """Forget all of it: the sender begins anew."""
        self.bulks.clear()
        self.incoming = None
        self.left = self.waiting_bytes = 0


class FrameDecoder:
    """Cuts a stream of bytes into frames and decodes them.

    Args:
        bytes_max: a longer frame is a violation, noticed as soon as its length has arrived.  The same holds for bulks,
            all together that wait for their frame.
        pieces: whether bulks come in pieces; otherwise somebody else puts them into `bulks`.
        trusted: whether the bytes come from another process of this very installation, so that no length in them is a
            lie.
    """

    def __init__(self, bytes_max: int = FRAME_BYTES_MAX, *, pieces: bool = False, trusted: bool = False) -> None:
        self.bytes_max = bytes_max
        self._small_bytes_max = min(bytes_max, _SMALL_BYTES_MAX)
        self._pieces = pieces
        self._trusted = trusted
        self._unfinished = Unfinished()
        self._piece_left = 0
        """Of the piece that has begun."""
        self._buffer = bytearray()
        self._needed = HEADER_BYTES
        """Bytes of `_buffer` without which nothing can be decoded."""
        self._fault: str | None = None

    @property
    def bulks(self) -> deque[Bulk]:
        """Those that have arrived, for the tokens to come."""
        return self._unfinished.bulks

    def go_on_with(self, unfinished: Unfinished) -> None:
        """Before the first piece, or after the last: what comes belongs to these."""
        self._unfinished = unfinished
        self._piece_left = 0

    def feed(self, data: bytes | bytearray | memoryview) -> list[Any]:
        """The objects that are complete with `data`, in order.

        Raises:
            ProtocolError: malformed or oversized input; so will every later call, for the stream has lost its
                place.
        """
        return list(self.frames(data))

    def frames(self, data: bytes | bytearray | memoryview) -> Iterator[Any]:
        """As `feed`, one after the other: what has been taken is dealt with before the next is looked at.

        Nothing else may be fed before the last one has been taken.
        """
        if self._fault is not None:
            raise ProtocolError(self._fault)
        start = 0
        if not self._buffer and not self._piece_left:  # whole, small and sound, without bulks, as nearly all are
            size = len(data)
            while (body := start + HEADER_BYTES) < size:
                end = body + int.from_bytes(data[start:body], "big")
                if end > size or end - body > self._small_bytes_max:
                    break
                try:
                    frame = _read_small(data[body:end], trusted=self._trusted)
                except _MALFORMED:
                    break
                start = end
                yield frame
            if start == size:
                return
        yield from self._feed(data, start)

    def _feed(self, data: bytes | bytearray | memoryview, start: int) -> list[Any]:
        frames: list[Any] = []
        if not self._buffer:
            consumed = self._decode(data, start, frames)
            self._buffer += data[consumed:]
            return frames
        self._buffer += data
        if len(self._buffer) >= self._needed:
            consumed = self._decode(self._buffer, 0, frames)
            del self._buffer[:consumed]
        return frames

    @property
    def amid(self) -> bool:
        """Something has come in part."""
        return bool(self._buffer) or bool(self._unfinished)

    @property
    def unfinished_bytes(self) -> int:
        """Of a frame whose rest has not come, as far as it has."""
        return len(self._buffer)

    def peek(self, data: bytes) -> Any:
        """The object in the one small frame that `data` is, which has not been fed, without bulks; None for anything
        else, which is to be fed."""
        size = len(data)
        if (
            self._buffer
            or self._fault is not None
            or not self._trusted
            or size > HEADER_BYTES + _SMALL_BYTES_MAX
            or size != HEADER_BYTES + int.from_bytes(data[:HEADER_BYTES], "big")
        ):
            return None
        try:
            return _read_small(data[HEADER_BYTES:], trusted=True)
        except _MALFORMED:
            return None

    def messages(self, data: bytes) -> list[Any]:
        """All items of the frames that are complete with `data`, each of which must be a list; otherwise as `feed`."""
        whole = self.peek(data)
        if type(whole) is list:
            return whole
        items: list[Any] = []
        for frame in self.feed(data):
            if type(frame) is not list:
                raise self._violation("a frame that is no list of messages")
            items += frame
        return items

    def _decode(self, data: bytes | bytearray | memoryview, start: int, frames: list[Any]) -> int:
        """Decode what has come from `start` on; where it ends."""
        size = len(data)
        while True:
            if self._piece_left:
                start = self._take_piece(data, start)
                if self._piece_left:
                    self._needed = 1
                    return start
            body = start + HEADER_BYTES
            if body > size:
                self._needed = HEADER_BYTES
                return start
            end = body + int.from_bytes(data[start:body], "big")
            if self._pieces and end - body >= PIECE:
                first = body + LEFT_BYTES
                if first > size:
                    self._needed = HEADER_BYTES + LEFT_BYTES
                    return start
                self._begin_piece(end - body - PIECE, int.from_bytes(data[body:first], "big"))
                start = first
                continue
            if end - body > self.bytes_max:
                raise self._violation(f"a frame of {end - body:,} bytes, the limit is {self.bytes_max:,}")
            if end > size:
                self._needed = end - start
                return start
            frames.append(self._unpack(data, body, end))
            start = end

    def _begin_piece(self, size: int, left: int) -> None:
        unfinished = self._unfinished
        if unfinished.incoming is None:
            if size + left < BULK_BYTES_MIN or unfinished.waiting_bytes + size + left > self.bytes_max:
                raise self._violation(f"a payload of {size + left:,} bytes in pieces")
            unfinished.incoming = Incoming()
            unfinished.left = size + left
            unfinished.waiting_bytes += size + left
        if not size or size + left != unfinished.left:
            raise self._violation(f"a piece of {size:,} bytes where {unfinished.left:,} are to come")
        self._piece_left = size

    def _take_piece(self, data: bytes | bytearray | memoryview, start: int) -> int:
        """Keep what has come of a piece; where that ends."""
        unfinished = self._unfinished
        incoming = unfinished.incoming
        assert incoming is not None, "a piece is of something"
        with memoryview(data) as view, view[start : start + self._piece_left] as part:
            incoming.write(part)
            size = len(part)
        self._piece_left -= size
        unfinished.left -= size
        if not unfinished.left:
            unfinished.bulks.append(incoming.finish())
            unfinished.incoming = None
        return start + size

    def _unpack(self, data: bytes | bytearray | memoryview, body: int, end: int) -> object:
        unfinished = self._unfinished
        had = len(unfinished.bulks)
        try:
            obj = self._decode_object(data, body, end)
        except ProtocolError as error:
            self._fault = str(error)
            raise
        if self._pieces and len(unfinished.bulks) < had:
            if unfinished:
                raise self._violation("a malformed frame: not all of its payloads")
            unfinished.waiting_bytes = 0
        return obj

    def _decode_object(self, data: bytes | bytearray | memoryview, body: int, end: int) -> object:
        if end - body <= _COPY_BYTES_MAX:
            return decode_object(data[body:end], self._take_bulk, trusted=self._trusted)
        with memoryview(data) as view, view[body:end] as part:
            return decode_object(part, self._take_bulk, trusted=self._trusted)

    def _take_bulk(self) -> Bulk:
        bulks = self._unfinished.bulks
        if not bulks:
            raise ProtocolError("a malformed frame: a token for nothing")
        return bulks.popleft()

    def _violation(self, what: str) -> ProtocolError:
        self._fault = what
        return ProtocolError(what)


_MALFORMED: Final = (ValueError, TypeError, OverflowError, MemoryError, msgpack.UnpackException)

_LIMITS: Final[dict[str, Any]] = {
    "raw": False,
    "strict_map_key": True,
    "max_array_len": ITEMS_MAX,
    "max_map_len": ITEMS_MAX,
    "max_ext_len": 0,
}
_unpack_object: Final[Callable[..., Any]] = partial(msgpack.unpackb, **_LIMITS)


def _no_token(code: int, data: bytes) -> NoReturn:
    raise ValueError("a token, or what is none")


class _SmallReader:
    """Reads one small body after the other: to make an unpacker takes longer than to read most of them.

    What it does not take, it raises something of `_MALFORMED` for, and is of no more use.
    """

    def __init__(self) -> None:
        self._unpacker = msgpack.Unpacker(
            None, read_size=_SMALL_BYTES_MAX, max_buffer_size=2 * _SMALL_BYTES_MAX, ext_hook=_no_token, **_LIMITS
        )
        self._bytes = 0
        """All that it has read."""

    def read(self, body: bytes | bytearray | memoryview, *, trusted: bool) -> Any:
        unpacker = self._unpacker
        end = self._bytes + len(body)
        if not trusted:  # see `_verify_lengths`
            unpacker.feed(body)
            unpacker.skip()
            if unpacker.tell() != end:
                raise ValueError("more than one object")
            end += len(body)
        unpacker.feed(body)
        obj = unpacker.unpack()
        if unpacker.tell() != end:
            raise ValueError("more than one object")
        self._bytes = end
        return obj


_readers: Final[list[_SmallReader]] = []
"""That nobody uses just now."""


def _read_small(body: bytes | bytearray | memoryview, *, trusted: bool) -> Any:
    """The object in the small body of a frame, without bulks; what is none raises something of `_MALFORMED`."""
    try:
        reader = _readers.pop()  # from here on no other thread has it
    except IndexError:
        reader = _SmallReader()
    obj = reader.read(body, trusted=trusted)
    _readers.append(reader)
    return obj


def _no_bulk() -> Bulk:
    raise ProtocolError("a malformed frame: a token where there are none")


def decode_object(
    part: bytes | bytearray | memoryview, take_bulk: Callable[[], Bulk] = _no_bulk, *, trusted: bool = False
) -> Any:
    """The object in the body of a frame; `take_bulk` gives the next bulk for a token.

    Args:
        trusted: as for `FrameDecoder`.

    Raises:
        ProtocolError: there is none, or more than one.
    """

    def resolve(code: int, data: bytes) -> Bulk:
        if code != TOKEN.code:
            raise ProtocolError(f"a malformed frame: an extension of type {code}")
        return take_bulk()

    try:
        if not trusted and len(part) < _TRUSTED_BYTES:
            _verify_lengths(part)
        return _unpack_object(part, ext_hook=resolve)
    except _MALFORMED as error:
        raise ProtocolError(f"a malformed frame: {error or type(error).__name__}") from error


def _verify_lengths(part: bytes | bytearray | memoryview) -> None:
    """Walk over the object without making it: the end comes early if it is shorter than it says."""
    walker = msgpack.Unpacker(None, read_size=len(part) or 1, max_buffer_size=len(part) or 1)
    walker.feed(part)
    walker.skip()
