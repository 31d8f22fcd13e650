"""The messages between nodes (Table 1 of the paper, and what a whole system needs beside it).

What lives here: one frozen type per message, with the paper's field names, and their union.  The codec has one row per
type.  T is the thief, V the victim, S the supervisor's node.  Every reply carries the id of what it answers.  Within
one pair of nodes messages are in order, but for `QUICK`; between different pairs there is no order.
"""

from __future__ import annotations

from typing import Final

from hdphrs.protocol.tasks import (
    Blame,
    Crash,
    FishId,
    Member,
    NodeId,
    Orphan,
    Outcome,
    Parting,
    Payload,
    Piece,
    RecallId,
    RequestId,
    Spark,
    TaskRef,
)
from hdphrs.records import dataclass


@dataclass(frozen=True, slots=True)
class Fish:
    """T -> V: asks for up to `want` sparks."""

    fish: FishId
    thief: NodeId
    want: int
    quiet_s: float
    """For how long nobody has had sparks, as far as the thief knows."""


@dataclass(frozen=True, slots=True)
class NoWork:
    """V -> T: nothing to give in answer to `fish`."""

    fish: FishId
    quiet_s: float
    """As in FISH, as far as the victim knows."""


@dataclass(frozen=True, slots=True)
class Req:
    """V -> S: may this spark move?  Left out as a message when V is S."""

    request: RequestId
    ref: TaskRef
    replica: int
    victim: NodeId
    thief: NodeId


@dataclass(frozen=True, slots=True)
class Auth:
    """S -> V: it may."""

    request: RequestId


@dataclass(frozen=True, slots=True)
class Denied:
    """S -> V: not now; put it back."""

    request: RequestId


@dataclass(frozen=True, slots=True)
class Obsolete:
    """S -> V: drop that copy; it is finished, or a newer replica exists."""

    request: RequestId


@dataclass(frozen=True, slots=True)
class Schedule:
    """V -> T: here they are.  Always accepted, solicited or not: a node that leaves asks nobody."""

    fish: FishId
    sparks: tuple[Spark, ...]
    blame: tuple[Blame, ...] = ()
    """What they, or what descends from them, are charged with where they come from."""


@dataclass(frozen=True, slots=True)
class Ack:
    """T -> S: it arrived.  V -> S, in its own name: it is still here, its thief is gone."""

    ref: TaskRef
    replica: int
    thief: NodeId


@dataclass(frozen=True, slots=True)
class Purge:
    """S -> root -> N: nobody waits for these any more; drop the copies that have not started."""

    node: NodeId
    """N."""
    refs: tuple[TaskRef, ...]


@dataclass(frozen=True, slots=True)
class Cancel:
    """S -> N, at times by way of the root: all copies of these are to be stopped, started or not; and orphans at these
    paths."""

    node: NodeId
    """N."""
    refs: tuple[TaskRef, ...]
    orphans: tuple[bytes, ...] = ()


@dataclass(frozen=True, slots=True)
class Push:
    """S -> N: run this here (`spawn_at`)."""

    spark: Spark


@dataclass(frozen=True, slots=True)
class Result:
    """N -> S: how the task ended (the paper's rput).  The first one fills the future, later ones are counted."""

    ref: TaskRef
    replica: int
    outcome: Outcome


@dataclass(frozen=True, slots=True)
class Keep:
    """N -> root: finished parts of unfinished tasks, for the case that these are run again; and orphans that have
    ended."""

    pieces: tuple[Piece, ...]


@dataclass(frozen=True, slots=True)
class Orphans:
    """N -> root: all that is run here for parents that are gone."""

    asked: bool
    """It answers a DEADNODE or a PURGE; otherwise some of them are here no more."""
    orphans: tuple[Orphan, ...]


@dataclass(frozen=True, slots=True)
class Discard:
    """N -> root: what the task at this path has come to has taken down who unpickled it; keep it no more, and tell who
    asks for what is left of its ancestors."""

    path: bytes
    crashes: tuple[Crash, ...]
    """What it is charged with so far."""


@dataclass(frozen=True, slots=True)
class Recall:
    """N -> root: the tasks at these paths are about to be run again; what is left of them?"""

    recall: RecallId
    paths: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class Recalled:
    """root -> N: this."""

    recall: RecallId
    pieces: tuple[Piece | Orphan, ...]
    blame: tuple[Blame, ...] = ()
    """What the root remembers of them, and of what descends from them."""


@dataclass(frozen=True, slots=True)
class Await:
    """S -> root: a future of ours waits for the end of this orphan."""

    ref: TaskRef
    replica: int
    path: bytes
    check: bytes


@dataclass(frozen=True, slots=True)
class Gone:
    """root -> S: the orphan will not end.  Otherwise the answer to AWAIT is a RESULT."""

    ref: TaskRef
    replica: int


@dataclass(frozen=True, slots=True)
class Code:
    """N -> N: the function behind a digest.  Sent once per pair, before the first task that needs it."""

    digest: bytes
    data: Payload


@dataclass(frozen=True, slots=True)
class Forget:
    """N -> N: this node sends the other no more tasks by this digest, unless CODE comes again; answered in kind.

    It stays behind everything that was sent before, and CODE may overtake it."""

    digest: bytes
    times: int
    """How often the code has passed between the two, as far as the sender has seen, since its last FORGET."""


@dataclass(frozen=True, slots=True)
class Welcome:
    """root -> newcomer: your id, who is there, who is dead, who of those there is leaving."""

    you: NodeId
    epoch: int
    members: tuple[Member, ...]
    dead: tuple[NodeId, ...]
    leaving: tuple[NodeId, ...] = ()


@dataclass(frozen=True, slots=True)
class Joined:
    """root -> all: a new node."""

    epoch: int
    member: Member


@dataclass(frozen=True, slots=True)
class Suspect:
    """node -> root: I hear nothing of `node` any more."""

    node: NodeId


@dataclass(frozen=True, slots=True)
class DeadNode:
    """root -> all: `node` is declared dead, or has left.  Epochs increase by one; everybody hears the same order."""

    node: NodeId
    epoch: int
    parting: Parting = Parting.DIED


@dataclass(frozen=True, slots=True)
class Leaving:
    """N -> all: I leave; give me nothing more, and tell me when you have all that I have sent."""

    round: int


@dataclass(frozen=True, slots=True)
class Noted:
    """all -> N: I have it, and have sent you all that I had to send."""

    round: int


@dataclass(frozen=True, slots=True)
class Bye:
    """N -> root: I am gone; these are my counters for the report."""

    parting: Parting
    counters: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class Term:
    """root -> all: the program has ended; stop your schedulers and answer."""


@dataclass(frozen=True, slots=True)
class TermAck:
    """node -> root: stopped; these are my counters for the report."""

    counters: tuple[tuple[str, int], ...]


Message = (
    Fish
    | NoWork
    | Req
    | Auth
    | Denied
    | Obsolete
    | Schedule
    | Ack
    | Purge
    | Push
    | Result
    | Keep
    | Discard
    | Recall
    | Recalled
    | Orphans
    | Await
    | Gone
    | Code
    | Forget
    | Welcome
    | Joined
    | Suspect
    | DeadNode
    | Leaving
    | Noted
    | Bye
    | Term
    | TermAck
    | Cancel
)

BULKY: Final = (Schedule, Push, Result, Keep, Recalled, Code)
"""What may have a large payload, which takes its time."""

QUICK: Final = (Fish, NoWork, Req, Auth, Denied, Obsolete, Schedule, Ack, Code)
"""What a steal consists of.  Where it has no large payload itself, it may come before a message with one that was sent
earlier, and before what was sent after that; but no SCHEDULE before a CODE (decision 32)."""


def payloads(message: Message) -> list[Payload]:
    """What may be large in it."""
    match message:
        case Schedule(_, sparks, _):
            return [data for spark in sparks for data in _payloads_of(spark)]
        case Push(spark):
            return _payloads_of(spark)
        case Result(_, _, outcome):
            return [outcome.data]
        case Keep(pieces) | Recalled(_, pieces):
            return [piece.outcome.data for piece in pieces if isinstance(piece, Piece)]
        case Code(_, data):
            return [data]
        case _:
            return []


def _payloads_of(spark: Spark) -> list[Payload]:
    return [spark.task.payload, *(piece.outcome.data for piece in spark.pieces if isinstance(piece, Piece))]
