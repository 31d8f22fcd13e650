"""Nodes over TCP, with TLS where the run has it, or over sockets of one host: the transport of a node process.

What lives here: the table of peers, joining and admitting, and the clock that drives heartbeats and the
detector.
"""

from __future__ import annotations

import itertools
import logging
import random
import socket
from collections.abc import Sequence
from typing import Final

import trio

from hdphrs.config import DETECT_AFTER_S
from hdphrs.errors import InternalError, ProtocolError, StartError, UsageError
from hdphrs.protocol.events import Arrived, Suspected
from hdphrs.protocol.messages import Message
from hdphrs.protocol.tasks import ROOT, Member, NodeId
from hdphrs.transport.detector import Detector
from hdphrs.transport.greeting import (
    NOTHING,
    Admitted,
    Greeting,
    IsFenced,
    Join,
    NotMe,
    Resume,
    Resumed,
    Wait,
    pack_greeting,
    unpack_answer,
)
from hdphrs.transport.interface import Deliver, Fenced, Watch, watch
from hdphrs.transport.listener import Listener, is_loopback
from hdphrs.transport.peer import RETRY_MAX_S, RETRY_MIN_S, Peer, Surroundings
from hdphrs.transport.session import Load
from hdphrs.transport.streams import HANDSHAKE_S_MAX, FrameStream, Lost, dial
from hdphrs.transport.tls import TlsContexts
from hdphrs.wire.sockets import address_of

log: logging.Logger = logging.getLogger("hdphrs.transport")

HEARTBEATS_IN_DETECTION: Final = 4
"""A connection with nothing to say is used so many times in the time that makes its peer suspect."""


HEAR_OUT_TURNS: Final = 64
"""So many turns of the event loop an accusation waits at most while its node is heard out: for 8 MB at least, where two
turns are a read, and for 0.13 s where links are heard in turns of 2 ms."""


class _Ticket:
    """A newcomer that waits to be admitted."""

    def __init__(self) -> None:
        self.peer: Peer | None = None
        self.admitted = trio.Event()


class TcpTransport:
    """See `Transport`.

    Args:
        sock: already listening; it becomes this transport's.  None: a run of one node, which listens nowhere.
        secret: known to all nodes of this run and to nobody else.
        deliver: takes the events; see `interface.Deliver`.
        node: the id of this node; None at a newcomer, who learns it in `join`.
        tls: needed as soon as the socket is reachable from elsewhere.
        watch: reads from connections without TLS.

    Raises:
        UsageError: the socket is reachable from elsewhere and there is no TLS.
    """

    def __init__(
        self,
        sock: socket.socket | None,
        secret: bytes,
        deliver: Deliver,
        *,
        node: NodeId | None = None,
        detect_after_s: float = DETECT_AFTER_S,
        tls: TlsContexts | None = None,
        watch: Watch = watch,
    ) -> None:
        if sock is not None and tls is None and not is_loopback(sock):
            raise UsageError(f"a node listens beyond loopback ({sock.getsockname()[0]}) only with mutual TLS")
        self._sock = sock
        self._me = node
        self._heartbeat_s = detect_after_s / HEARTBEATS_IN_DETECTION
        self._detector = Detector(detect_after_s, late_s_max=self._heartbeat_s)
        self._load = Load()
        self._around = Surroundings(
            secret, tls, deliver, self._detector, detect_after_s, self._hear_out, watch, set(), self._load
        )
        self._peers: dict[NodeId, Peer] = {}
        self._fenced: set[NodeId] = set()
        self._holds = 0
        self._unwritten: dict[Peer, None] = {}
        """Those for whom there is something, since `hold`."""
        self._told_fenced = False
        self._tickets: dict[int, _Ticket] = {}
        self._ticket_numbers = itertools.count(1)
        self._identified = trio.Event()
        if node is not None:
            self._identified.set()
        self._nursery: trio.Nursery | None = None
        self._stopped = trio.Event()

    @property
    def is_crowded(self) -> bool:
        """See `Transport.is_crowded`."""
        return self._load.is_full

    @property
    def port(self) -> int:
        """Where this node listens."""
        if self._sock is None:
            raise InternalError("this node listens nowhere")
        _, port = address_of(self._sock)
        return port

    async def serve(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """See `Transport.serve`."""
        try:
            async with trio.open_nursery() as self._nursery:
                if self._sock is not None:
                    listener = Listener(self._sock, self._around.secret, self._around.tls, self._welcome)
                    self._nursery.start_soon(listener.run)
                self._nursery.start_soon(self._keep_time)
                task_status.started()
        finally:
            if self._sock is not None:
                self._sock.close()
            self._stopped.set()

    async def aclose(self) -> None:
        """See `Transport.aclose`."""
        if self._nursery is not None:
            self._nursery.cancel_scope.cancel()
            await self._stopped.wait()
        elif self._sock is not None:
            self._sock.close()

    def send(self, to: NodeId, message: Message) -> None:
        """See `Transport.send`."""
        if to == self._me:
            raise InternalError(f"a node sends nothing to itself: {message}")
        if to not in self._fenced:
            peer = self._peer(to)
            peer.send(message)
            self._write_soon(peer)

    def hold(self) -> None:
        """See `Transport.hold`."""
        self._holds += 1

    def release(self) -> None:
        """See `Transport.release`."""
        self._holds -= 1
        if self._unwritten and not self._holds:
            for peer in self._unwritten:
                peer.write()
            self._unwritten.clear()

    def _write_soon(self, peer: Peer) -> None:
        if self._holds:
            self._unwritten[peer] = None
        else:
            peer.wake()

    def has_time(self) -> bool:
        """Whether nothing waits for trio to have its turn: all that peers say is heard by `watch`, and all that is for
        them is written."""
        return not self._around.unwritten and (self._around.tls is None or not self._peers)

    def note(self, to: NodeId, seconds: Sequence[float]) -> None:
        """See `Transport.note`."""
        peer = self._peers.get(to)
        if peer is not None:
            peer.note(seconds)
            self._write_soon(peer)

    def tell(self, to: NodeId, topic: bytes, rank: float, find: bytes) -> None:
        """See `Transport.tell`."""
        peer = self._peers.get(to)
        if peer is not None:
            peer.tell(topic, rank, find)

    def say(self, to: NodeId, bundle: bytes) -> None:
        """See `Transport.say`."""
        peer = self._peers.get(to)
        if peer is not None:
            peer.say(bundle)

    def admit(self, ticket: int, member: Member) -> None:
        """See `Transport.admit`."""
        peer = self._peer(member.node)
        peer.expect(member.address)
        waiting = self._tickets.pop(ticket)
        waiting.peer = peer
        waiting.admitted.set()
        self._running.start_soon(peer.keep_probed)

    def connect(self, member: Member) -> None:
        """See `Transport.connect`."""
        if self._me is None:
            raise InternalError("connect comes after join")
        if member.node == self._me or member.node in self._fenced:
            return
        peer = self._peer(member.node)
        if peer.expected.is_set():
            return
        peer.expect(member.address)
        if self._me > member.node:
            self._running.start_soon(peer.keep_dialed, self._me)
        else:
            self._running.start_soon(peer.keep_probed)

    def fence(self, node: NodeId) -> None:
        """See `Transport.fence`."""
        self._fenced.add(node)
        peer = self._peers.pop(node, None)
        if peer is not None:
            peer.fence()

    def retire(self) -> None:
        """See `Transport.retire`."""
        for peer in self._peers.values():
            peer.retired = peer.node != ROOT

    async def flush(self, to: NodeId, deadline_s: float) -> bool:
        """See `Transport.flush`."""
        peer = self._peers.get(to)
        if peer is None:
            return False
        with trio.move_on_after(deadline_s):
            while not peer.session.settled and not peer.closed:
                peer.ask()
                await peer.progress()
        return peer.session.settled

    async def join(
        self,
        root_addresses: Sequence[tuple[str, int]],
        host: str,
        slots: int,
        pid: int,
        deadline_s: float,
        pause_s_max: float = RETRY_MAX_S,
    ) -> None:
        """See `Transport.join`."""
        greeting = Join(host, slots, pid, self.port)
        problems: dict[str, str] = {}
        with trio.move_on_after(deadline_s):
            pause_s = RETRY_MIN_S
            while True:
                hopeless = 0
                for address in root_addresses:
                    try:
                        return await self._join_at(address, greeting)
                    except Lost as error:
                        problems["{}:{}".format(*address)] = str(error)
                    except ProtocolError as refusal:
                        problems["{}:{}".format(*address)] = str(refusal)
                        hopeless += 1
                if hopeless == len(root_addresses):
                    raise StartError(f"this node cannot join the root: {_all(problems)}")
                await trio.sleep(pause_s * (1 + random.random()) / 2)
                pause_s = min(2 * pause_s, pause_s_max)
        tried = _all(problems) or "no answer"
        within_s = round(deadline_s) if deadline_s >= 10.0 else round(deadline_s, 1)
        raise StartError(f"this node could not join the root within {within_s:g} seconds: {tried}")

    async def _join_at(self, address: tuple[str, int], greeting: Join) -> None:
        stream = await dial(address, self._around.secret, self._around.tls)
        try:
            with trio.fail_after(max(HANDSHAKE_S_MAX, self._around.detect_after_s)):
                await stream.write_frame(pack_greeting(greeting))
                answer = unpack_answer(await stream.read_greeting())
            if not isinstance(answer, Admitted):
                raise ProtocolError("not an answer to a newcomer")
        except trio.TooSlowError as error:
            stream.close()
            raise Lost("no answer to our greeting") from error
        except BaseException:
            stream.close()
            raise
        self._me = answer.node
        self._identified.set()
        root = self._peer(ROOT)
        root.expect(address)
        root.session.unfinished = stream.unfinished  # some may have come with the answer
        self._running.start_soon(root.keep_dialed, self._me, stream)

    async def _welcome(self, stream: FrameStream, host: str, greeting: Greeting) -> None:
        """The listener's half of the greeting, and the connection that follows."""
        try:
            match greeting:
                case Join():
                    await self._admit(stream, host, greeting)
                case Resume():
                    await self._resume(stream, greeting)
        except Lost:
            pass  # before the session began: the dialer tries again, if it has not done so already
        except ProtocolError as error:
            log.warning("%s: %s; connection closed", host, error)
        finally:
            stream.close()

    async def _admit(self, stream: FrameStream, host: str, join: Join) -> None:
        if self._me != ROOT:
            raise ProtocolError("a newcomer knocks, and this node is not the root")
        number = next(self._ticket_numbers)
        ticket = self._tickets[number] = _Ticket()
        self._around.deliver(Arrived(number, join.host, join.slots, (host, join.port), join.pid))
        await ticket.admitted.wait()
        peer = ticket.peer
        assert peer is not None
        stream.go_on_with(peer.session.unfinished)
        try:
            await stream.write_frame(pack_greeting(Admitted(peer.node)))
        except Lost:
            peer.suspect()  # it will never know who it is
            raise
        await peer.run_link(stream, NOTHING)

    async def _resume(self, stream: FrameStream, resume: Resume) -> None:
        while (answer := self._judge(resume)) == Wait():
            await stream.write_frame(pack_greeting(answer))
            with trio.move_on_after(self._heartbeat_s):
                await self._identified.wait()
                await self._peer(resume.node).expected.wait()
        if answer is not None:
            await stream.write_frame(pack_greeting(answer))
            return
        peer = self._peer(resume.node)
        peer.attempt = resume.attempt
        peer.drop_link()
        stream.go_on_with(peer.session.unfinished)
        await stream.write_frame(pack_greeting(Resumed(peer.session.progress)))
        if peer.attempt == resume.attempt:
            await peer.run_link(stream, resume.progress)

    def _judge(self, resume: Resume) -> IsFenced | NotMe | Wait | None:
        """The answer to a member that dials; None: it is welcome."""
        if resume.node in self._fenced:
            return IsFenced()
        if self._me is None:
            return Wait()
        if resume.to != self._me:
            return NotMe()
        if resume.node <= self._me:
            raise ProtocolError(f"node {resume.node} dials, and node {self._me} is to dial it")
        peer = self._peer(resume.node)
        if resume.attempt <= peer.attempt or peer.closed:
            raise Lost("outdated")
        return None if peer.expected.is_set() else Wait()

    async def _keep_time(self) -> None:
        """Heartbeats, and the detector's timer.

        The clock ticks twice in a heartbeat interval, and each tick serves the connections that have been
        quiet since the last one: so all heartbeats of a tick share one timer.  The root and each other node watch
        each other; of the others, whoever has sent something that is not acknowledged watches whom it was for
        (decision 27).
        """
        tick_s = self._heartbeat_s / 2
        next_tick = trio.current_time() + tick_s
        while True:
            due = min(next_tick, self._detector.deadline())
            await trio.sleep_until(due)
            now = trio.current_time()
            for node in self._detector.check(now, due):
                self._peers[node].drop_link()  # a silent connection is as good as none
                self._around.deliver(Suspected(node))
            if now >= next_tick:
                for peer in self._peers.values():
                    watched = ROOT in (self._me, peer.node)
                    peer.beat(quiet_since=now - tick_s, watched=watched)
                    if not watched and peer.session.settled:
                        self._detector.excuse(peer.node, now)
                next_tick = now + tick_s

    async def _hear_out(self, node: NodeId) -> None:
        """A node that is said to be dead is fenced, and what it has said last would be lost if that were not read yet:
        results that would be computed again, for nothing."""
        peer = self._peers.get(node)
        for _ in range(HEAR_OUT_TURNS):
            if peer is None or peer.link is None or not peer.link.has_unread:
                return
            await trio.lowlevel.checkpoint()

    def _peer(self, node: NodeId) -> Peer:
        peer = self._peers.get(node)
        if peer is None:
            peer = self._peers[node] = Peer(node, self._around, self._on_fenced)
        return peer

    def _on_fenced(self, event: Fenced) -> None:
        if not self._told_fenced:
            self._told_fenced = True
            self._around.deliver(event)

    @property
    def _running(self) -> trio.Nursery:
        if self._nursery is None:
            raise InternalError("the transport does not serve yet")
        return self._nursery


def _all(problems: dict[str, str]) -> str:
    """In one line, what has happened at each address."""
    return "; ".join(f"{where}: {problem}" for where, problem in problems.items())
