"""Names and values that the protocol passes around: nodes, refs, tasks, sparks and their outcomes.

What lives here: immutable data.  Payloads are opaque bytes; nothing in this package looks inside them.
"""

from __future__ import annotations

from dataclasses import field
from enum import IntEnum
from typing import TYPE_CHECKING, Any, NamedTuple, NewType

from hdphrs.records import dataclass

NodeId = NewType("NodeId", int)
"""Names a node for ever: ids are handed out by the root in joining order and never used again."""

Origin = NewType("Origin", int)
"""Who on a node made a future: 0 is the program, n >= 1 the n-th scheduler process that the node started.  A replaced
scheduler gets a new number."""

RequestId = NewType("RequestId", int)
FishId = NewType("FishId", int)
RecallId = NewType("RecallId", int)

NODE_IDS_MAX = 1 << 63

ROOT = NodeId(0)
PROGRAM = Origin(0)
UNASKED = FishId(0)
"""No thief's: the fish that a SCHEDULE answers which nobody has asked for."""


class Parting(IntEnum):
    """How a node has gone."""

    DIED = 0
    LEFT = 1
    """It took its leave when its time was over; what it still had is lost with it."""
    LEFT_NOTHING = 2
    """It took its leave, and nothing of any task was there, or on its way there or from there, any more."""


if TYPE_CHECKING:
    Payload = bytes | Any
    """Bytes, or what stands for many of them, of which only the layers above know what it is (decision 18).  Whatever
    is declared to be `bytes` is just that, and the compiled form insists on it (decision 33)."""
else:
    Payload = bytes  # to those who go by annotations

KEY_BYTES = 20
"""Of the digest of a call by which other runs know it again."""
MEMO_BYTES = 1 + KEY_BYTES


class TaskRef(NamedTuple):
    """Names a future, and the task that fills it, across the cluster (the paper's GRef)."""

    node: NodeId
    """Where the future lives; this node's core is the task's supervisor."""
    origin: Origin
    slot: int

    def __str__(self) -> str:
        return f"{self.node}.{self.origin}.{self.slot}"


@dataclass(frozen=True, slots=True)
class Task:
    """A function call that may run anywhere."""

    name: str
    """The function's qualified name, for people."""
    path: bytes
    """Digest of the chain of spawn indices from the program to this task: its identity across re-execution."""
    code: bytes
    """Digest of the function; the code itself travels once per process."""
    payload: Payload
    """The pickled arguments."""
    supervised: bool = True
    """Whether the node that made it re-creates it after a death (the run's mode, or an FT skeleton)."""
    memo: bytes = b""
    """By what the ledger knows this call: `KEEN` or `FAIR`, and a digest (decision 9); empty if it must not."""
    attempts: int = 0
    """After so many crashes its future fails; 0 for as many as the run allows."""
    timeout_s: float = 0.0
    """For how long it may run (decision 19); 0 for as long as it takes."""
    pin: tuple[NodeId, ...] = ()
    """It runs on one of these nodes, and nowhere else (decision 20); empty for anywhere."""
    priority: int = 0
    """Of tasks that wait at a node, those with the highest are handed out first."""


KEEN = b"!"
"""How the memo of a task begins whose result is wanted in the ledger whatever it has cost."""
FAIR = b"."
"""And of one whose result is wanted there if it has cost enough."""


class Cause(IntEnum):
    """What a scheduler process was doing with a task when that took it down."""

    RUN = 0
    """It ran the task."""
    ARGUMENTS = 1
    """It unpickled the task's arguments."""
    VALUE = 2
    """It unpickled what the task had come to, its value or its exception, for another task that waited for that."""


@dataclass(frozen=True, slots=True)
class Crash:
    """One attempt that took its scheduler process down, or that of whoever wanted its value."""

    host: str
    pid: int
    how: str
    """For people: "killed by SIGSEGV", "exited with status 3"."""
    arguments: str = ""
    """A summary of the task's arguments; taken from the second attempt on."""
    words: str = ""
    """The last lines that the process wrote to its standard error."""
    cause: Cause = Cause.RUN


@dataclass(frozen=True, slots=True)
class Blame:
    """What is charged to the task at a path, whichever copy of it (decision 3)."""

    path: bytes
    crashes: tuple[Crash, ...]


class Verdict(IntEnum):
    """How a task ended."""

    VALUE = 0
    RAISED = 1
    CRASHED = 2
    """It used up its attempts; `Outcome.crashes` tells them, `Outcome.data` is the task's name in UTF-8."""
    LOST = 3
    """Unsupervised and gone with a node, or pinned to nodes that are gone; `Outcome.data` is a sentence in UTF-8."""
    TIMED_OUT = 4
    """It has run for longer than its limit; `Outcome.data` is a sentence in UTF-8."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What fills a future: a pickled value, a pickled exception, or a verdict of the runtime's."""

    verdict: Verdict
    data: Payload
    crashes: tuple[Crash, ...] = ()
    cost_s: float = field(default=0.0, compare=False)
    """The work behind it, in seconds: how long the task and all that it needed have run, wherever."""
    span_s: float = field(default=0.0, compare=False)
    """Of that, the longest chain of what cannot run side by side; 0 in a run that is not to be explained."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A finished part of a task that may be run again (decision 8)."""

    path: bytes
    check: bytes
    """Digest of the call; it is only used where the very same one is spawned."""
    outcome: Outcome


@dataclass(frozen=True, slots=True)
class Orphan:
    """A part of a task that is run again, which still runs for the parent that is gone."""

    path: bytes
    check: bytes
    node: NodeId
    """Where it runs."""


@dataclass(frozen=True, slots=True)
class Spark:
    """One copy of a task on its way to being run.  Immutable; a re-creation is a new spark with a higher replica."""

    ref: TaskRef
    replica: int
    task: Task
    crashes: tuple[Crash, ...] = ()
    """The attempts that crashed.  A spark with crashes runs carefully: its children are exported, not run in place."""
    placed: bool = False
    """Placed by `spawn_at`: a thread, which does not migrate (until a death makes it a spark)."""
    epoch: int = 0
    """Unsupervised: what its maker knew of the dead when it left; nobody who knows less may give it away."""
    pieces: tuple[Piece | Orphan, ...] = ()
    """Of a re-run: what it need not compute again, in the order of the paths."""


@dataclass(frozen=True, slots=True)
class Member:
    """A node as the others know it."""

    node: NodeId
    host: str
    slots: int
    """Schedulers, one a core."""
    address: tuple[str, int]
    """Where it listens for its peers."""
    pid: int
