"""Bytes and bulks over a socket pair.

What lives here: how a descriptor gets into another process of this host: with a byte of the stream (SCM_RIGHTS).  A
frame's first bytes take the descriptors of its bulks along, one each, so that all of them are there when the frame is
whole.  What is under way when a process is killed belongs to nobody, and the kernel drops it.
"""

from __future__ import annotations

import errno
import os
import socket
import time
from collections import deque
from collections.abc import Sequence
from itertools import islice, takewhile
from struct import Struct
from typing import Any, Final

from hdphrs.wire.bulk import Bulk, LostBulk
from hdphrs.wire.files import beyond_standard
from hdphrs.wire.framing import TOKEN

RECEIVE_BYTES: Final = 1 << 16
"""Of one call.  For 128 KiB and more the C library may ask the kernel each time, which takes longer than the call."""

PARTS_MAX: Final = 64
"""Frames that wait and are sent with one call."""

CROWDED_S: Final = 1e-3
"""How long to wait when too many descriptors are on their way for the system's taste."""

_NUMBER: Final = Struct("i")
_ROOM: Final = socket.CMSG_SPACE(_NUMBER.size)
_CLOSE_ON_EXEC: Final = int(getattr(socket, "MSG_CMSG_CLOEXEC", 0))
_AT_ONCE: Final = _CLOSE_ON_EXEC | int(socket.MSG_DONTWAIT)
_TRUNCATED: Final = int(socket.MSG_CTRUNC)
"""As plain numbers, since the arithmetic of flags takes longer than the call."""


class Cargo:
    """The bulks that go beside a frame; `carry` is for `encode_frame`."""

    def __init__(self) -> None:
        self.bulks: list[Bulk] = []

    def carry(self, bulk: Bulk) -> object:
        """Take it along; one without a descriptor goes inside the frame."""
        if bulk.descriptor is None:
            return bytes(bulk)
        self.bulks.append(bulk)
        return TOKEN


def send_all(sock: socket.socket, data: bytes, bulks: Sequence[Bulk]) -> None:
    """Send all of it; blocks."""
    start = 0
    while start < len(bulks):
        try:
            _send_with(sock, data[start : start + 1], bulks[start])
            start += 1
        except OSError as error:
            if error.errno != errno.ETOOMANYREFS:
                raise
            time.sleep(CROWDED_S)
    sock.sendall(data[start:] if start else data)


class Backlog:
    """What a socket that does not block has not taken yet."""

    def __init__(self, sock: socket.socket) -> None:
        self._socket = sock
        self._parts: deque[tuple[memoryview, Bulk | None]] = deque()

    def __bool__(self) -> bool:
        return bool(self._parts)

    def __len__(self) -> int:
        return len(self._parts)

    def send(self, data: bytes, bulks: Sequence[Bulk]) -> None:
        """Send it, behind what waits already; what is not taken now waits.

        Raises:
            OSError: the other end is gone.
        """
        view = memoryview(data)
        self._parts += ((view[i : i + 1], bulk) for i, bulk in enumerate(bulks))
        self._parts.append((view[len(bulks) :], None))
        if len(self._parts) == len(bulks) + 1:
            self.send_more()

    def send_more(self) -> bool:
        """Send what waits, as far as the socket takes it.

        Returns:
            False if the system has too many descriptors on their way: then it says nothing when there is room again.

        Raises:
            OSError: the other end is gone.
        """
        try:
            while self._parts:
                part, bulk = self._parts[0]
                if bulk is None:
                    self._sent(self._socket.sendmsg(self._without_bulks()))
                else:
                    self._sent(_send_with(self._socket, part, bulk))
        except BlockingIOError:
            pass
        except OSError as error:
            if error.errno != errno.ETOOMANYREFS:
                raise
            return False
        return True

    def clear(self) -> None:
        """Nobody will take it any more."""
        self._parts.clear()

    def _without_bulks(self) -> list[memoryview]:
        first = islice(self._parts, PARTS_MAX)
        return [part for part, _ in takewhile(lambda waiting: waiting[1] is None, first)]

    def _sent(self, size: int) -> None:
        parts = self._parts
        while parts and size >= len(parts[0][0]):
            size -= len(parts.popleft()[0])
        if size:
            parts[0] = parts[0][0][size:], None


def receive(sock: socket.socket, bulks: deque[Bulk], *, block: bool = True) -> bytes:
    """Some bytes, none at the end; a bulk that came with them goes to `bulks`.

    Raises:
        BlockingIOError: there are none now, and the socket, or this call, does not block.
        ConnectionError: the other end is gone.
    """
    received = sock.recvmsg(RECEIVE_BYTES, _ROOM, _CLOSE_ON_EXEC if block else _AT_ONCE)
    data, ancillary, said, _ = received
    return unload(received, bulks) if ancillary or said & _TRUNCATED else data


def catch(sock: socket.socket, caught: deque[Any]) -> None:
    """Wait for some bytes, and keep what `unload` takes.  A signal handler that raises comes before this or after it:
    it is one call of C, in which bytes that have been read cannot get lost.

    Raises:
        ConnectionError: the other end is gone.
    """
    caught.extend(map(sock.recvmsg, (RECEIVE_BYTES,), (_ROOM,), (_CLOSE_ON_EXEC,)))


def send_at_once(sock: socket.socket, data: bytes) -> bool:
    """Send a few bytes, if there is room for them; whether they were sent.  As above, a signal handler comes before
    this or after it.

    Raises:
        OSError: the other end is gone.
    """
    sent: deque[int] = deque(maxlen=1)
    try:
        sent.extend(map(sock.send, (data,), (socket.MSG_DONTWAIT,)))
    except BlockingIOError:
        return False
    if sent[0] < len(data):  # the system has cut them, which no known one does
        sock.sendall(data[sent[0] :])
    return True


def unload(received: Any, bulks: deque[Bulk]) -> bytes:
    """The bytes of what `recvmsg` has returned; bulks go to `bulks`."""
    data: bytes
    data, ancillary, said, _ = received
    for _, _, number in ancillary:
        descriptor = beyond_standard(*_NUMBER.unpack(number))
        if not _CLOSE_ON_EXEC:
            os.set_inheritable(descriptor, False)
        bulks.append(Bulk.received(descriptor))
    if said & _TRUNCATED:
        bulks.append(LostBulk())
    return data


def _send_with(sock: socket.socket, data: bytes | memoryview, bulk: Bulk) -> int:
    assert bulk.descriptor is not None, "one without goes inside the frame"
    number = _NUMBER.pack(bulk.descriptor)
    return sock.sendmsg([data], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, number)])
