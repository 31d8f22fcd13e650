"""The network between the nodes: delays, cuts, and the promises that the transport keeps all the same.

What lives here: one `Link` for each direction of a pair.  Order is kept for each link, but that what a steal consists
of overtakes what is large (decision 32).  What a cut holds back, or a stopped receiver, or one that has not been told
of the sender yet, arrives when that is over; so nothing is lost between two that live and are not fenced
(`transport/session.py`).  A death loses what was still to be sent, a fence everything.  Who notices is decided in
`silence.py`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from random import Random
from typing import TYPE_CHECKING

from hdphrs.audit.follow import Follower
from hdphrs.audit.scan import Flight
from hdphrs.protocol import messages as msg
from hdphrs.protocol.messages import Message
from hdphrs.protocol.pieces import size_of
from hdphrs.protocol.tasks import NodeId
from hdphrs.sim.draw import Draw
from hdphrs.sim.world import FOLD, MASK, World

if TYPE_CHECKING:
    from hdphrs.sim.host import Host

REPEATED = (
    *(msg.Fish, msg.NoWork, msg.Auth, msg.Denied, msg.Obsolete, msg.Result, msg.Purge, msg.Suspect),
    *(msg.Keep, msg.Recall, msg.Recalled, msg.Leaving, msg.Noted),
)
"""What the core takes a second time at any later moment.  The transport delivers everything once; these may come again
because each names the one thing that it answers, or tells what stays true.  (Not DEADNODE, which is said once to each:
the core asserts it.  SCHEDULE and PUSH are the copies themselves.)"""

REPEATED_AT_ONCE = (msg.Req, msg.Ack)
"""What it takes a second time only before anything else of that peer: later the record may have moved on, and back."""

REPEAT_WITHIN_NS = 50_000_000

SLOW_MAX = 30
"""How many times slower the slow links are, at most."""

LARGE_NS_MAX = 50_000_000
"""How much longer a large payload is on its way than a small one, at most."""

_KINDS: dict[type, int] = {kind: number for number, kind in enumerate(msg.Message.__args__, 1)}


class Link:
    """What is on its way from one node to another."""

    __slots__ = (
        *("acquainted", "arrives_ns", "closed", "cuts", "large", "latency_ns", "overdue", "queue", "quick_ns"),
        *("receiver", "sender"),
    )

    def __init__(self, sender: Host, receiver: Host, latency_ns: int) -> None:
        self.sender: Host = sender
        self.receiver: Host = receiver
        self.latency_ns: int = latency_ns
        self.queue: deque[Message] = deque()
        """Next first; somewhere in the future so many arrivals are due, less `overdue`."""
        self.large: deque[tuple[Message, int]] = deque()
        """Of these, those with large payloads, and when they arrive: what is quick goes ahead of the first, if it
        arrives before that."""
        self.quick_ns: int = 0
        """When the youngest of those that are quick arrives."""
        self.overdue: int = 0
        self.arrives_ns: int = 0
        """When the last one arrives: nothing else overtakes it."""
        self.cuts: int = 0
        self.closed: bool = False
        """Fenced at either end."""
        self.acquainted: bool = False
        """Both ends have been told of each other."""


class Network:
    """All links."""

    def __init__(self, world: World, drawn: Draw, follower: Follower, chance: Random) -> None:
        self.hosts: dict[NodeId, Host] = {}
        """All that have ever had an id."""
        self.sent: dict[type, int] = dict.fromkeys(_KINDS, 0)
        self.ambush: dict[type, Callable[[Link, int], None]] = {}
        """By kind of message: told of the link, and of the time until one arrives there."""
        self.on_held_up: Callable[[Link], None] = lambda link: None
        """Told of each message that a cut keeps from arriving."""
        self._world = world
        self._drawn = drawn
        self._follower = follower
        self._chance = chance
        self._noise = chance.getrandbits(31)

    def link(self, sender: Host, receiver: Host) -> Link:
        """The one direction of a pair."""
        link = sender.out.get(receiver.node)
        if link is None:
            latency_us = self._drawn.latency_us
            if self._chance.randrange(100) < self._drawn.slow_pct:
                latency_us *= self._chance.randint(3, SLOW_MAX)
            latency_ns = self._chance.randrange(latency_us * 500, latency_us * 2000)
            link = sender.out[receiver.node] = Link(sender, receiver, latency_ns)
        return link

    def send(self, sender: Host, to: NodeId, message: Message) -> None:
        """Effect `Send`."""
        world = self._world
        kind = type(message)
        self.sent[kind] += 1
        world.fold = (world.fold * FOLD + to * 64 + _KINDS[kind]) & MASK
        receiver = self.hosts[to]
        link = sender.out.get(to) or self.link(sender, receiver)
        if link.closed or not receiver.up:
            self._follower.lost(sender.node, to, message)
            return
        delay_ns = link.latency_ns
        if self._drawn.jitter_pct:
            self._noise = noise = (self._noise * 1103515245 + 12345) & 0x7FFFFFFF
            delay_ns += delay_ns * self._drawn.jitter_pct * (noise >> 16 & 0xFF) // 25600
        if self._drawn.byte_ns:
            delay_ns += self._drawn.byte_ns * _payload_bytes(message)
            link.arrives_ns += self._drawn.byte_ns * _payload_bytes(message)  # one after the other
        arrives_ns = self._enqueue(link, message, world.now_ns + delay_ns)
        world.post(arrives_ns - world.now_ns, self._arrive, link)
        if kind in self.ambush:
            self.ambush[kind](link, arrives_ns - world.now_ns)

    def _enqueue(self, link: Link, message: Message, arrives_ns: int) -> int:
        """One more is on its way, and would by itself arrive at this time; when it does."""
        large = link.large
        if self._is_large(message):
            arrives_ns = link.arrives_ns = max(arrives_ns + self._chance.randrange(LARGE_NS_MAX), link.arrives_ns)
            large.append((message, arrives_ns))
        elif isinstance(message, msg.QUICK) and not (isinstance(message, msg.Schedule) and _has_code(large)):
            arrives_ns = max(arrives_ns, link.quick_ns)
            if large and arrives_ns < large[0][1]:
                link.quick_ns = arrives_ns
                link.queue.insert(_index(link.queue, large[0][0]), message)
                self._world.tally("overtakings")
                return arrives_ns
            arrives_ns = link.quick_ns = link.arrives_ns = max(arrives_ns, link.arrives_ns)
        else:
            arrives_ns = link.arrives_ns = max(arrives_ns, link.arrives_ns)
        link.queue.append(message)
        return arrives_ns

    def _is_large(self, message: Message) -> bool:
        drawn = self._drawn
        return bool(
            drawn.large_pct and isinstance(message, msg.BULKY) and self._chance.randrange(100) < drawn.large_pct
        )

    def _arrive(self, link: Link) -> None:
        """One more message of this link is due: the oldest one."""
        if not link.queue:
            return  # lost with a death, or behind a fence
        receiver = link.receiver
        if link.cuts or not link.acquainted or receiver.stalled:
            link.overdue += 1
            if link.cuts:
                self.on_held_up(link)
            return
        message = link.queue.popleft()
        if link.large and message is link.large[0][0]:
            link.large.popleft()
        receiver.receive(link.sender.node, message)
        if self._drawn.repeats_pct:
            self._repeat(link, message)

    def _repeat(self, link: Link, message: Message) -> None:
        if self._chance.randrange(100) >= self._drawn.repeats_pct:
            return
        if isinstance(message, REPEATED_AT_ONCE):
            self._again((link, message))
        elif isinstance(message, REPEATED):
            self._world.post(self._chance.randrange(REPEAT_WITHIN_NS), self._again, (link, message))

    def _again(self, repeated: tuple[Link, Message]) -> None:
        link, message = repeated
        receiver = link.receiver
        if receiver.up and not receiver.stalled and not link.closed:
            self._world.tally("repeats")
            receiver.receive(link.sender.node, message)

    def until_heard_ns(self, sender: Host, receiver: Host) -> int:
        """How long until it has got all that this host has sent to it."""
        return max(0, self.link(sender, receiver).arrives_ns - self._world.now_ns) + 1

    # ---- acquaintance, fences and deaths ---------------------------------------------------------------------

    def acquaint(self, host: Host, node: NodeId) -> None:
        """`host` has been told of a member, and keeps a connection with it from now on."""
        if node == host.node or node in host.known or node in host.fenced:
            return
        host.known[node] = None
        peer = self.hosts[node]
        if host.node in peer.known:
            for link in (self.link(host, peer), self.link(peer, host)):
                link.acquainted = True
                self.release(link)

    def fence(self, host: Host, node: NodeId) -> None:
        """`host` has closed its connection with one that is dead for ever; messages between the two are lost."""
        peer = self.hosts[node]
        for link in (self.link(host, peer), self.link(peer, host)):
            link.closed = True
            self._drop(link)
        host.fenced[node] = None
        host.known.pop(node, None)

    def die(self, host: Host, *, in_the_middle: bool) -> None:
        """A process is gone: what it has written still arrives, unless its host is gone `in_the_middle`."""
        for link in host.out.values():
            if link.overdue or link.cuts:
                self._drop(link)
            while in_the_middle and link.queue and self._chance.randrange(4):
                lost = link.queue.pop()
                if link.large and lost is link.large[-1][0]:
                    link.large.pop()
                self._lose(link, lost)
        for peer in self.hosts.values():
            back = peer.out.get(host.node)
            if back is not None:
                self._drop(back)

    def release(self, link: Link) -> None:
        """Something that was in the way is gone: what it held back arrives."""
        overdue, link.overdue = link.overdue, 0
        for _ in range(overdue):
            self._world.post(link.latency_ns, self._arrive, link)

    def _drop(self, link: Link) -> None:
        while link.queue:
            self._lose(link, link.queue.popleft())
        link.large.clear()
        link.overdue = 0

    def _lose(self, link: Link, message: Message) -> None:
        self._world.tally("messages lost")
        self._follower.lost(link.sender.node, link.receiver.node, message)

    # ---- cuts ------------------------------------------------------------------------------------------------

    def cut(self, sender: Host, receiver: Host) -> None:
        """Nothing passes this way until it is mended; cuts add up."""
        self.link(sender, receiver).cuts += 1

    def mend(self, sender: Host, receiver: Host) -> None:
        """One cut less."""
        link = self.link(sender, receiver)
        link.cuts -= 1
        if link.cuts:
            return
        if not sender.up:
            self._drop(link)  # nobody is left to send it again
        self.release(link)

    def is_cut(self, one: Host, other: Host) -> bool:
        """At least one way, which makes a new connection impossible."""
        return bool(self.link(one, other).cuts or self.link(other, one).cuts)

    def holds_up(self, one: Host, other: Host) -> bool:
        """Whether something between these two waits for a cut to be mended."""
        links = (one.out.get(other.node), other.out.get(one.node))
        return any(link is not None and link.cuts and link.queue for link in links)

    def flights(self) -> list[Flight]:
        """All that is on its way and may arrive."""
        return [
            (link.sender.node, link.receiver.node, list(link.queue))
            for host in self.hosts.values()
            for link in host.out.values()
            if link.queue and not link.closed
        ]

    def release_all(self, receiver: Host) -> None:
        """A stopped process goes on and reads what has come."""
        for peer in list(self.hosts.values()):
            link = peer.out.get(receiver.node)
            if link is not None:
                self.release(link)


def _payload_bytes(message: Message) -> int:
    match message:
        case msg.Schedule(_, sparks, _):
            return sum(len(spark.task.payload) for spark in sparks)
        case msg.Push(spark):
            return len(spark.task.payload)
        case msg.Keep(pieces) | msg.Recalled(_, pieces):
            return sum(size_of(piece) for piece in pieces)
        case _:
            return 0


def _index(queue: deque[Message], message: Message) -> int:
    """Where it is, itself and none that is equal."""
    return next(at for at, other in enumerate(queue) if other is message)


def _has_code(large: deque[tuple[Message, int]]) -> bool:
    return any(isinstance(message, msg.Code) for message, _ in large)
