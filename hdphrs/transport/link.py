"""One established connection: moves the frames of a session until it breaks.

What lives here: the reading and the writing task.  A link ends in `Lost` (an accident: the session goes on
over the next one) or in a `ProtocolError` (the peer speaks nonsense: there will be no next one).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import Any

import trio

from hdphrs.errors import ProtocolError
from hdphrs.protocol.messages import Message
from hdphrs.protocol.tasks import NodeId
from hdphrs.transport.interface import Watch
from hdphrs.transport.session import Session
from hdphrs.transport.streams import FrameStream, Lost
from hdphrs.wire.codec import unpack_message


class Link:
    """A connection over which a session runs; at most one at a time for each session.

    Args:
        on_message: takes each new message, at once.
        hear_out: what the peer says of the death of another node is taken in after this.
        watch: has what it is given called whenever something is to be read, see `interface.Watch`.
        unwritten: where the link is while something waits for the task that writes.
        on_bytes: called, with nothing, whenever anything at all has arrived and been taken in.
    """

    def __init__(
        self,
        stream: FrameStream,
        session: Session,
        on_message: Callable[[Message], None],
        on_bytes: Callable[[], None],
        hear_out: Callable[[NodeId], Awaitable[None]],
        watch: Watch,
        unwritten: set[Link],
    ) -> None:
        self._stream = stream
        self._session = session
        self._on_message = on_message
        self._on_bytes = on_bytes
        self._hear_out = hear_out
        self._watch = watch
        self._unwritten = unwritten
        self._accused: tuple[NodeId, list[Any]] | None = None
        """Who is to be heard out, and the frames from the accusation on."""
        self._scope = trio.CancelScope()
        self._closed = False
        self._something_to_write = trio.Event()
        self._something_to_write.set()
        self._rest = b""
        """Of the last batch, sealed as it is, what is not written."""
        self._writing = False
        """The task that writes is at it."""
        self._ending: Lost | ProtocolError | None = None
        self._now: Callable[[], float] = trio.lowlevel.current_clock().current_time
        self.wrote_at: float = self._now()
        """When something was last handed to the kernel: heartbeats are for silent connections."""

    def wake(self) -> None:
        """The session has something to write."""
        if not self._closed:
            self._unwritten.add(self)
        self._something_to_write.set()

    def write(self) -> None:
        """The same; a batch that the kernel takes at once leaves now, without a change of tasks."""
        if self._writing or self._closed or self._rest or self._something_to_write.is_set():
            self.wake()
            return
        batch = self._session.batch()
        if not batch:
            return
        sealed = self._stream.seal(batch)
        written = self._stream.write_now(sealed)
        self._rest = sealed[written:]
        self.wrote_at = self._now()
        if self._rest or self._session.has_to_write:
            self.wake()

    @property
    def has_unread(self) -> bool:
        """Something has arrived that is not taken in, or the end of the connection has."""
        return not self._closed and self._stream.has_unread

    def close(self) -> None:
        """End `run`.  From now on the link leaves its session alone, so that another may take it over."""
        self._closed = True
        if self._accused is not None:
            self._session.unfinished.clear()  # some of what came was payload of the frames that are dropped here
        self._stream.let_go()
        self._scope.cancel()

    async def run(self) -> Lost | ProtocolError:
        """Move frames until the connection ends; returns how it ended."""
        try:
            self.wake()
            with self._scope:
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(self._write)
                    nursery.start_soon(self._read)
        finally:
            self._closed = True
            self._unwritten.discard(self)
            self._stream.close()
        return self._ending or Lost("closed by this node")

    async def _read(self) -> None:
        try:
            while not self._closed:
                if self._accused is not None:
                    accused, rest = self._accused
                    await self._hear_out(accused)
                    self._accused = None
                    if not self._closed:
                        self._take_in(rest, heard_out=True)
                elif (descriptor := self._stream.descriptor) is not None:
                    await self._watch(descriptor, self._read_now)
                else:
                    frames, count = await self._stream.read()
                    if not self._closed:
                        self._take_in(frames, count)
        except (Lost, ProtocolError) as ending:
            self._end(ending)

    def _end(self, ending: Lost | ProtocolError) -> None:
        if not self._closed:  # what comes after that is of no account: it may begin in the midst of a payload
            self._ending = ending
        self.close()

    def _read_now(self) -> bool:
        """Take in what has arrived; whether to go on in this way."""
        if self._closed:
            return False
        try:
            return self._take_in(*self._stream.read_now())
        except (Lost, ProtocolError) as ending:
            self._end(ending)
            return False

    def _take_in(self, frames: Iterable[Any], count: int = 0, *, heard_out: bool = False) -> bool:
        """Of `count` bytes that have arrived, the frames up to an accusation, unless the accused of the first of them
        has been heard out; whether all."""
        session = self._session
        frames = iter(frames)
        for frame in frames:
            accused = None if heard_out else session.accused(frame)
            if accused is not None:
                self._accused = accused, [frame, *frames]
                break
            heard_out = False
            packed = session.on_frame(frame)
            if packed is not None:
                self._on_message(unpack_message(packed))
                if self._closed:
                    session.unfinished.clear()  # as in `close`
                    return False  # the message made the driver fence this very peer
        session.on_bytes(count, amid=self._stream.amid)
        self._on_bytes()
        if session.must_write:
            self.write()
        return self._accused is None

    async def _write(self) -> None:
        try:
            while True:
                await self._something_to_write.wait()
                if self._closed:
                    return
                batch, self._rest = self._rest or self._stream.seal(self._session.batch()), b""
                if batch:
                    self._writing = True
                    await self._stream.write(batch)
                    self._writing = False
                    self.wrote_at = self._now()
                if not self._session.has_to_write:
                    self._something_to_write = trio.Event()
                    self._unwritten.discard(self)
        except Lost:
            pass  # the reader will see it too, after it has taken in what arrived before the break
