"""What travels over a port of the loopback after the handshake: sealed records, each of which can only be the next.

    number of bytes, four bytes, big-endian; the bytes; tag, `TAG_BYTES` bytes

The tag is a keyed BLAKE2b over the number of the record in its direction, the number of bytes, and the bytes; the key
is of this direction of this connection (`Handshake.keys`).  So what is changed, left out, repeated, put in another
order, sent back, or of another connection is noticed, and the frames in it are never decoded.

What lives here: bytes to records and back, at either end.  What is in a record means nothing here: frames may begin and
end anywhere in it.  A connection that ends between two records, or within one, is a connection that has ended, for the
caller to notice; what was not whole is not given out.
"""

from __future__ import annotations

import hashlib
import hmac
from typing import Any, Final

from hdphrs.errors import ProtocolError

HEAD_BYTES: Final = 4
TAG_BYTES: Final = 16

RECORD_BYTES_MAX: Final = 1 << 18
"""Of what is in a record: as much as a batch of a session mostly has.  A reader never keeps more than one record."""

FIRST_RECORD_BYTES_MAX: Final = 1 << 10

_COUNT_BYTES: Final = 8


class _Tags:
    """The tags of one direction, one after the other."""

    def __init__(self, key: bytes) -> None:
        self._keyed: Any = hashlib.blake2b(key=key, digest_size=TAG_BYTES)
        """Copied for each: to make one takes longer than to hash most records."""
        self._count = 0

    def begin(self, head: bytes) -> Any:
        """A hash of what comes before the bytes of the next record; they follow, then the tag is its digest."""
        hashed = self._keyed.copy()
        hashed.update(self._count.to_bytes(_COUNT_BYTES, "big") + head)
        self._count += 1
        return hashed

    def next(self, head: bytes, body: bytes) -> bytes:
        """The tag of the next record, which is here as a whole."""
        hashed = self._keyed.copy()
        hashed.update(self._count.to_bytes(_COUNT_BYTES, "big") + head)
        hashed.update(body)
        self._count += 1
        tag: bytes = hashed.digest()
        return tag


class Sealer:
    """Makes the records of one direction.

    The first ones are short, and each that is full allows for one twice as long: of what a connection has carried when
    it breaks, at least about half has been of use, however soon that is.
    """

    def __init__(self, key: bytes) -> None:
        self._tags = _Tags(key)
        self._bytes_max = FIRST_RECORD_BYTES_MAX
        """Of the next record."""

    def seal(self, data: bytes) -> bytes:
        """Records of these bytes, which must be written as a whole and in the order in which they were sealed; nothing
        for nothing."""
        size = len(data)
        if 0 < size <= self._bytes_max:
            head = size.to_bytes(HEAD_BYTES, "big")
            return b"".join((head, data, self._tags.next(head, data)))
        records = []
        start = 0
        while start < size:
            body = data[start : start + self._bytes_max]
            start += len(body)
            head = len(body).to_bytes(HEAD_BYTES, "big")
            records += [head, body, self._tags.next(head, body)]
            if len(body) == self._bytes_max < RECORD_BYTES_MAX:
                self._bytes_max *= 2
        return b"".join(records)


class Opener:
    """Reads the records of one direction, in whatever pieces they arrive."""

    def __init__(self, key: bytes) -> None:
        self._tags = _Tags(key)
        self._head = b""
        self._body = bytearray()
        self._left = 0
        """Bytes that are still to come of the body."""
        self._tag = b""
        self._hashed: Any = None
        """Of the body, what has come."""
        self._fault: str | None = None

    @property
    def amid(self) -> bool:
        """A record has come in part."""
        return bool(self._head)

    def open(self, data: bytes) -> list[bytes | bytearray]:
        """What was in the records that are complete with `data`.

        Raises:
            ProtocolError: not what the peer has sealed next; so will every later call.
        """
        if self._fault is not None:
            raise ProtocolError(self._fault)
        size = len(data) - HEAD_BYTES - TAG_BYTES
        if not self._head and 0 < size <= RECORD_BYTES_MAX:  # one whole record, as nearly all are
            head = data[:HEAD_BYTES]
            if int.from_bytes(head, "big") == size:
                body = data[HEAD_BYTES:-TAG_BYTES]
                self._compare(self._tags.next(head, body), data[-TAG_BYTES:])
                return [body]
        return self._open(data)

    def _open(self, data: bytes) -> list[bytes | bytearray]:
        opened: list[bytes | bytearray] = []
        rest = memoryview(data)
        while rest:
            if len(self._head) < HEAD_BYTES:
                missing = HEAD_BYTES - len(self._head)
                self._head += bytes(rest[:missing])
                if len(self._head) == HEAD_BYTES:
                    self._begin()
            elif self._left:
                missing = self._left
                part = rest[:missing]
                self._hashed.update(part)
                self._body += part
                self._left -= len(part)
            else:
                missing = TAG_BYTES - len(self._tag)
                self._tag += bytes(rest[:missing])
                if len(self._tag) == TAG_BYTES:
                    opened.append(self._finish())
            rest = rest[missing:]
        return opened

    def _begin(self) -> None:
        size = int.from_bytes(self._head, "big")
        if not 0 < size <= RECORD_BYTES_MAX:  # before anything of it is kept
            raise self._violation(f"a sealed record of {size:,} bytes, the limit is {RECORD_BYTES_MAX:,}")
        self._left = size
        self._hashed = self._tags.begin(self._head)

    def _finish(self) -> bytearray:
        self._compare(self._hashed.digest(), self._tag)
        body, self._body = self._body, bytearray()
        self._head = self._tag = b""
        self._hashed = None
        return body

    def _compare(self, right: bytes, tag: bytes) -> None:
        if not hmac.compare_digest(right, tag):
            raise self._violation("what has arrived is not what it has sent: something between has changed it")

    def _violation(self, what: str) -> ProtocolError:
        self._fault = what
        return ProtocolError(what)
