"""What this node keeps for each other node: the session, the connection, and the task that restores it.

What lives here: redialing at the side with the higher id, probing at the other.  A broken connection between
live nodes is restored at once.  A killed process is told from it by its port, which refuses: then the peer is
suspect within milliseconds.  A host that answers nothing is left to the detector.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

import trio

from hdphrs.errors import ProtocolError
from hdphrs.protocol.events import Received, Suspected
from hdphrs.protocol.messages import Message
from hdphrs.protocol.tasks import NodeId
from hdphrs.records import dataclass
from hdphrs.transport.detector import Detector
from hdphrs.transport.greeting import (
    NOTHING,
    IsFenced,
    NotMe,
    Progress,
    Resume,
    Resumed,
    Wait,
    pack_greeting,
    unpack_answer,
)
from hdphrs.transport.interface import Deliver, Fenced, Lightened, Noted, Said, Told, Watch
from hdphrs.transport.link import Link
from hdphrs.transport.session import Load, Session
from hdphrs.transport.streams import FrameStream, Lost, connect, dial
from hdphrs.transport.tls import TlsContexts
from hdphrs.wire.codec import pack_message

log: logging.Logger = logging.getLogger("hdphrs.transport")

RETRY_MIN_S: Final = 0.005
RETRY_MAX_S: Final = 1.0
"""How long to rest between attempts to reach a peer; doubles from min to max."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What the parts of one transport share."""

    secret: bytes
    tls: TlsContexts | None
    deliver: Deliver
    detector: Detector
    detect_after_s: float
    hear_out: Callable[[NodeId], Awaitable[None]]
    """Take in what has arrived from a node before the end of its connection."""
    watch: Watch
    unwritten: set[Link]
    """Those whose task that writes has something to do."""
    load: Load
    """What waits for all peers together."""


class Peer:
    """Another node, from the first word of it until it is fenced.

    Args:
        fenced_by: called when the peer tells us that we are dead.
    """

    def __init__(self, node: NodeId, around: Surroundings, fenced_by: Callable[[Fenced], None]) -> None:
        self.node = node
        self.session: Session = Session(self._on_note, self._on_told, self._on_said, around.load)
        self.address: tuple[str, int] | None = None
        self.expected: trio.Event = trio.Event()
        """Set when the driver has told us about it, with `connect` or `admit`; or has fenced it."""
        self.attempt: int = 0
        """The latest that it has made to dial us, or we to dial it."""
        self.closed: bool = False
        """Fenced, or caught speaking nonsense: no connection any more."""
        self.retired = False
        """This node ends: it dials the peer no more."""
        self.link: Link | None = None
        self._waiting: trio.Event | None = None
        """Of `flush`, for something to happen."""
        self._around = around
        self._fenced_by = fenced_by
        self._keeper = trio.CancelScope()
        self._now: Callable[[], float] = trio.lowlevel.current_clock().current_time
        self._lost = trio.Event()

    def expect(self, address: tuple[str, int]) -> None:
        """From now on it is a member, with a port at `address`, and watched."""
        self.address = address
        self.expected.set()
        self.hear()

    def send(self, message: Message) -> None:
        """Queue a message; see `Transport.send`.  `wake` or `write` is to follow."""
        self.session.push(pack_message(message))

    def note(self, seconds: Sequence[float]) -> None:
        """See `Transport.note`.  `wake` or `write` is to follow."""
        self.session.note(seconds)

    def tell(self, topic: bytes, rank: float, find: bytes) -> None:
        """See `Transport.tell`."""
        self.session.tell(topic, rank, find)
        self.wake()

    def say(self, bundle: bytes) -> None:
        """See `Transport.say`."""
        self.session.say(bundle)
        self.wake()

    def beat(self, quiet_since: float, *, watched: bool) -> None:
        """Send a heartbeat, if nothing has been written since; to those that do not watch each other, only if the
        peer waits for an acknowledgement (decision 27)."""
        if self.link is not None and self.link.wrote_at <= quiet_since and (watched or self.session.has_news):
            self.session.beat()
            self.link.write()

    def ask(self) -> None:
        """Ask for an acknowledgement of everything sent so far."""
        self.session.ask()
        self.wake()

    def wake(self) -> None:
        """There is something to write."""
        if self.link is not None:
            self.link.wake()

    def write(self) -> None:
        """The same, and it is to be written at once if that is possible."""
        if self.link is not None:
            self.link.write()

    def fence(self) -> None:
        """End everything; nothing is heard of it any more."""
        self.closed = True
        self.expected.set()
        self._around.detector.forget(self.node)
        self._keeper.cancel()
        self.drop_link()
        self.session.end()
        self._proceed()

    def drop_link(self) -> None:
        """Close the connection, if there is one; the session keeps what was not acknowledged."""
        if self.link is not None:
            self.link.close()

    def hear(self) -> None:
        """Something of it has arrived; which is nothing to us, if it was on its way when this peer was fenced."""
        if self.closed:
            return
        self._around.detector.heard(self.node, self._now())
        if self._waiting is not None:
            self._proceed()

    def _on_bytes(self) -> None:
        """Something of it has been taken in, acknowledgements perhaps."""
        self.hear()
        load = self._around.load
        if load.has_lightened:
            load.has_lightened = False
            self._around.deliver(Lightened())

    async def progress(self) -> None:
        """Wait until something of it has arrived, or it is fenced."""
        if self._waiting is None:
            self._waiting = trio.Event()
        await self._waiting.wait()

    def _proceed(self) -> None:
        if self._waiting is not None:
            self._waiting.set()
            self._waiting = None

    def suspect(self) -> None:
        """There is evidence against it: tell the driver, unless it has been told."""
        if self._around.detector.accuse(self.node):
            self._around.deliver(Suspected(self.node))

    async def run_link(self, stream: FrameStream, progress: Progress) -> bool:
        """Let the session go on over `stream`, at whose other end so much has arrived, until it breaks.

        Returns:
            Whether there may be another one: the break was an accident.
        """
        self.drop_link()
        if self.closed:
            stream.close()
            return False
        try:
            self.session.resume(progress)
        except ProtocolError as error:
            stream.close()
            self._bar(error)
            return False
        around = self._around
        link = self.link = Link(
            stream, self.session, self._on_message, self._on_bytes, around.hear_out, around.watch, around.unwritten
        )
        self.hear()
        try:
            ending = await link.run()
        finally:
            if self.link is link:
                self.link = None
                self._lost.set()
        if isinstance(ending, ProtocolError):
            self._bar(ending)
        return not self.closed

    async def keep_dialed(self, me: NodeId, stream: FrameStream | None = None) -> None:
        """At the side with the higher id: keep a connection, beginning with `stream` if there is one, until
        fenced."""
        with self._keeper:
            pause_s = RETRY_MIN_S
            if stream is not None and not await self.run_link(stream, NOTHING):
                return
            while not self.retired:
                try:
                    resumed = await self._resume(me)
                except Lost as error:
                    log.log(logging.WARNING if error.exhausted else logging.DEBUG, "node %d: %s", self.node, error)
                    if error.refused:
                        self.suspect()
                except ProtocolError as refusal:
                    log.warning("node %d at %s:%d: %s", self.node, *self._where, refusal)
                else:
                    if resumed is None or not await self.run_link(*resumed):
                        return
                    pause_s = RETRY_MIN_S
                    continue
                await trio.sleep(pause_s)
                pause_s = min(2 * pause_s, RETRY_MAX_S)

    async def keep_probed(self) -> None:
        """At the side with the lower id: whenever the connection is lost, see whether the peer's port still
        accepts, until the peer has dialed again or is fenced.

        Once does not do: a process that is being killed may lose its connections before its listening socket.
        """
        with self._keeper:
            while True:
                await self._lost.wait()
                self._lost = trio.Event()
                pause_s = RETRY_MIN_S
                while self.link is None:
                    try:
                        with trio.move_on_after(self._around.detect_after_s):
                            raw = await connect(self._where)
                            raw.socket.close()
                    except Lost as error:
                        if error.refused and self.link is None:
                            self.suspect()
                    await trio.sleep(pause_s)
                    pause_s = min(2 * pause_s, RETRY_MAX_S)

    @property
    def _where(self) -> tuple[str, int]:
        assert self.address is not None
        return self.address

    def _on_message(self, message: Message) -> None:
        self._around.deliver(Received(self.node, message))

    def _on_note(self, seconds: tuple[float, ...]) -> None:
        self._around.deliver(Noted(self.node, seconds))

    def _on_told(self, topic: bytes, rank: float, find: bytes) -> None:
        self._around.deliver(Told(self.node, topic, rank, find))

    def _on_said(self, lost: int, bundle: bytes) -> None:
        self._around.deliver(Said(self.node, lost, bundle))

    def _bar(self, error: ProtocolError) -> None:
        """It has lost count or speaks nonsense, and would do so again: have no more of it."""
        log.warning("node %d at %s:%d: %s; connection closed for good", self.node, *self._where, error)
        self.closed = True
        self.suspect()

    async def _resume(self, me: NodeId) -> tuple[FrameStream, Progress] | None:
        """Dial, and find out how far the peer has received; None: it says that we are dead."""
        self.attempt += 1
        stream = await dial(self._where, self._around.secret, self._around.tls)
        try:
            stream.go_on_with(self.session.unfinished)
            greeting = Resume(me, self.node, self.attempt, self.session.progress)
            await stream.write_frame(pack_greeting(greeting))
            while True:
                with trio.fail_after(self._around.detect_after_s):
                    answer = unpack_answer(await stream.read_greeting())
                match answer:
                    case Resumed(progress):
                        return stream, progress
                    case Wait():
                        self.hear()
                    case IsFenced():
                        self._fenced_by(Fenced(self.node))
                        stream.close()
                        return None
                    case NotMe():
                        raise Lost("its port belongs to another process now", refused=True)
                    case _:
                        raise ProtocolError("not an answer to a member")
        except trio.TooSlowError as error:
            stream.close()
            raise Lost("no answer to our greeting") from error
        except BaseException:
            stream.close()
            raise
