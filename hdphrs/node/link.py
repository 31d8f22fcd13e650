"""The node's end of a local link: frames to and from one scheduler, or the program.

What lives here: non-blocking sending with a backlog, and receiving.  Messages posted between two flushes leave in one
frame.
"""

from __future__ import annotations

import socket
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

import trio

from hdphrs.config import FRAME_BYTES_MAX
from hdphrs.errors import ProtocolError
from hdphrs.wire.framing import FrameDecoder
from hdphrs.wire.local import encode_frames
from hdphrs.wire.passing import CROWDED_S, Backlog, receive

DRAINED_BYTES_MAX: Final = 2 * FRAME_BYTES_MAX
"""Of a link whose process has ended: a copy of that, which a task has made, may go on writing for ever."""


class NodeLink:
    """One end of a socket pair, driven by trio."""

    def __init__(self, sock: socket.socket, on_sent: Callable[[], None] = lambda: None) -> None:
        """`on_sent` is called whenever something has been written."""
        sock.setblocking(False)
        self._socket = sock
        self._decoder = FrameDecoder(FRAME_BYTES_MAX, trusted=True)
        self._posted: list[list[Any]] = []
        self._backlog = Backlog(sock)
        self._backlogged = trio.Event()
        self._broken = False
        self.is_spoilt: bool = False
        """Whether something has come that is no message: nothing is received any more."""
        self._on_sent = on_sent

    def post(self, message: list[Any]) -> None:
        """Queue a message for the next flush."""
        self._posted.append(message)

    @property
    def backlog(self) -> int:
        """How many frames the socket has not taken yet."""
        return len(self._backlog)

    @property
    def unfinished_bytes(self) -> int:
        """What has come of a message whose rest has not."""
        return self._decoder.unfinished_bytes

    def flush(self) -> None:
        """Send what has been posted; what the socket does not take now, `pump` sends.  Never blocks."""
        if not self._posted:
            return
        posted, self._posted = self._posted, []
        if self._broken:
            return
        frame, bulks = encode_frames(posted)
        sent = 0
        try:
            if not bulks and not self._backlog:
                try:
                    sent = self._socket.send(frame)
                except BlockingIOError:
                    pass
                else:
                    self._on_sent()
                    if sent == len(frame):
                        return
            self._backlog.send(frame[sent:], bulks)
            self._on_sent()
        except OSError:
            self._break()
        if self._backlog:
            self._backlogged.set()

    async def pump(self) -> None:
        """Send the backlog whenever there is one; runs as long as the link."""
        while not self._broken:
            await self._backlogged.wait()
            while self._backlog:
                await trio.lowlevel.wait_writable(self._socket)
                try:
                    if not self._backlog.send_more():
                        await trio.sleep(CROWDED_S)
                except OSError:
                    self._break()
                self._on_sent()
            self._backlogged = trio.Event()

    def _break(self) -> None:
        self._broken = True
        self._backlog.clear()

    @property
    def descriptor(self) -> int:
        """Readable when something has come."""
        return self._socket.fileno()

    def receive(self) -> list[list[Any]] | None:
        """What has come, if that is a message or more; None when the other end is gone, or what comes is spoilt."""
        if self.is_spoilt:
            return None
        try:
            data = receive(self._socket, self._decoder.bulks)
        except BlockingIOError:
            return []
        except OSError:
            return None
        try:
            return self._decoder.messages(data) if data else None
        except ProtocolError:
            self.is_spoilt = True
            return None

    def drain(self) -> list[list[Any]]:
        """All that has arrived by now, when the other end is gone."""
        messages: list[list[Any]] = []
        if self.is_spoilt:
            return messages
        left_bytes = DRAINED_BYTES_MAX
        with suppress(OSError, ProtocolError):
            while left_bytes > 0 and (data := receive(self._socket, self._decoder.bulks)):
                left_bytes -= len(data)
                messages += self._decoder.messages(data)
        return messages

    def close(self) -> None:
        """Close the socket.  Nobody may be waiting on it."""
        self._break()
        self._posted.clear()
        self._decoder = FrameDecoder(FRAME_BYTES_MAX, trusted=True)
        self._socket.close()
