"""The transport interface without sockets, in the time of the running trio clock: for tests of whole nodes.

What lives here: a network whose delays, cuts and deaths a test decides.  With `trio.testing.MockClock` it
needs no real time.  It keeps the promises of `Transport` (once, in order, nothing lost by a cut that heals)
and idealizes the rest: heartbeats are continuous, so silence is noticed exactly `detect_after_s` after a cut,
a killed node after one latency.  Messages pass through the codec, so that what could not travel fails here
too.
"""

from __future__ import annotations

import heapq
import itertools
import math
from collections import defaultdict, deque
from collections.abc import Callable, Sequence
from functools import partial

import trio

from hdphrs.config import DETECT_AFTER_S
from hdphrs.errors import InternalError, StartError
from hdphrs.protocol.events import Arrived, Received, Suspected
from hdphrs.protocol.messages import Message
from hdphrs.protocol.tasks import ROOT, Member, NodeId
from hdphrs.transport.interface import Deliver, Fenced, Noted, Said, Told
from hdphrs.wire.codec import pack_message, unpack_message

ADDRESS = "memory"
"""The host in the addresses of `MemoryTransport`; the port is a serial number."""

_Pair = tuple[NodeId, NodeId]
"""From, to."""


class MemoryNetwork:
    """All nodes of one test.  Start it with `await nursery.start(network.serve)` before any transport.

    Args:
        latency_s: of every pair of which `set_latency` does not say otherwise.
    """

    def __init__(self, *, latency_s: float = 0.0, detect_after_s: float = DETECT_AFTER_S) -> None:
        self._latency_s = latency_s
        self._detect_after_s = detect_after_s
        self._nodes: dict[NodeId, MemoryTransport] = {}
        """All that have ever had an id."""
        self._by_port: dict[int, MemoryTransport] = {}
        self._ports = itertools.count(1)
        self._latencies_s: dict[_Pair, float] = {}
        self._cuts: dict[_Pair, int] = {}
        """Each with the serial number of the cut."""
        self._sent: dict[_Pair, deque[Message]] = defaultdict(deque)
        """Not delivered yet."""
        self._overdue: dict[_Pair, int] = defaultdict(int)
        """How many of these would have arrived already, had the way been open."""
        self._away: set[str] = set()
        """Hosts that do not reach the root, to join."""
        self._returns = trio.lowlevel.ParkingLot()
        self._queue: list[tuple[float, int, Callable[[], None]]] = []
        self._serials = itertools.count()
        self._changed = trio.Event()

    def transport(self, deliver: Deliver, *, node: NodeId | None = None) -> MemoryTransport:
        """The transport of one node; `node` is None for a newcomer."""
        transport = MemoryTransport(self, deliver, next(self._ports))
        self._by_port[transport.port] = transport
        if node is not None:
            self._name(transport, node)
        return transport

    def set_latency(self, a: NodeId, b: NodeId, latency_s: float) -> None:
        """Of what is sent between `a` and `b` from now on, either way; it still overtakes nothing."""
        self._latencies_s[a, b] = self._latencies_s[b, a] = latency_s

    def kill(self, node: NodeId) -> None:
        """`node` sends and receives nothing any more; those that can reach it notice after one latency, the
        others after the time of detection."""
        self._nodes[node]._dead.set()
        for other in self._nodes.values():
            self._notice_death(node, other)

    def cut(self, a: NodeId, b: NodeId) -> None:
        """Nothing passes between `a` and `b`, either way, until `heal`."""
        self.cut_one_way(a, b)
        self.cut_one_way(b, a)

    def cut_one_way(self, sender: NodeId, receiver: NodeId) -> None:
        """Nothing passes from `sender` to `receiver` until `heal`."""
        self._cuts[sender, receiver] = next(self._serials)
        self._expect_silence(sender, receiver)

    def heal(self, a: NodeId, b: NodeId) -> None:
        """End all cuts between `a` and `b`; what they held back arrives after one latency."""
        self._cuts.pop((a, b), None)
        self._cuts.pop((b, a), None)
        self._release(a, b)

    def shut_out(self, host: str) -> None:
        """No newcomer of this host reaches the root, until `let_in`."""
        self._away.add(host)

    def let_in(self, host: str) -> None:
        """End of `shut_out`."""
        self._away.discard(host)
        self._returns.unpark_all()

    async def serve(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Deliver what is due; runs until cancelled."""
        task_status.started()
        while True:
            while self._queue and self._queue[0][0] <= trio.current_time():
                heapq.heappop(self._queue)[2]()
            self._changed = trio.Event()
            with trio.move_on_at(self._queue[0][0] if self._queue else math.inf):
                await self._changed.wait()

    # For the transports.

    def _name(self, transport: MemoryTransport, node: NodeId) -> None:
        transport._node = node
        self._nodes[node] = transport

    def _post(self, sender: NodeId, receiver: NodeId, message: Message) -> None:
        self._sent[sender, receiver].append(unpack_message(pack_message(message)))
        self._schedule(self._latency(sender, receiver), partial(self._arrive, sender, receiver))

    def _arrive(self, sender: NodeId, receiver: NodeId) -> None:
        """One more message of this pair is due: the oldest one, for they are in order."""
        queue = self._sent.get((sender, receiver))
        if not queue:
            return  # fenced or dead meanwhile
        if (sender, receiver) not in self._cuts and self._acquainted(sender, receiver):
            self._nodes[receiver]._receive(Received(sender, queue.popleft()))
            self._nodes[sender]._progress.unpark_all()
        else:
            self._overdue[sender, receiver] += 1

    def _acquainted(self, a: NodeId, b: NodeId) -> bool:
        if not {a, b} <= self._nodes.keys():
            return False
        return b in self._nodes[a]._known and a in self._nodes[b]._known

    def _release(self, a: NodeId, b: NodeId) -> None:
        """Something that was in the way between `a` and `b` has gone."""
        if self._acquainted(a, b):
            self._nodes[a]._suspected.discard(b)
            self._nodes[b]._suspected.discard(a)
        for sender, receiver in ((a, b), (b, a)):
            for _ in range(self._overdue.pop((sender, receiver), 0)):
                self._schedule(self._latency(sender, receiver), partial(self._arrive, sender, receiver))
            self._knock(sender, receiver)

    def _knock(self, dialer: NodeId, listener: NodeId) -> None:
        """If `listener` has fenced `dialer`, it says so when that one dials: the higher id does."""
        if dialer > listener:
            self._schedule(2 * self._latency(dialer, listener), partial(self._answer_knock, dialer, listener))

    def _answer_knock(self, dialer: NodeId, listener: NodeId) -> None:
        if not {dialer, listener} <= self._nodes.keys() or self._is_cut(dialer, listener):
            return
        if not self._nodes[listener]._dead.is_set() and dialer in self._nodes[listener]._fenced:
            self._nodes[dialer]._on_fenced(listener)

    def _is_cut(self, a: NodeId, b: NodeId) -> bool:
        """At least one way, which makes a connection impossible."""
        return (a, b) in self._cuts or (b, a) in self._cuts

    def _expect_silence(self, sender: NodeId, receiver: NodeId) -> None:
        cut = self._cuts.get((sender, receiver))
        if cut is not None:
            self._schedule(self._detect_after_s, partial(self._notice_silence, sender, receiver, cut))

    def _notice_silence(self, sender: NodeId, receiver: NodeId, cut: int) -> None:
        if self._cuts.get((sender, receiver)) == cut and receiver in self._nodes:
            self._nodes[receiver]._suspect(sender)

    def _notice_death(self, node: NodeId, other: MemoryTransport) -> None:
        """The port of `node` refuses; unless `other` cannot reach it and hears nothing instead."""
        delay_s = self._detect_after_s if self._is_cut(node, other.node) else self._latency(node, other.node)
        self._schedule(delay_s, partial(other._suspect, node))

    def _latency(self, a: NodeId, b: NodeId) -> float:
        return self._latencies_s.get((a, b), self._latency_s)

    def _schedule(self, delay_s: float, action: Callable[[], None]) -> None:
        heapq.heappush(self._queue, (trio.current_time() + delay_s, next(self._serials), action))
        self._changed.set()


class MemoryTransport:
    """See `Transport`.  Made by `MemoryNetwork.transport`."""

    is_crowded: bool = False

    def __init__(self, network: MemoryNetwork, deliver: Deliver, port: int) -> None:
        self.port = port
        self._network = network
        self._deliver = deliver
        self._node: NodeId | None = None
        self._known: set[NodeId] = set()
        """Those with which it keeps a connection."""
        self._suspected: set[NodeId] = set()
        """Of these, those that the driver has been told about."""
        self._fenced: set[NodeId] = set()
        self._told_fenced = False
        self._newcomers: dict[int, MemoryTransport] = {}
        self._admitted = trio.Event()
        self._progress = trio.lowlevel.ParkingLot()
        self._dead = trio.Event()

    @property
    def node(self) -> NodeId:
        """The id of this node, once it has one."""
        if self._node is None:
            raise InternalError("a newcomer has no id before it has joined")
        return self._node

    async def serve(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """See `Transport.serve`.  Ends when the node is killed, too."""
        task_status.started()
        await self._dead.wait()

    async def aclose(self) -> None:
        """See `Transport.aclose`."""
        if self._node is not None and not self._dead.is_set():
            self._network.kill(self._node)
        self._dead.set()
        await trio.lowlevel.checkpoint()

    def send(self, to: NodeId, message: Message) -> None:
        """See `Transport.send`."""
        if to == self.node:
            raise InternalError(f"a node sends nothing to itself: {message}")
        if to not in self._fenced and not self._dead.is_set():
            self._network._post(self.node, to, message)

    def note(self, to: NodeId, seconds: Sequence[float]) -> None:
        """See `Transport.note`; here it takes no time."""
        if to in self._known and to not in self._fenced and not self._dead.is_set():
            self._network._nodes[to]._deliver(Noted(self.node, tuple(seconds)))

    def tell(self, to: NodeId, topic: bytes, rank: float, find: bytes) -> None:
        """See `Transport.tell`; here it takes no time."""
        if to in self._known and to not in self._fenced and not self._dead.is_set():
            self._network._nodes[to]._deliver(Told(self.node, topic, rank, find))

    def say(self, to: NodeId, bundle: bytes) -> None:
        """See `Transport.say`; here it takes no time."""
        if to in self._known and to not in self._fenced and not self._dead.is_set():
            self._network._nodes[to]._deliver(Said(self.node, 0, bundle))

    def admit(self, ticket: int, member: Member) -> None:
        """See `Transport.admit`."""
        newcomer = self._newcomers.pop(ticket)
        self._network._name(newcomer, member.node)
        newcomer._known.add(self.node)
        self._network._expect_silence(self.node, member.node)
        newcomer._admitted.set()
        self.connect(member)

    def connect(self, member: Member) -> None:
        """See `Transport.connect`."""
        if member.node != self.node and member.node not in self._fenced | self._known:
            self._known.add(member.node)
            self._network._expect_silence(member.node, self.node)
            self._network._release(member.node, self.node)
            peer = self._network._nodes.get(member.node)
            if peer is not None and peer._dead.is_set():
                self._network._notice_death(member.node, self)

    def fence(self, node: NodeId) -> None:
        """See `Transport.fence`."""
        self._fenced.add(node)
        self._known.discard(node)
        for pair in ((self.node, node), (node, self.node)):
            self._network._sent.pop(pair, None)
        self._network._knock(node, self.node)
        self._progress.unpark_all()

    def hold(self) -> None:
        """See `Transport.hold`; each message is on its way by itself here."""

    def release(self) -> None:
        """See `Transport.release`."""

    def retire(self) -> None:
        """See `Transport.retire`: connections in memory don't break."""

    async def join(
        self,
        root_addresses: Sequence[tuple[str, int]],
        host: str,
        slots: int,
        pid: int,
        deadline_s: float,
        pause_s_max: float = math.inf,
    ) -> None:
        """See `Transport.join`; it is noticed at once that the way to the root is open."""
        with trio.move_on_after(deadline_s):
            while host in self._network._away:
                await self._network._returns.park()
            for _, port in root_addresses:
                root = self._network._by_port.get(port)
                if root is not None and root._node == ROOT and not root._dead.is_set():
                    root._newcomers[self.port] = self
                    arrived = Arrived(self.port, host, slots, (ADDRESS, self.port), pid)
                    self._network._schedule(self._network._latency_s, partial(root._deliver, arrived))
                    break
            await self._admitted.wait()
            return
        raise StartError(f"this node could not join the root within {deadline_s:g} seconds")

    async def flush(self, to: NodeId, deadline_s: float) -> bool:
        """See `Transport.flush`."""
        sent = self._network._sent
        with trio.move_on_after(deadline_s):
            while sent.get((self.node, to)):
                await self._progress.park()
        return to in self._known and not sent.get((self.node, to))

    def _receive(self, event: Received) -> None:
        if not self._dead.is_set():
            self._suspected.discard(event.sender)
            self._deliver(event)

    def _suspect(self, node: NodeId) -> None:
        if node in self._known - self._suspected and not self._dead.is_set():
            self._suspected.add(node)
            self._deliver(Suspected(node))

    def _on_fenced(self, by: NodeId) -> None:
        if by in self._known and not self._told_fenced and not self._dead.is_set():
            self._told_fenced = True
            self._deliver(Fenced(by))
