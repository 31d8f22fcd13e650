"""A look at a whole cluster at once.

What lives here: `facts`, what one core says of itself, and `scan`, which holds the facts of all cores and what is on
its way between them against the invariants 1, 2 and 4; `scan_still` asks for more when nothing is on its way.  They
cost as much as the cluster is large, so they are for small ones; nothing is remembered from one look to the next.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass

from hdphrs.audit.violation import Violation
from hdphrs.protocol import messages as msg
from hdphrs.protocol.node import Node
from hdphrs.protocol.supervisor import Adopted, InTransition, Location, OnNode, covers
from hdphrs.protocol.tasks import ROOT, NodeId, TaskRef

Copy = tuple[TaskRef, int]
"""One copy of a task: (ref, replica)."""

Flight = tuple[NodeId, NodeId, Iterable[msg.Message]]
"""What is on its way: (source, to, messages)."""


@dataclass(frozen=True, slots=True)
class Facts:
    """What a core says of itself."""

    others: frozenset[NodeId]
    """Members that it takes to be alive."""
    dead: frozenset[NodeId]
    """Nodes that it has buried."""
    copies: tuple[Copy, ...]
    """Copies that are here: pooled, guarded, or held by a scheduler."""
    awaited: tuple[Copy, ...]
    """At the root: what waits for the ends of orphans."""
    records: tuple[tuple[Copy, Location], ...]
    """The newest replica of each supervised task of this node, and where it is tracked."""


@dataclass(frozen=True, slots=True)
class _Place:
    at: NodeId
    to: NodeId | None = None
    pushed: bool = False


def facts(core: Node, known: Iterable[NodeId]) -> Facts:
    """What the core of a member says of itself, and of the nodes in `known`."""
    here = [*core.pool, *core.victim.guarded(), *core.schedulers.held(), *core.reruns]
    return Facts(
        others=frozenset(core.members.others()),
        dead=frozenset(node for node in known if core.members.is_dead(node)),
        copies=tuple((spark.ref, spark.replica) for spark in here),
        awaited=tuple((waiting.ref, waiting.replica) for waiting in core.orphans.awaited()),
        records=tuple(
            ((ref, record.replica), record.location)
            for ref, record in core.supervisor.records()
            if record.task.supervised
        ),
    )


def scan(nodes: Mapping[NodeId, Facts], flights: Iterable[Flight], unruled: Container[NodeId] = ()) -> None:
    """Look at a cluster in one moment.

    Args:
        nodes: those that take events, the root among them, declared dead or not.
        flights: all that is under way between them.
        unruled: nodes that somebody has accused, on whom the root has not ruled yet.

    Raises:
        Violation: the cluster is in a state in which it must never be.
    """
    members = {node: told for node, told in nodes.items() if node == ROOT or node in nodes[ROOT].others}
    places: dict[Copy, list[_Place]] = {}
    for node, told in members.items():
        for copy in told.copies:
            places.setdefault(copy, []).append(_Place(node))
    answers: set[TaskRef] = set()
    awaited = set(nodes[ROOT].awaited)
    for source, to, messages in flights:
        if to in nodes and source not in nodes[to].dead:
            for message in messages:
                if isinstance(message, msg.Result):
                    answers.add(message.ref)
                elif isinstance(message, msg.Await | msg.Gone):
                    awaited.add((message.ref, message.replica))
                for copy in _carried(message):
                    places.setdefault(copy, []).append(_Place(source, to, isinstance(message, msg.Push)))
    for copy, where in places.items():
        if len(where) > 1:
            newest = [newest for told in members.values() for newest, _ in told.records]
            raise Violation(2 if copy in newest else 4, f"{_name(copy)} is in {len(where)} places: {_tell(where)}")
    for told in members.values():
        for copy, location in told.records:
            expected = copy[0] in answers or (isinstance(location, Adopted) and copy in awaited)
            _check_record(nodes, unruled, told, copy, location, places.get(copy, []), expected)


def scan_still(nodes: Mapping[NodeId, Facts]) -> None:
    """Look at a cluster in which nothing is under way: if every death is ruled on too, the records must be exact.

    Args:
        nodes: as for `scan`.

    Raises:
        Violation: a record names more than the place of the newest replica, so that it may never move again.
    """
    if sorted(nodes) != sorted((ROOT, *nodes[ROOT].others)):
        return
    at = {copy: node for node, told in nodes.items() for copy in told.copies}
    for told in nodes.values():
        for copy, location in told.records:
            if copy in at and location != OnNode(at[copy]):
                raise Violation(1, f"{_name(copy)} stays on {at[copy]}, but tracked as {location}")


def scan_leave(node: NodeId, told: Facts, flights: Iterable[Flight]) -> None:
    """Look at a node that goes, and says that it leaves nothing behind.

    Args:
        told: what its core says of itself.
        flights: all that is under way from or to nodes that run.

    Raises:
        Violation: it does.
    """
    here = [_name(copy) for copy in told.copies]
    for source, to, messages in flights:
        if node in (source, to) and source not in told.dead and to not in told.dead:
            here += [_name(copy) for message in messages for copy in _carried(message)]
    if here:
        raise Violation(4, f"node {node} says that it leaves nothing behind, but there is {', '.join(here)}")


def _check_record(
    nodes: Mapping[NodeId, Facts],
    unruled: Container[NodeId],
    told: Facts,
    copy: Copy,
    location: Location,
    places: list[_Place],
    expected: bool,
) -> None:
    for place in places:
        if place.to is None:
            covered = covers(location, place.at) and not isinstance(location, Adopted)
        elif place.pushed:
            covered = location == OnNode(place.to)
        else:
            covered = location == InTransition(place.at, place.to)
        if not covered:
            raise Violation(1, f"{_name(copy)} is {_tell([place])}, but tracked as {location}")
    if places or expected:
        return
    named = (location.victim, location.thief) if isinstance(location, InTransition) else (location.node,)
    unheard = any(
        node not in told.dead and (node in nodes[ROOT].dead or node not in nodes or node in unruled) for node in named
    )
    if not unheard:
        raise Violation(1, f"{_name(copy)} is lost; tracked as {location}")


def _carried(message: msg.Message) -> Iterator[Copy]:
    match message:
        case msg.Schedule(_, sparks, _):
            yield from ((spark.ref, spark.replica) for spark in sparks)
        case msg.Push(spark):
            yield spark.ref, spark.replica


def _name(copy: Copy) -> str:
    return f"{copy[0]}#{copy[1]}"


def _tell(places: list[_Place]) -> str:
    return ", ".join(f"on {place.at}" if place.to is None else f"from {place.at} to {place.to}" for place in places)
