"""What the tests of the transport share: one run of trio with a deadline, an inbox, a proxy that misbehaves."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any, TypeVar
from unittest import mock

import trio
from trio.testing import MockClock

from hdphrs.protocol.events import Arrived, Received
from hdphrs.protocol.messages import Message, NoWork
from hdphrs.protocol.tasks import ROOT, FishId, Member, NodeId
from hdphrs.transport.interface import TransportEvent
from hdphrs.transport.listener import listening_socket
from hdphrs.transport.tcp import TcpTransport
from hdphrs.transport.tls import TlsContexts

T = TypeVar("T")
E = TypeVar("E")

LOOPBACK = "127.0.0.1"
SECRET = b"the secret of the run"
REAL_DEADLINE_S = 20.0
DETECT_AFTER_S = 4.0
HEARTBEAT_S = DETECT_AFTER_S / 4


def run(main: Callable[[], Awaitable[T]], clock: MockClock | None = None) -> T:
    """Run `main`, at most `REAL_DEADLINE_S` seconds of real time whatever the clock says."""
    timer: threading.Timer | None = None

    async def watched() -> T:
        nonlocal timer
        token = trio.lowlevel.current_trio_token()
        with trio.CancelScope() as scope:
            timer = threading.Timer(REAL_DEADLINE_S, lambda: token.run_sync_soon(scope.cancel))
            timer.start()
            return await main()
        raise AssertionError(f"not finished within {REAL_DEADLINE_S} seconds")

    try:
        return trio.run(watched, clock=clock)
    finally:
        if timer is not None:
            timer.cancel()


class Inbox:
    """Where a transport delivers, as a driver's inbox."""

    def __init__(self) -> None:
        self.events: deque[TransportEvent] = deque()
        self._arrived = trio.Event()

    def __call__(self, event: TransportEvent) -> None:
        self.events.append(event)
        self._arrived.set()

    async def next(self) -> TransportEvent:
        while not self.events:
            self._arrived = trio.Event()
            await self._arrived.wait()
        return self.events.popleft()

    async def expect(self, kind: type[E]) -> E:
        event = await self.next()
        assert isinstance(event, kind), event
        return event

    async def message(self) -> Message:
        return (await self.expect(Received)).message


def numbered(number: int) -> Message:
    return NoWork(FishId(number), 0.0)


async def settle() -> None:
    """Until nothing moves any more, on the loopback either."""
    await trio.testing.wait_all_tasks_blocked(0.002)


async def pass_time(clock: MockClock, seconds: float) -> None:
    """Let time pass as on a machine that keeps up with it."""
    step_s = HEARTBEAT_S / 4
    for _ in range(round(seconds / step_s)):
        clock.jump(step_s)
        await settle()


class Node:
    """A transport with its inbox."""

    def __init__(self, transport: TcpTransport, inbox: Inbox, address: tuple[str, int]) -> None:
        self.transport = transport
        self.inbox = inbox
        self.address = address
        self.port = address[1]
        self.member = Member(ROOT, "localhost", 1, address, 1)


class Cluster:
    """Nodes over loopback, or at another host, each in its own place of this process."""

    def __init__(
        self, nursery: trio.Nursery, tls: Callable[[], TlsContexts] | None = None, host: str = LOOPBACK
    ) -> None:
        self.nursery = nursery
        self.tls = tls
        self.host = host
        self.nodes: dict[NodeId, Node] = {}

    async def start(self, node: NodeId | None = None, secret: bytes = SECRET) -> Node:
        inbox = Inbox()
        transport = TcpTransport(
            listening_socket(self.host),
            secret,
            inbox,
            node=node,
            detect_after_s=DETECT_AFTER_S,
            tls=self.tls() if self.tls else None,
        )
        await self.nursery.start(transport.serve)
        started = Node(transport, inbox, (self.host, transport.port))
        if node is not None:
            self.nodes[node] = started
        return started

    async def join(self, through: int | None = None) -> Node:
        """A newcomer joins the root, on request by way of the proxy at port `through`."""
        root = self.nodes[ROOT]
        new = await self.start()
        where = [(self.host, through or root.port)]
        async with trio.open_nursery() as nursery:
            nursery.start_soon(new.transport.join, where, "localhost", 2, 77, 10.0)
            arrived = await root.inbox.expect(Arrived)
            node = NodeId(len(self.nodes))
            new.member = Member(node, arrived.host, arrived.slots, arrived.address, arrived.pid)
            root.transport.admit(arrived.ticket, new.member)
        self.nodes[node] = new
        return new

    async def pair(self, through: int | None = None) -> tuple[Node, Node]:
        """The root and one other, connected."""
        root = await self.start(ROOT)
        return root, await self.join(through)

    async def close(self) -> None:
        for node in self.nodes.values():
            await node.transport.aclose()


async def exchange(a: Node, b: Node, count: int) -> None:
    """Send `count` messages each way, and see them arrive once and in order."""
    node_a, node_b = a.member.node, b.member.node

    async def send() -> None:
        for number in range(count):
            a.transport.send(node_b, numbered(number))
            b.transport.send(node_a, numbered(number))
            if number % 10 == 0:
                await trio.lowlevel.checkpoint()

    async def receive(node: Node, sender: NodeId) -> None:
        for number in range(count):
            assert await node.inbox.next() == Received(sender, numbered(number))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(send)
        nursery.start_soon(receive, a, node_b)
        nursery.start_soon(receive, b, node_a)


@asynccontextmanager
async def cluster(tls: Callable[[], TlsContexts] | None = None, *, host: str = LOOPBACK) -> AsyncIterator[Cluster]:
    with _bad_wires():
        async with trio.open_nursery() as nursery:
            yield Cluster(nursery, tls, host)
            nursery.cancel_scope.cancel()


_wired: dict[tuple[int, int], tuple[int, int]] = {}
"""By the ports of a connection from a wire to a listener, those of the connection to the wire."""


@contextmanager
def _bad_wires() -> Iterator[None]:
    """Let listeners see the addresses that they would see if a `Proxy` were a wire and no relay, which is refused."""
    sockets: Any = trio._socket._SocketType
    peer_of, name_of = sockets.getpeername, sockets.getsockname

    def seen(sock: Any) -> tuple[int, int]:
        ports = peer_of(sock)[1], name_of(sock)[1]
        return _wired.get(ports, ports)

    def getpeername(sock: Any) -> Any:
        if sock.family != trio.socket.AF_INET:
            return peer_of(sock)
        return (peer_of(sock)[0], seen(sock)[0])

    def getsockname(sock: Any) -> Any:
        if sock.family != trio.socket.AF_INET:
            return name_of(sock)
        try:
            return (name_of(sock)[0], seen(sock)[1])
        except OSError:  # it listens, or has lost its peer
            return name_of(sock)

    with (
        mock.patch.object(sockets, "getpeername", getpeername),
        mock.patch.object(sockets, "getsockname", getsockname),
        mock.patch.dict(_wired, clear=True),
    ):
        yield


class Proxy:
    """Stands between two nodes, and misbehaves on request.

    Args:
        relays: it is seen for what it is, another process; otherwise it passes for the wire between the two.
    """

    def __init__(self, target: int, *, relays: bool = False) -> None:
        self.target = target
        self.relays = relays
        self.port = 0
        self.connections = 0
        self.deaf = trio.Event()
        """Set: nothing is passed on any more; connections stay open."""
        self.break_after_bytes: Callable[[], int] | None = None
        """How much a new connection passes on before it breaks."""
        self._scopes: list[trio.CancelScope] = []

    async def serve(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
        self.port = listeners[0].socket.getsockname()[1]
        task_status.started()
        await trio.serve_listeners(self._handle, listeners)

    async def reach(self) -> trio.SocketStream:
        """The other end."""
        return await trio.open_tcp_stream("127.0.0.1", self.target)

    def overhear(self, data: bytes) -> None:
        """For subclasses."""

    def bend(self, data: bytes) -> bytes:
        """For subclasses: what is passed on."""
        return data

    def break_all(self) -> None:
        for scope in self._scopes:
            scope.cancel()

    async def _handle(self, near: trio.SocketStream) -> None:
        self.connections += 1
        budget = [self.break_after_bytes() if self.break_after_bytes else 1 << 60]
        try:
            far = await self.reach()
        except OSError:
            near.socket.close()
            return
        ports = (0, 0)
        if not self.relays:
            ports = far.socket.getsockname()[1], self.target
            _wired[ports] = near.socket.getpeername()[1], self.port
        async with trio.open_nursery() as nursery:
            self._scopes.append(nursery.cancel_scope)
            try:
                nursery.start_soon(self._pump, near, far, budget, nursery.cancel_scope)
                await self._pump(far, near, budget, nursery.cancel_scope)
            finally:
                _wired.pop(ports, None)
                near.socket.close()
                far.socket.close()

    async def _pump(
        self, source: trio.SocketStream, sink: trio.SocketStream, budget: list[int], scope: trio.CancelScope
    ) -> None:
        try:
            while data := await source.receive_some(4096):
                self.overhear(bytes(data))
                if self.deaf.is_set():
                    continue
                await sink.send_all(self.bend(bytes(data[: budget[0]])))
                budget[0] -= len(data)
                if budget[0] <= 0:
                    break
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            pass
        scope.cancel()
