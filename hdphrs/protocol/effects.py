"""What a node wants done: the output of `Node.handle`, to be carried out in order."""

from __future__ import annotations

from hdphrs.protocol.messages import Message
from hdphrs.protocol.tasks import Member, NodeId, Origin, Outcome, Parting, Payload, Spark, TaskRef
from hdphrs.records import dataclass


@dataclass(frozen=True, slots=True)
class Send:
    """Queue a message for a peer; never blocks.  To the dead it is lost."""

    to: NodeId
    message: Message


@dataclass(frozen=True, slots=True)
class Teach:
    """Give a scheduler the code behind a digest; comes before the first `Start` that needs it."""

    scheduler: Origin
    digest: bytes
    data: Payload


@dataclass(frozen=True, slots=True)
class Unlearn:
    """Have a scheduler let go of the code behind a digest, which it answers with `Released`.  It holds no task that
    needs it, and is given it again before the next one that does."""

    scheduler: Origin
    digest: bytes


@dataclass(frozen=True, slots=True)
class Start:
    """Hand tasks to a hungry scheduler, oldest first; or one to a busy scheduler, which runs it before it goes on with
    what runs there, at the next spawn of that."""

    scheduler: Origin
    sparks: tuple[Spark, ...]
    first: bool = False
    """Whether it is the latter."""


@dataclass(frozen=True, slots=True)
class Deliver:
    """Fill a future of the program (origin 0) or of a scheduler."""

    origin: Origin
    slot: int
    outcome: Outcome


@dataclass(frozen=True, slots=True)
class Demand:
    """Whether this node wants its schedulers to export sparks (the demand byte of the shared page).  Sent on change,
    and again after each export while the wish lasts."""

    wanted: bool


@dataclass(frozen=True, slots=True)
class Admit:
    """At the root: the newcomer behind `ticket` is `member` from now on.  `Send(Welcome)` follows."""

    ticket: int
    member: Member


@dataclass(frozen=True, slots=True)
class Connect:
    """A member to keep a connection with; the side with the higher id dials."""

    member: Member


@dataclass(frozen=True, slots=True)
class Fence:
    """`node` is dead for ever, or has left: close its connection, drop what is queued, refuse it from now on.
    `recreated` counts the tasks that this node re-created because of it (for the log)."""

    node: NodeId
    recreated: int
    parting: Parting = Parting.DIED


@dataclass(frozen=True, slots=True)
class Double:
    """A task that takes long elsewhere is started once more: this replica of it is here now (for the log)."""

    ref: TaskRef
    replica: int
    name: str


@dataclass(frozen=True, slots=True)
class Cancel:
    """A scheduler is to stop these tasks, which nobody wants any more: (ref, replica).  It drops those that it has not
    started, and answers all of them."""

    scheduler: Origin
    copies: tuple[tuple[TaskRef, int], ...]


@dataclass(frozen=True, slots=True)
class Replace:
    """These were to be stopped, and have not ended within the grace: if one of them has the core of its scheduler, that
    process is to be replaced, which is nobody's fault."""

    scheduler: Origin
    copies: tuple[tuple[TaskRef, int], ...]


@dataclass(frozen=True, slots=True)
class StopSchedulers:
    """TERM, or this node leaves: end all schedulers; what else there is to do follows as effects of its own."""


@dataclass(frozen=True, slots=True)
class Halt:
    """This node's part is over: the run has ended, or (`reason` set) the node has lost the root, or was itself declared
    dead."""

    reason: str | None = None
    rejoin: bool = False
    """The node runs, and the run may do so too: drop everything and try to join again, as a new node."""


Effect = (
    Send
    | Teach
    | Start
    | Deliver
    | Demand
    | Admit
    | Connect
    | Fence
    | StopSchedulers
    | Halt
    | Double
    | Cancel
    | Replace
    | Unlearn
)
