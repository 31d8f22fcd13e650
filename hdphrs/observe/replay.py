"""Replaying a run: all recorded lives again, in an order in which every message is sent before it is received.

What lives here: the order, and what is checked.  Each core is fed what it was fed and must want what it wanted; what a
node received must be what the other one sent, in the order in which it was sent, but for what overtakes large messages
(decision 32); and the invariants of `hdphrs.audit` must hold: after every event what `Follower` can see of it, and as
often as is cheap what only a look at the whole cluster shows.  Events that no message orders come in the order of their
hosts' clocks, which decides nothing: the invariants hold in any order, or the protocol is wrong.

A node that was killed has recorded all that anybody has seen of it.  So a message without a sender means that a whole
trace is missing (then the cores are still compared one by one, but nothing can be said about the cluster), or that
something is wrong.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from hdphrs.audit.follow import Follower
from hdphrs.audit.scan import facts, scan
from hdphrs.audit.violation import Violation
from hdphrs.observe.divergence import Divergence
from hdphrs.observe.lives import Life, read_lives, shown
from hdphrs.observe.tally import Tally
from hdphrs.protocol.effects import Admit, Effect, Fence, Send
from hdphrs.protocol.events import Received
from hdphrs.protocol.messages import QUICK, Code, Message, Schedule, payloads
from hdphrs.protocol.node import Node
from hdphrs.protocol.tasks import ROOT, NodeId
from hdphrs.wire.bulk import BULK_BYTES_MIN
from hdphrs.wire.trace import Record

Link = tuple[NodeId, NodeId]

LOOK_EVENTS = 64
"""The events between two looks at the whole cluster, at least; no fewer than there are tasks to look at."""


@dataclass(slots=True)
class Verdict:
    """What a replay has found."""

    tally: Tally
    fault: str | None = None
    """The first thing that is wrong, in one line; the replay ends there."""
    missing: dict[NodeId, None] = field(default_factory=dict)
    """Nodes of the run without a trace."""

    @property
    def conforming(self) -> bool:
        """Whether the run was one of this core's, and is known as a whole."""
        return self.fault is None and not self.missing

    def sentences(self) -> list[str]:
        """The verdict in words, a line each."""
        told = [f"the trace of node {node} is missing" for node in self.missing]
        if self.fault is not None:
            return [*told, f"NOT CONFORMING: {self.fault}"]
        if self.missing:
            return [*told, f"each of {self.tally.events:,} events conforms, but the invariants were not checked"]
        return [f"conforming: {self.tally.events:,} events; the invariants held"]


def replay(folder: str) -> Verdict:
    """Replay the run whose traces are in a folder.

    Raises:
        UsageError: there is no run in it, or more than one.
        ProtocolError: a file is no trace of this version, or damaged.
    """
    lives = read_lives(folder)
    run = _Replay(lives)
    try:
        run.all()
    except Divergence as error:
        run.verdict.fault = str(error)
    return run.verdict


class _Replay:
    def __init__(self, lives: Sequence[Life]) -> None:
        self.verdict = Verdict(Tally(lives))
        self._lives = lives
        self._known = {life.node: life for life in lives if life.node is not None}
        self._nameless = {(life.header.host, life.header.pid) for life in lives if life.node is None}
        self._under_way: dict[Link, deque[Message]] = {}
        self._ready: list[tuple[float, int]] = []
        self._waiting: dict[Link, int] = {}
        """Lives whose next event is a message that nobody has sent yet, by its link."""
        self._fenced: dict[Link, None] = {}
        """Who lets nothing in any more, and from whom."""
        self._cores: dict[NodeId, Node] = {}
        self._follower = Follower(self._cores)
        self._look_at = 0
        """After how many events the next look is due."""

    def all(self) -> None:
        """Live all lives to their ends."""
        for number in range(len(self._lives)):
            self._line_up(number)
        while self._ready:
            _, number = heapq.heappop(self._ready)
            self._step(self._lives[number])
            self._line_up(number)
        if self._waiting:
            raise self._unsent()

    def _unsent(self) -> Divergence:
        """All who are left wait for messages: the one who has waited longest is it who got what nobody sent."""
        life = min((self._lives[number] for number in self._waiting.values()), key=lambda life: life.wall_s)
        event = None if life.next is None else life.next.event
        assert isinstance(event, Received)
        sender = self._known[event.sender]
        told = f"{life}, event {life.lived + 1}, {shown(event)}: {sender} has not sent it"
        return Divergence(f"{told}; its trace ends after {sender.lived} events" if sender.next is None else told)

    def _line_up(self, number: int) -> None:
        """A life goes on as soon as the cause of its next event has been replayed."""
        life = self._lives[number]
        if life.next is None:
            self._end(life)
            return
        event = life.next.event
        if isinstance(event, Received) and life.node is not None:
            link = event.sender, life.node
            if event.sender not in self._known:
                self._miss(event.sender)
            elif _place(self._under_way.get(link, ()), event.message) is None:
                self._waiting[link] = number
                return
        heapq.heappush(self._ready, (life.wall_s, number))

    def _step(self, life: Life) -> None:
        record, effects = life.live()
        self.verdict.tally.count(life, record.event, effects)
        if life.node is None:
            return
        if isinstance(record.event, Received) and record.event.sender in self._known:
            self._take(life, life.node, record, record.event)
        for effect in effects:
            if isinstance(effect, Send):
                self._under_way.setdefault((life.node, effect.to), deque()).append(effect.message)
            elif isinstance(effect, Fence):
                self._fenced[life.node, effect.node] = None
            elif isinstance(effect, Admit):
                member = effect.member
                if member.node not in self._known and (member.host, member.pid) not in self._nameless:
                    self._miss(member.node)
        self._follow(life, life.node, record, effects)
        for effect in effects:
            if isinstance(effect, Send) and (number := self._waiting.pop((life.node, effect.to), None)) is not None:
                self._line_up(number)

    def _take(self, life: Life, node: NodeId, record: Record, event: Received) -> None:
        under_way = self._under_way[event.sender, node]
        place = _place(under_way, event.message)
        assert place is not None, "it was not ready otherwise"
        sent = under_way[place]
        del under_way[place]
        if sent != event.message:
            told = f"the next message of node {event.sender} to it was {shown(sent)}"
            raise life.diverges(record, told)
        if (node, event.sender) in self._fenced:
            raise life.diverges(record, f"it had fenced node {event.sender} before")

    def _follow(self, life: Life, node: NodeId, record: Record, effects: Iterable[Effect]) -> None:
        if self.verdict.missing:
            return
        self._cores[node] = life.core
        try:
            self._follower.step(node, record.event, list(effects))
            if self.verdict.tally.events >= self._look_at and ROOT in self._cores:
                self._look()
        except Violation as violation:
            raise life.diverges(record, str(violation)) from violation

    def _look(self) -> None:
        seen = {node: facts(core, self._known) for node, core in self._cores.items()}
        scan(seen, [(source, to, messages) for (source, to), messages in self._under_way.items()])
        tasks = sum(len(told.copies) + len(told.records) for told in seen.values())
        self._look_at = self.verdict.tally.events + max(LOOK_EVENTS, tasks)

    def _end(self, life: Life) -> None:
        if life.node is not None:
            self._cores.pop(life.node, None)
            self._follower.died(life.node)

    def _miss(self, node: NodeId) -> None:
        self.verdict.missing[node] = None


def _place(under_way: Sequence[Message], message: Message) -> int | None:
    """Where among those under way one is that has arrived: the first must be it, unless it has overtaken that; None if
    it is still to be sent."""
    if not under_way:
        return None
    if under_way[0] == message or not _is_large(under_way[0]) or not _is_quick(message):
        return 0
    for place, other in enumerate(under_way):
        if other == message:
            return place
        if _is_quick(other) or (isinstance(message, Schedule) and isinstance(other, Code)):
            return 0
    return None


def _is_quick(message: Message) -> bool:
    return isinstance(message, QUICK) and not _is_large(message)


def _is_large(message: Message) -> bool:
    return any(len(payload) >= BULK_BYTES_MIN for payload in payloads(message))
