"""What can happen to a node: the input of `Node.handle`."""

from __future__ import annotations

from hdphrs.protocol.messages import Message
from hdphrs.protocol.tasks import PROGRAM, Crash, NodeId, Origin, Outcome, Payload, Piece, Task, TaskRef
from hdphrs.records import dataclass


@dataclass(frozen=True, slots=True)
class Received:
    """A message of a peer, in the order in which that peer sent it."""

    sender: NodeId
    message: Message


@dataclass(frozen=True, slots=True)
class Learned:
    """The program or a scheduler has registered code; it comes before the first task that uses it."""

    digest: bytes
    data: Payload
    origin: Origin = PROGRAM


@dataclass(frozen=True, slots=True)
class Released:
    """The program or a scheduler sends no more tasks by these digests, unless it registers them again: one for each
    time that it has registered one, or has been taught it."""

    origin: Origin
    digests: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class Exported:
    """The program or a scheduler gives sparks to its node: supervision starts here."""

    origin: Origin
    tasks: tuple[tuple[int, Task], ...]
    """(slot, task), oldest first."""


@dataclass(frozen=True, slots=True)
class Placed:
    """`spawn_at(node, ...)`."""

    origin: Origin
    slot: int
    task: Task
    node: NodeId


@dataclass(frozen=True, slots=True)
class Hungry:
    """A scheduler has nothing left to run and waits for up to `room` tasks.  Said once; `Start` answers it, and
    `Deliver` takes it back, since the scheduler may have a task to go on with."""

    scheduler: Origin
    room: int


@dataclass(frozen=True, slots=True)
class Finished:
    """A scheduler has run tasks that it got with `Start`."""

    scheduler: Origin
    results: tuple[tuple[TaskRef, int, Outcome], ...]
    """(ref, replica, outcome)."""


@dataclass(frozen=True, slots=True)
class Kept:
    """A scheduler has run parts of an unfinished task in place that are worth keeping."""

    pieces: tuple[Piece, ...]


@dataclass(frozen=True, slots=True)
class GivenBack:
    """A scheduler returns tasks that it got with `Start` and has not started."""

    scheduler: Origin
    sparks: tuple[tuple[TaskRef, int], ...]
    """(ref, replica)."""


@dataclass(frozen=True, slots=True)
class SchedulerUp:
    """A scheduler process is ready for work."""

    scheduler: Origin


@dataclass(frozen=True, slots=True)
class SchedulerDied:
    """A scheduler process is gone; everything it had started or owned is lost with it."""

    scheduler: Origin
    running: tuple[TaskRef, int] | None
    """The (ref, replica) on whose stack the process was at its end, if any: it alone is blamed, unless `read_of` is."""
    crash: Crash
    blameless: bool = False
    """Killed from outside for no fault of its task (chaos, an operator): nothing is charged to any budget."""
    leftover_of: bytes = b""
    """If none of its tasks was running: the path of the ended one that had made, and not got, the spark that was."""
    charged: tuple[Crash, ...] = ()
    """The crashes which that one had been charged with when it was handed out."""
    read_of: bytes = b""
    """If it was unpickling what a task had come to: the path of that task, which is blamed, and not who wanted it."""


@dataclass(frozen=True, slots=True)
class Arrived:
    """At the root: an authenticated newcomer asks to join.  `ticket` names its connection to the driver."""

    ticket: int
    host: str
    slots: int
    address: tuple[str, int]
    pid: int


@dataclass(frozen=True, slots=True)
class Suspected:
    """The transport hears nothing of `node` any more, or its port refuses."""

    node: NodeId


@dataclass(frozen=True, slots=True)
class Leave:
    """At any node but the root: it is to hand over what it has, and to be gone within `grace_s`."""

    grace_s: float


@dataclass(frozen=True, slots=True)
class Cancelled:
    """The program or a scheduler gives up futures that it has made with `Exported` or `Placed`: nobody waits for them
    any more, and nothing is delivered to them.  Full ones are none of its business."""

    origin: Origin
    slots: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Begun:
    """A scheduler begins to run a task that it got with `Start`, and that may run for so long only."""

    scheduler: Origin
    ref: TaskRef
    replica: int


@dataclass(frozen=True, slots=True)
class Crowded:
    """More waits for the links to other nodes than is to be kept in memory, or not any more: until then nothing new is
    begun here whose results would wait, too.  What has begun goes on, and so does what others ask for."""

    is_crowded: bool


@dataclass(frozen=True, slots=True)
class Tick:
    """Time has passed; see `Node.next_deadline`."""


@dataclass(frozen=True, slots=True)
class Terminate:
    """At the root: the program has ended."""


Event = (
    Received
    | Learned
    | Exported
    | Placed
    | Hungry
    | Finished
    | GivenBack
    | SchedulerUp
    | SchedulerDied
    | Arrived
    | Suspected
    | Tick
    | Terminate
    | Kept
    | Leave
    | Cancelled
    | Begun
    | Released
    | Crowded
)
