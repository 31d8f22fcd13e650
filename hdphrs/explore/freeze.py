"""Hosts and messages as values: frozen into tuples, thawed again, and renamed.

What lives here: what of a host belongs to the state of a search.  Counters do not: they tell the past, and nothing in
the core looks at them.  The tables name every field of every role; a field that they do not know is an error, so that
the core cannot grow a state that the search overlooks.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any, NamedTuple

from hdphrs.config import CoreConfig
from hdphrs.errors import InternalError
from hdphrs.explore.codec import ATOM, Codec, NextId, Renaming, codec, fields_of, fish_base, request_base, unordered
from hdphrs.explore.host import Host, Scheduler
from hdphrs.protocol.cancelling import Cancelling, _Stopping
from hdphrs.protocol.code import CodeStore
from hdphrs.protocol.fairness import Fairness
from hdphrs.protocol.flow import Flow
from hdphrs.protocol.foresight import Foresight
from hdphrs.protocol.forgetting import Forgetting
from hdphrs.protocol.homes import Homes
from hdphrs.protocol.intake import Intake
from hdphrs.protocol.leaving import Leaving
from hdphrs.protocol.limits import Limits, _Running
from hdphrs.protocol.membership import Membership
from hdphrs.protocol.messages import Await, Message, Recall
from hdphrs.protocol.node import Node
from hdphrs.protocol.orphans import Orphanage
from hdphrs.protocol.outcomes import Outcomes
from hdphrs.protocol.pieces import Pieces
from hdphrs.protocol.quiet import Quiet
from hdphrs.protocol.recovery import Recovery
from hdphrs.protocol.reruns import Reruns
from hdphrs.protocol.retained import Copy, Retained
from hdphrs.protocol.schedulers import Schedulers, _Scheduler
from hdphrs.protocol.sparkpool import Sparkpool, _Lane
from hdphrs.protocol.stragglers import Stragglers, _Ended
from hdphrs.protocol.supervisor import InTransition, Record, Supervisor
from hdphrs.protocol.tasks import (
    Crash,
    FishId,
    Member,
    NodeId,
    Origin,
    Orphan,
    Piece,
    RecallId,
    RequestId,
    Spark,
    TaskRef,
)
from hdphrs.protocol.thief import Thief, _Sent
from hdphrs.protocol.unwanted import Unwanted
from hdphrs.protocol.victim import Guard, Victim, _Catch, _Parked


def _guards() -> Codec:
    """Guards of one fish share its catch, so the catches are numbered."""
    catches = codec(tuple[_Catch, ...])
    sparks = codec(tuple[tuple[RequestId, Spark, int], ...])

    def freeze(guards: dict[RequestId, Guard]) -> Any:
        shared = list({id(guard.catch): guard.catch for guard in guards.values()}.values())
        numbers = {id(catch): number for number, catch in enumerate(shared)}
        return catches.freeze(shared), sparks.freeze([(r, g.spark, numbers[id(g.catch)]) for r, g in guards.items()])

    def thaw(frozen: Any) -> dict[RequestId, Guard]:
        shared = catches.thaw(frozen[0])
        return {request: Guard(spark, shared[number]) for request, spark, number in sparks.thaw(frozen[1])}

    return Codec(
        freeze,
        thaw,
        lambda frozen, renaming: (catches.rename(frozen[0], renaming), sparks.rename(frozen[1], renaming)),
        lambda frozen: (*catches.ids(frozen[0]), *sparks.ids(frozen[1])),
    )


class _Role(NamedTuple):
    """The fields of a role: those that are its state, and those that it was made with."""

    state: dict[str, Codec]
    made_with: frozenset[str]


def _between(roles: str) -> _Role:
    """One that was made with these, and keeps nothing that a search has to know."""
    return _Role({}, frozenset(f"_{name}" for name in roles.split()))


ROLES: dict[str, tuple[type, _Role]] = {
    "members": (
        Membership,
        _Role(
            {
                "epoch": ATOM,
                "_others": unordered(codec(NodeId), codec(Member | None)),
                "_dead": unordered(codec(NodeId), ATOM),
                "_leaving": unordered(codec(NodeId), ATOM),
                "_next_id": ATOM,
            },
            frozenset({"me"}),
        ),
    ),
    "pool": (
        Sparkpool,
        _Role(
            {"_lanes": codec(dict[int, _Lane]), "_threads": codec(deque[Spark]), "_stealable": ATOM},
            frozenset({"arrivals"}),
        ),
    ),
    "fairness": (  # no search has it
        Fairness,
        _Role(
            {},
            frozenset(
                {"_fair_s", "_pool", "_schedulers", "_code", "_counters", "_due_s", "_started", "_looks", "_seen"}
            ),
        ),
    ),
    "supervisor": (
        Supervisor,
        _Role(
            {
                "_records": codec(dict[TaskRef, Record]),
                "_vanishing": codec(dict[TaskRef, tuple[int, InTransition]]),
            },
            frozenset({"_me", "_here"}),
        ),
    ),
    "schedulers": (
        Schedulers,
        _Role(
            {
                "_up": codec(dict[Origin, _Scheduler]),
                "_hungry": codec(dict[Origin, None]),
                "_blame": codec(dict[bytes, tuple[Crash, ...]]),
                "is_crowded": ATOM,
            },
            frozenset({"_config", "_pool", "_is_wanted"}),
        ),
    ),
    "thief": (
        Thief,
        _Role(
            {
                "_out": codec(dict[FishId, _Sent]),
                "_next_fish": codec(NextId),
                "_favourite": codec(NodeId | None),
                "_refusals": ATOM,
                "_rest_s": ATOM,
                "_resting_until_s": ATOM,
            },
            frozenset({"_me", "_config", "_choose", "_quiet"}),
        ),
    ),
    "quiet": (Quiet, _Role({"_since_s": ATOM}, frozenset({"_config"}))),
    "victim": (
        Victim,
        _Role(
            {
                "_guards": _guards(),
                "_next_request": codec(NextId),
                "_parked": codec(deque[_Parked]),
            },
            frozenset(
                {
                    "_me",
                    "_config",
                    "_pool",
                    "_supervisor",
                    "_members",
                    "_is_going",
                    "_blame_of",
                    "_quiet",
                    "_code",
                    "_counters",
                }
            ),
        ),
    ),
    "leaving": (
        Leaving,
        _Role(
            {
                "_until_s": ATOM,
                "_round": ATOM,
                "_unnoted": unordered(codec(NodeId), ATOM),
                "_quiet": ATOM,
            },
            frozenset({"_me", "_members"}),
        ),
    ),
    "reruns": (
        Reruns,
        _Role(
            {
                "_waiting": codec(dict[RecallId, list[Spark]]),
                "_next_recall": ATOM,
                "_disowned": codec(dict[TaskRef, None]),
                "_told": codec(dict[bytes, None]),
            },
            frozenset(
                {
                    "_config",
                    "_members",
                    "_pool",
                    "_supervisor",
                    "_schedulers",
                    "_retained",
                    "_is_stopping",
                    "_say",
                    "_counters",
                    "_put_back",
                }
            ),
        ),
    ),
    "stragglers": (
        Stragglers,
        _Role(
            {
                "_ended": codec(dict[tuple[Origin, bytes, int], _Ended]),
                "_noticed_s": codec(dict[tuple[TaskRef, int], float]),
                "_doubled": codec(dict[TaskRef, None]),
                "_next_s": ATOM,
            },
            frozenset({"_config", "_supervisor"}),
        ),
    ),
    "retained": (
        Retained,
        _Role({"_copies": codec(deque[Copy]), "_bytes": ATOM}, frozenset({"_config"})),
    ),
    "orphans": (
        Orphanage,
        _Role(
            {
                "_running": codec(dict[bytes, dict[NodeId, Orphan]]),
                "_awaited": codec(dict[bytes, list[Await]]),
                "_due": codec(dict[NodeId, int]),
                "_recalls": codec(list[tuple[NodeId, Recall]]),
            },
            frozenset({"_pieces", "_say", "_blame_of"}),
        ),
    ),
    "pieces": (
        Pieces,
        _Role(
            {"_pieces": codec(dict[bytes, Piece]), "_paths": codec(list[bytes]), "_bytes": ATOM},
            frozenset({"bytes_max", "on_keep", "on_discard"}),
        ),
    ),
    "cancelling": (
        Cancelling,
        _Role({"_stopping": codec(dict[tuple[TaskRef, int], _Stopping])}, frozenset({"_grace_s", "_schedulers"})),
    ),
    "limits": (Limits, _Role({"_running": codec(dict[tuple[TaskRef, int], _Running])}, frozenset())),
    "code": (  # tasks of a search need no code
        CodeStore,
        _Role({}, frozenset({"_bytes_max", "_codes", "_given", "_bytes", "_look_at", "_surroundings", "_informed"})),
    ),
    "forgetting": (Forgetting, _between("pool supervisor schedulers victim reruns code")),
    "homes": (Homes, _between("me members choose pool supervisor code say")),
    "intake": (Intake, _between("me members pool supervisor schedulers thief pieces reruns homes counters say")),
    "unwanted": (
        Unwanted,
        _between("me members supervisor victim reruns cancelling limits stragglers pieces orphans counters say"),
    ),
    "outcomes": (Outcomes, _between("me supervisor schedulers reruns limits stragglers pieces unwanted counters")),
    "recovery": (
        Recovery,
        _between(
            "me members supervisor schedulers thief victim leaving code orphans reruns unwanted outcomes counters"
        ),
    ),
    "foresight": (Foresight, _between("members supervisor schedulers leaving code pieces")),
    "flow": (
        Flow,
        _between(
            "members choose pool supervisor schedulers thief victim "
            "leaving code cancelling reruns stragglers counters demanding"
        ),
    ),
}
NODE_FIELDS = {"counters", "reports", "me", "_config", "_choose", "_over", "_awaited", *ROLES}

_CREW = codec(dict[Origin, Scheduler])
_AWAITED = codec(dict[tuple[Origin, int], bytes])
_STATES = [part for _, role in ROLES.values() for part in role.state.values()]
_HOST = fields_of(tuple, tuple, [codec(NodeId), *_STATES, _CREW, _AWAITED, ATOM])
MESSAGES = codec(tuple[Message, ...])
"""The codec of a queue."""


def freeze_host(host: Host) -> Any:
    """A running host as a value."""
    core = host.core
    parts = [getattr(getattr(core, name), field) for name, (_, role) in ROLES.items() for field in role.state]
    return _HOST.freeze((core.me, *parts, host.schedulers, host.awaited, host.next_origin))


def thaw_host(frozen: Any, config: CoreConfig, choose: Callable[[int], int]) -> Host:
    """A new host, equal to the one that was frozen but for its counters."""
    me, *parts, schedulers, awaited, next_origin = _HOST.thaw(frozen)
    core = Node(config, choose, me)
    values = iter(parts)
    for name, (_, role) in ROLES.items():
        owner = getattr(core, name)
        for field in role.state:
            setattr(owner, field, next(values))
    return Host(core, schedulers=schedulers, awaited=awaited, next_origin=next_origin)


def rename_host(frozen: Any, renaming: Renaming) -> Any:
    """A frozen host under other names."""
    return _HOST.rename(frozen, renaming)


def ids_of_host(frozen: Any) -> tuple[int, ...]:
    """The ids of fish and requests that a frozen host knows of."""
    return _HOST.ids(frozen)


def number_ids(host: Host) -> None:
    """Let the ids of a host that is new, and has used none yet, carry their owner from now on."""
    core = host.core
    assert core.me is not None
    if (core.thief._next_fish, core.victim._next_request) == (1, 1):
        core.thief._next_fish = fish_base(core.me)
        core.victim._next_request = request_base(core.me)


def check_fields(core: Node) -> None:
    """Check that the tables know all that a core consists of.

    Raises:
        InternalError: they do not; the table has to learn of a new field.
    """
    unknown = vars(core).keys() ^ NODE_FIELDS
    for name, (kind, role) in ROLES.items():
        part = getattr(core, name)
        unknown |= vars(part).keys() ^ (role.state.keys() | role.made_with) if isinstance(part, kind) else {name}
    if unknown:
        raise InternalError(f"hdphrs.explore.freeze does not know these fields of the core: {sorted(unknown)}")
