"""What a node asks of the network, and what it hears from it.

What lives here: the interface that `tcp.py` implements with sockets and `memory.py` in virtual time.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

import trio

from hdphrs.protocol.events import Arrived, Received, Suspected
from hdphrs.protocol.messages import Message
from hdphrs.protocol.tasks import Member, NodeId
from hdphrs.records import dataclass


@dataclass(frozen=True, slots=True)
class Fenced:
    """`by` refuses this node as dead: drop everything and join again as a new node.  Said once."""

    by: NodeId


@dataclass(frozen=True, slots=True)
class Noted:
    """The latest durations that `sender` has noted."""

    sender: NodeId
    seconds: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Told:
    """A task of `sender` has found something (`hdphrs/api/board.py`)."""

    sender: NodeId
    topic: bytes
    rank: float
    find: bytes


@dataclass(frozen=True, slots=True)
class Said:
    """Tasks of `sender` say something (`hdphrs/wire/said.py`)."""

    sender: NodeId
    lost: int
    """Lines that were dropped before this one."""
    bundle: bytes


@dataclass(frozen=True, slots=True)
class Lightened:
    """Peers have acknowledged so much that `Transport.is_crowded` has ended."""


TransportEvent = Received | Suspected | Arrived | Fenced | Noted | Told | Said | Lightened

Deliver = Callable[[TransportEvent], None]
"""Takes one event into the driver's inbox, at once and without blocking, in the order of the calls.  What it
raises ends the transport (fail-stop)."""


Watch = Callable[[int, Callable[[], bool]], Awaitable[None]]
"""Has a function called, in no task in particular, whenever a descriptor is readable, until it returns False."""


async def watch(descriptor: int, hear: Callable[[], bool]) -> None:
    """The `Watch` of a node that hears nothing else."""
    while True:
        await trio.lowlevel.wait_readable(descriptor)
        if not hear():
            return


class Transport(Protocol):
    """Messages between this node and its peers.

    While two nodes live and are not fenced, every message arrives once and in the order of the sends (but that
    what a steal consists of overtakes large payloads, decision 32), whatever happens to the connections between
    them (hole R23).  A peer that is silent for too long, or whose
    port refuses, is reported as `Suspected`, once for each silence; the transport itself declares nobody dead
    and keeps trying until `fence`.  Silence counts between the root and each other node, and between two others
    while one of them waits for an acknowledgement (decision 27).

    All methods but `join`, `flush`, `serve` and `aclose` are synchronous and never block.
    """

    @property
    def is_crowded(self) -> bool:
        """Whether so much is queued, and not yet acknowledged, that no more should be made which would wait too.
        Changes with `send` and `fence`; or else `Lightened` is delivered."""

    async def serve(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Run until `aclose`; to be started with `await nursery.start(transport.serve)` before anything
        else."""

    def send(self, to: NodeId, message: Message) -> None:
        """Queue a message.  Lost if `to` is fenced; kept if `to` is not known yet, until `connect` or
        `fence`.

        What is queued, and not yet acknowledged, stays in memory; see `is_crowded`.

        Raises:
            MessageTooLargeError: the message is larger than `FRAME_BYTES_MAX`; nothing has been queued.
        """

    def hold(self) -> None:
        """Several messages and notes may follow: none leaves before `release`, and then those for one peer leave
        together.  Holds may be nested."""

    def release(self) -> None:
        """See there."""

    def note(self, to: NodeId, seconds: Sequence[float]) -> None:
        """Let a peer know some durations, as `Noted`: before what is sent from now on, unless the connection breaks,
        or newer ones take their place.  Lost if `to` is fenced or not known yet."""

    def tell(self, to: NodeId, topic: bytes, rank: float, find: bytes) -> None:
        """Let a peer know what a task has found, as `Told`, in place of what it was to be told before of the same
        search; lost as notes are."""

    def say(self, to: NodeId, bundle: bytes) -> None:
        """Let a peer know what tasks say, as `Said`: before what is sent from now on.  Lost as notes are, and when too
        much of it waits."""

    def admit(self, ticket: int, member: Member) -> None:
        """At the root: the newcomer behind `ticket` of `Arrived` is `member` from now on."""

    def connect(self, member: Member) -> None:
        """Keep a connection with `member` until `fence`; the side with the higher id dials.  Idempotent."""

    def fence(self, node: NodeId) -> None:
        """`node` is dead: close its connection, drop what is queued, tell it so if it ever dials again.
        Idempotent."""

    def retire(self) -> None:
        """This node is about to end: restore no connection any more but the root's, so as not to leave anybody with
        half a greeting."""

    async def join(
        self,
        root_addresses: Sequence[tuple[str, int]],
        host: str,
        slots: int,
        pid: int,
        deadline_s: float,
        pause_s_max: float = ...,
    ) -> None:
        """At a newcomer: reach the root and be admitted; its `Welcome` follows as `Received`.

        Args:
            root_addresses: where the root may listen, tried in turn.
            host, slots, pid: this node as the others shall know it.
            deadline_s: seconds from now.
            pause_s_max: how long to rest between two attempts; the pauses grow up to that.

        Raises:
            StartError: nobody admitted us within the deadline, or every address refuses us for good.
        """

    async def flush(self, to: NodeId, deadline_s: float) -> bool:
        """Wait until `to` has received everything that was sent to it, at most `deadline_s` seconds.

        Returns:
            Whether it has.
        """

    async def aclose(self) -> None:
        """End `serve` and leave no socket behind.  Idempotent; what is queued is lost, see `flush`."""
