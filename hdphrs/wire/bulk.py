"""Large payloads: what they are made of, and where they lie while they travel.

What lives here: `Bulk`, which stands for a large payload wherever a small one is `bytes`; the layout of a payload; how
many descriptors that may take.  What does not: pickling (`pickling.py`), and how a bulk gets to another process
(`local.py`, `framing.py`, `hdphrs/transport/session.py`).

A bulk is anonymous memory (a memfd), sealed once it is written: nobody can change it any more.  The processes of a
host hand its descriptor to each other and copy nothing.  It has no name in any file system; when the last process
that holds it has closed or died, it is gone.  Whoever unpickles it gets a mapping of its own: what a task writes to its
arguments is seen by that task alone (decision 18).

Where there is no such memory, or too many descriptors are in use already, a bulk is a block of the heap, and copied.

Layout of what was pickled with buffers of its own, from `start` on (see `gather`):

    MARK, number of buffers, size of the pickle, sizes of the buffers
    the pickle
    the buffers, each at the next multiple of `ALIGNMENT` from the beginning of the payload

In a large payload `start` is such a multiple too, if a function comes before it.
"""

from __future__ import annotations

import errno
import fcntl
import mmap
import os
import resource
import struct
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from hdphrs.wire.files import beyond_standard

if TYPE_CHECKING:
    from hdphrs.protocol.tasks import Payload  # the launcher does without

BULK_BYTES_MIN: Final = 1 << 16
"""Smaller payloads are plain bytes: to copy them costs less than to hand descriptors about."""

ALIGNMENT: Final = 64
"""Of buffers: a cache line, and what vector instructions like."""

DESCRIPTORS_MAX: Final = resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 4
"""Bulks of this process that have descriptors, and as many again that are mapped; more are blocks of the heap."""

BULK_NAME: Final = "hdphrs-bulk"

MARK: Final = 0
"""The first byte of a payload with buffers; a pickle begins with 128."""

_HEAD: Final = struct.Struct(">BIQ")
_SIZE: Final = struct.Struct(">Q")
_PARTS_MAX: Final = 512
"""Parts that the system takes at once."""

Buffer = bytes | bytearray | memoryview

_open: set[int] = set()
"""The descriptors of this process's bulks."""
_mapped: set[int] = set()
"""By identity, its mappings: each has a descriptor, too."""


class Bulk:
    """A payload that is not copied on its way through a host; it never changes.

    It has a length, and `bytes()` makes bytes of it.
    """

    __slots__ = ("__weakref__", "_data", "_size", "descriptor")

    def __init__(self, size: int, descriptor: int | None, data: Buffer = b"") -> None:
        """
        Args:
            size: bytes of the payload.
            descriptor: of the memory that holds it; this object closes it.
            data: the payload, if there is no descriptor.
        """
        self._size = size
        self._data = data
        self.descriptor: int | None = descriptor
        if descriptor is not None:
            _open.add(descriptor)

    @classmethod
    def received(cls, descriptor: int) -> Bulk:
        """What another process of this host has sent the descriptor of."""
        bulk = cls(os.fstat(descriptor).st_size, descriptor)
        if len(_open) > DESCRIPTORS_MAX:
            return cls(len(bulk), None, bytes(bulk))
        return bulk

    def __len__(self) -> int:
        return self._size

    def __bytes__(self) -> bytes:
        return self.read(0, self._size)

    def __del__(self) -> None:
        if self.descriptor is not None:
            _open.discard(self.descriptor)
            with suppress(OSError):
                os.close(self.descriptor)

    def read(self, offset: int, size: int) -> bytes:
        """A part of it."""
        if self.descriptor is None:
            return bytes(self._data[offset : offset + size])
        part = os.pread(self.descriptor, size, offset)
        while len(part) < size and (more := os.pread(self.descriptor, size - len(part), offset + len(part))):
            part += more
        return part

    def view(self) -> memoryview:
        """All of it as memory that may be written to, and that nobody else sees."""
        if self.descriptor is None:
            return memoryview(bytearray(self._data))
        if len(_mapped) < DESCRIPTORS_MAX:
            with suppress(OSError):
                return memoryview(_Mapping(self.descriptor, self._size, access=mmap.ACCESS_COPY))
        copy = bytearray(self._size)
        with memoryview(copy) as rest:
            done = 0
            while done < self._size:
                done += os.preadv(self.descriptor, [rest[done:]], done)
        return memoryview(copy)


class LostBulk(Bulk):
    """One that this process could not take, since it has too many files open."""

    def __init__(self) -> None:
        super().__init__(BULK_BYTES_MIN, None)

    def read(self, offset: int, size: int) -> bytes:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    def view(self) -> memoryview:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))


class _Mapping(mmap.mmap):
    """Private: what is written here changes nothing elsewhere.  Ends when nothing refers into it."""

    def __new__(cls, *args: Any, **options: Any) -> _Mapping:
        mapping = super().__new__(cls, *args, **options)
        _mapped.add(id(mapping))
        return mapping

    def __del__(self) -> None:
        _mapped.discard(id(self))


class Incoming:
    """A bulk that arrives in pieces."""

    def __init__(self) -> None:
        self._size = 0
        self._data = bytearray()
        self._descriptor = _create()

    def __len__(self) -> int:
        return self._size

    def write(self, piece: Buffer) -> None:
        """The next piece."""
        if self._descriptor is not None:
            try:
                _write_all(self._descriptor, [piece])
            except OSError:  # there is no more memory of this kind; perhaps of the other
                self._data += Bulk(self._size, self._descriptor).read(0, self._size)
                self._descriptor = None
        if self._descriptor is None:
            self._data += piece
        self._size += len(piece)

    def finish(self) -> Bulk:
        """All of it."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            _seal(descriptor)
        return Bulk(self._size, descriptor, self._data)

    def __del__(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)


def gather(front: bytes, pickled: bytes, buffers: Sequence[memoryview] = ()) -> Payload:
    """A payload: what comes first, and then what was pickled, with its buffers.

    Returns:
        Bytes; or, where these would be `BULK_BYTES_MIN` and more, a `Bulk`, which everybody may take for bytes who does
        not look inside.
    """
    size = len(front) + len(pickled)
    if size < BULK_BYTES_MIN and not buffers:
        return front + pickled
    parts: list[Buffer] = [front, bytes(-len(front) % ALIGNMENT)]
    if buffers:
        sizes = b"".join([_SIZE.pack(len(buffer)) for buffer in buffers])
        parts.append(_HEAD.pack(MARK, len(buffers), len(pickled)) + sizes)
    parts.append(pickled)
    size = sum(map(len, parts))
    for buffer in buffers:
        gap = bytes(-size % ALIGNMENT)
        parts += [gap, buffer]
        size += len(gap) + len(buffer)
    return _bulk(parts, size)


def bulk_of(data: bytes) -> Payload:
    """The same payload; a `Bulk` if it is large."""
    return gather(b"", data)


def view_of(payload: Payload) -> memoryview:
    """A large payload as memory that may be written to, and that nobody else sees."""
    return payload.view() if isinstance(payload, Bulk) else memoryview(bytearray(bytes(payload)))


def aligned(offset: int) -> int:
    """Where in a large payload begins what follows these bytes."""
    return offset + -offset % ALIGNMENT


def scatter(payload: memoryview, start: int = 0) -> tuple[memoryview, list[memoryview]]:
    """The pickle that begins at `start`, and its buffers, as parts of the payload.

    Raises:
        ValueError: there are none.
    """
    if start >= len(payload) or payload[start] != MARK:
        return payload[start:], []
    try:
        _, count, pickled = _HEAD.unpack_from(payload, start)
        here = start + _HEAD.size + count * _SIZE.size
        sizes = [_SIZE.unpack_from(payload, start + _HEAD.size + i * _SIZE.size)[0] for i in range(count)]
    except struct.error as error:
        raise ValueError(f"a payload without its end: {error}") from error
    pickle = payload[here : here + pickled]
    here += pickled
    buffers = []
    for size in sizes:
        here = aligned(here)
        buffers.append(payload[here : here + size])
        here += size
    if here != len(payload):
        raise ValueError(f"a payload of {len(payload)} bytes instead of {here}")
    return pickle, buffers


def _bulk(parts: Sequence[Buffer], size: int) -> Bulk:
    descriptor = _create()
    if descriptor is not None:
        try:
            _write_all(descriptor, parts)
            _seal(descriptor)
        except OSError:
            os.close(descriptor)
        else:
            return Bulk(size, descriptor)
    return Bulk(size, None, b"".join(parts))


def _create() -> int | None:
    if len(_open) < DESCRIPTORS_MAX and hasattr(os, "memfd_create"):
        with suppress(OSError):
            return beyond_standard(os.memfd_create(BULK_NAME, os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING))
    return None


def _write_all(descriptor: int, parts: Sequence[Buffer]) -> None:
    """At the end; `OSError` if there is no room."""
    for first in range(0, len(parts), _PARTS_MAX):
        waiting = [memoryview(part) for part in parts[first : first + _PARTS_MAX]]
        while waiting:
            written = os.writev(descriptor, waiting)
            while waiting and written >= len(waiting[0]):
                written -= len(waiting.pop(0))
            if waiting:
                waiting[0] = waiting[0][written:]


def _seal(descriptor: int) -> None:
    if sys.platform == "linux":
        seals = fcntl.F_SEAL_WRITE | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_SEAL
        fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, seals)
