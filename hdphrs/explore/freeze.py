"""Hosts and messages as values: frozen into tuples, thawed again, and renamed.

What lives here: what of a host belongs to the state of a search.  Counters do not: they tell the past, and nothing in
the core looks at them.  The tables name every field of every role; a field that they do not know is an error, so that
the core cannot grow a state that the search overlooks.

Ids of fish and requests have no meaning beyond being different.  Here each carries its owner (see `fish_base`), so a
renaming needs to know nothing of where it stands; `hdphrs.explore.space` keeps them small.
"""

from __future__ import annotations

import types
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass
from functools import cache
from typing import Any, NamedTuple, NewType, Union, get_args, get_origin, get_type_hints

from hdphrs.config import CoreConfig
from hdphrs.errors import InternalError
from hdphrs.explore.host import Host, Scheduler
from hdphrs.protocol.code import CodeStore
from hdphrs.protocol.membership import Membership
from hdphrs.protocol.messages import Message
from hdphrs.protocol.node import Node
from hdphrs.protocol.schedulers import Schedulers, _Scheduler
from hdphrs.protocol.sparkpool import Sparkpool
from hdphrs.protocol.supervisor import Record, Supervisor
from hdphrs.protocol.tasks import Crash, FishId, Member, NodeId, Origin, RequestId, Spark, TaskRef
from hdphrs.protocol.thief import Thief, _Sent
from hdphrs.protocol.victim import Guard, Victim, _Catch, _Parked

NextId = NewType("NextId", int)
"""The counter behind ids: renamed like them, but nothing that refers to it."""

OWNER_BITS = 8
REQUEST_BIT = 1 << (OWNER_BITS - 1)


def fish_base(node: NodeId) -> int:
    """The first id of a fish of this node."""
    return (node << OWNER_BITS) + 1


def request_base(node: NodeId) -> int:
    """The first id of a request of this node."""
    return fish_base(node) + REQUEST_BIT


@dataclass(frozen=True, slots=True)
class Renaming:
    """What becomes of ids of nodes, fish and requests."""

    nodes: tuple[NodeId, ...]
    """By old id."""
    ids: tuple[tuple[int, int], ...] = ()
    """Of fish and requests, (old, new); others only change their owner."""

    def node(self, node: NodeId) -> NodeId:
        """The new name of a node."""
        return self.nodes[node]

    def id(self, old: int) -> int:
        """The new name of a fish or a request."""
        for before, after in self.ids:
            if before == old:
                return after
        owner, rest = divmod(old, 1 << OWNER_BITS)
        return (self.nodes[owner] << OWNER_BITS) + rest


class Codec(NamedTuple):
    """How values of one type are frozen, thawed and renamed; and the ids that a frozen one refers to."""

    freeze: Callable[[Any], Any]
    thaw: Callable[[Any], Any]
    rename: Callable[[Any, Renaming], Any]
    ids: Callable[[Any], tuple[int, ...]]


def _same(value: Any) -> Any:
    return value


def _same_renamed(value: Any, _: Renaming) -> Any:
    return value


def _none(_: Any) -> tuple[int, ...]:
    return ()


ATOM = Codec(_same, _same, _same_renamed, _none)
NAMES = {
    NodeId: Codec(_same, _same, lambda value, renaming: renaming.node(value), _none),
    FishId: Codec(_same, _same, lambda value, renaming: renaming.id(value), lambda value: (value,)),
    RequestId: Codec(_same, _same, lambda value, renaming: renaming.id(value), lambda value: (value,)),
    NextId: Codec(_same, _same, lambda value, renaming: renaming.id(value), _none),
}


@cache
def codec(hint: Any) -> Codec:
    """The codec for an annotation."""
    if hint in NAMES:
        return NAMES[hint]
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return _union(arguments)
    if origin is tuple and arguments[-1] is not Ellipsis:
        return _fields(lambda values: tuple(values), tuple, [codec(argument) for argument in arguments])
    if origin is set:
        return _sequence(set, codec(arguments[0]))._replace(freeze=lambda values: tuple(sorted(values)))
    if origin in (tuple, list, deque):
        return _sequence(origin, codec(arguments[0]))
    if origin is dict:
        return _mapping(codec(arguments[0]), codec(arguments[1]))
    if isinstance(hint, type) and (is_dataclass(hint) or issubclass(hint, tuple)):
        return _record(hint)
    return ATOM


def _union(options: tuple[Any, ...]) -> Codec:
    by_type = {getattr(option, "__supertype__", option): codec(option) for option in options}
    return Codec(
        lambda value: (type(value), by_type[type(value)].freeze(value)),
        lambda frozen: by_type[frozen[0]].thaw(frozen[1]),
        lambda frozen, renaming: (frozen[0], by_type[frozen[0]].rename(frozen[1], renaming)),
        lambda frozen: by_type[frozen[0]].ids(frozen[1]),
    )


def _sequence(make: Callable[[Any], Any], item: Codec) -> Codec:
    return Codec(
        lambda values: tuple([item.freeze(value) for value in values]),
        lambda frozen: make([item.thaw(value) for value in frozen]),
        lambda frozen, renaming: tuple([item.rename(value, renaming) for value in frozen]),
        lambda frozen: tuple([used for value in frozen for used in item.ids(value)]),
    )


def _mapping(key: Codec, value: Codec) -> Codec:
    """A dict in its order, which the core relies on."""
    pairs = _sequence(dict, _fields(tuple, tuple, [key, value]))
    return pairs._replace(freeze=lambda mapping: pairs.freeze(mapping.items()))


def _unordered(key: Codec, value: Codec) -> Codec:
    """A dict whose order means nothing."""
    ordered = _mapping(key, value)
    return ordered._replace(
        freeze=lambda mapping: tuple(sorted(ordered.freeze(mapping))),
        rename=lambda frozen, renaming: tuple(sorted(ordered.rename(frozen, renaming))),
    )


def _fields(read: Callable[[Any], Any], make: Callable[[Any], Any], codecs: list[Codec]) -> Codec:
    return Codec(
        lambda value: tuple([part.freeze(item) for part, item in zip(codecs, read(value), strict=True)]),
        lambda frozen: make([part.thaw(item) for part, item in zip(codecs, frozen, strict=True)]),
        lambda frozen, renaming: tuple(
            [part.rename(item, renaming) for part, item in zip(codecs, frozen, strict=True)]
        ),
        lambda frozen: tuple([used for part, item in zip(codecs, frozen, strict=True) for used in part.ids(item)]),
    )


def _record(kind: Any) -> Codec:
    """A dataclass or a named tuple, field by field; one without names in it is left as it is."""
    names = [item.name for item in fields(kind)] if is_dataclass(kind) else list(kind._fields)
    hints = get_type_hints(kind)
    parts = [codec(hints[name]) for name in names]
    if kind.__hash__ is not None and all(part is ATOM for part in parts):
        return ATOM
    return _fields(lambda value: [getattr(value, name) for name in names], lambda values: kind(*values), parts)


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


ROLES: dict[str, tuple[type, _Role]] = {
    "members": (
        Membership,
        _Role(
            {
                "epoch": ATOM,
                "_others": _unordered(codec(NodeId), codec(Member | None)),
                "_dead": _unordered(codec(NodeId), ATOM),
                "_next_id": ATOM,
            },
            frozenset({"me"}),
        ),
    ),
    "pool": (Sparkpool, _Role({"_sparks": codec(deque[Spark]), "_threads": codec(deque[Spark])}, frozenset())),
    "supervisor": (Supervisor, _Role({"_records": codec(dict[TaskRef, Record])}, frozenset({"_me", "_here"}))),
    "schedulers": (
        Schedulers,
        _Role(
            {
                "_up": codec(dict[Origin, _Scheduler]),
                "_hungry": codec(dict[Origin, None]),
                "_blame": codec(dict[bytes, tuple[Crash, ...]]),
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
            frozenset({"_me", "_config", "_choose"}),
        ),
    ),
    "victim": (
        Victim,
        _Role(
            {"_guards": _guards(), "_next_request": codec(NextId), "_parked": codec(deque[_Parked])},
            frozenset({"_me", "_config", "_pool", "_supervisor", "_give", "_is_dead"}),
        ),
    ),
    "code": (CodeStore, _Role({}, frozenset({"_data", "_given"}))),  # tasks of a search need no code
}
NODE_FIELDS = {"counters", "reports", "me", "_config", "_choose", "_over", "_demanding", "_awaited", *ROLES}

_CREW = codec(dict[Origin, Scheduler])
_AWAITED = codec(dict[tuple[Origin, int], bytes])
_STATES = [part for _, role in ROLES.values() for part in role.state.values()]
_HOST = _fields(tuple, tuple, [codec(NodeId), *_STATES, _CREW, _AWAITED, ATOM])
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
    """Let the ids of a host that has used none carry their owner from now on."""
    core = host.core
    assert core.me is not None
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
