"""Codecs: values of a type frozen into tuples, thawed again, and renamed, as their annotations say.

What lives here: one codec for each annotation, made from those of its parts.

Ids of fish and requests have no meaning beyond being different.  Here each carries its owner (see `fish_base`), so a
renaming needs to know nothing of where it stands; `hdphrs.explore.names` keeps them small.
"""

from __future__ import annotations

import types
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass
from functools import cache
from typing import Any, NamedTuple, NewType, Union, get_args, get_origin, get_type_hints

from hdphrs.protocol.messages import Welcome
from hdphrs.protocol.tasks import FishId, NodeId, RequestId

NextId = NewType("NextId", int)
"""The counter behind ids: renamed like them, but nothing that refers to it."""

UNORDERED = {Welcome: ("members", "dead", "leaving")}
"""Fields whose order means nothing: who reads them makes a table of them."""

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
NAMES: dict[Any, Codec] = {
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
        return fields_of(tuple, tuple, [codec(argument) for argument in arguments])
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


def _bag(item: Codec) -> Codec:
    """A tuple whose order means nothing."""
    ordered = _sequence(tuple, item)
    return ordered._replace(
        freeze=lambda values: tuple(sorted(ordered.freeze(values))),
        rename=lambda frozen, renaming: tuple(sorted(ordered.rename(frozen, renaming))),
    )


def _mapping(key: Codec, value: Codec) -> Codec:
    """A dict in its order, which the core relies on."""
    pairs = _sequence(dict, fields_of(tuple, tuple, [key, value]))
    return pairs._replace(freeze=lambda mapping: pairs.freeze(mapping.items()))


def unordered(key: Codec, value: Codec) -> Codec:
    """A dict whose order means nothing."""
    ordered = _mapping(key, value)
    return ordered._replace(
        freeze=lambda mapping: tuple(sorted(ordered.freeze(mapping))),
        rename=lambda frozen, renaming: tuple(sorted(ordered.rename(frozen, renaming))),
    )


def fields_of(read: Callable[[Any], Any], make: Callable[[Any], Any], codecs: list[Codec]) -> Codec:
    """A value of several parts: how to read them, and how to make it of them."""
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
    bags = UNORDERED.get(kind, ())
    parts = [_bag(codec(get_args(hints[name])[0])) if name in bags else codec(hints[name]) for name in names]
    if kind.__hash__ is not None and all(part is ATOM for part in parts):
        return ATOM
    return fields_of(lambda value: [getattr(value, name) for name in names], lambda values: kind(*values), parts)
