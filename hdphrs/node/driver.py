"""The driver: carries events to the protocol core and its effects to the world.

What lives here: the loop that `hdphrs.protocol` asks for, nothing else.  The crew (schedulers), the transport (peers)
and the program are given; tests give it others, in virtual time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, Protocol, assert_never

import trio

from hdphrs.console import say
from hdphrs.node.books import Work
from hdphrs.protocol import effects as fx
from hdphrs.protocol.events import Crowded, Event, Kept, Leave, Received, Suspected, Tick
from hdphrs.protocol.messages import Keep, Message, Term
from hdphrs.protocol.node import Node
from hdphrs.protocol.paths import first_index
from hdphrs.protocol.tasks import (
    PROGRAM,
    ROOT,
    Member,
    NodeId,
    Origin,
    Outcome,
    Parting,
    Payload,
    Piece,
    Spark,
    TaskRef,
)
from hdphrs.transport.interface import Fenced, Lightened, Noted, Said, Told, Transport, TransportEvent
from hdphrs.wire import local
from hdphrs.wire.items import pack_outcome

Feed = Callable[[Event, float], list[fx.Effect]]
"""`Node.handle`, or what stands in front of it."""


Place = tuple[str, int]
"""A host, and how many schedulers a node has there."""

UNKNOWN: Final[Place] = "", 0
"""Of a node that is known by its messages alone; it will be announced."""

WORK_S = 0.1
WORK_NODE_S = 0.01
"""The latter for each node: so the root hears of this a hundred times a second at most."""


def work_beat_s(nodes: int) -> float:
    """How often a node tells the root what it has done, in a cluster of so many."""
    return max(WORK_S, WORK_NODE_S * nodes)


class Schedulers(Protocol):
    """What the driver needs of the schedulers."""

    def teach(self, origin: Origin, digest: bytes, data: Payload) -> None: ...
    def start_first(self, origin: Origin, sparks: Sequence[Spark]) -> None: ...
    def unlearn(self, origin: Origin, digest: bytes) -> None: ...
    def start(self, origin: Origin, sparks: Sequence[Spark]) -> None: ...
    def deliver(self, origin: Origin, slot: int, outcome: Outcome) -> None: ...
    def demand(self, wanted: bool) -> None: ...
    def cancel(self, origin: Origin, copies: Sequence[tuple[TaskRef, int]]) -> None: ...
    def replace(self, origin: Origin, copies: Sequence[tuple[TaskRef, int]]) -> None: ...
    def tell_nodes(self, nodes: list[list[Any]]) -> None: ...
    def kept(self, pieces: Sequence[Piece]) -> None: ...
    def collect(self) -> None: ...
    def work(self) -> Work: ...
    def tell(self, topic: bytes, rank: float, find: bytes) -> bool: ...
    def found(self) -> list[tuple[bytes, float, bytes]]: ...
    def flush(self) -> None: ...
    async def stop(self) -> None: ...


class ProgramLink(Protocol):
    """What the driver needs of the link to the program."""

    def post(self, message: list[Any]) -> None: ...
    def flush(self) -> None: ...


class Driver:
    """One node's core, wired to its world."""

    def __init__(
        self,
        core: Node,
        schedulers: Schedulers,
        *,
        feed: Feed | None = None,
        program: ProgramLink | None = None,
        here: Place = UNKNOWN,
        root: Place = UNKNOWN,
        on_join: Callable[[Member], None] = lambda member: None,
        on_death: Callable[[NodeId, int, Parting], None] = lambda node, recreated, parting: None,
        on_work: Callable[[NodeId, Work], None] = lambda node, work: None,
        on_value: Callable[[int, Outcome], None] = lambda slot, outcome: None,
        on_outcome: Callable[[int, Outcome], None] = lambda slot, outcome: None,
        on_said: Callable[[int, bytes], None] = lambda lost, bundle: None,
        glance: Callable[[NodeId, Message], None] = lambda sender, message: None,
        has_filled: Callable[[Origin, int], bool] = lambda origin, slot: False,
    ) -> None:
        """
        Args:
            feed: in place of `core.handle`, to record what it does.
            program: the link to the program, at the root.
            here: host and schedulers of this node.
            root: those of the root, which nobody announces.
            on_join: told, at the root, of each node that has joined.
            on_death: told of each node that is declared dead or has left, of how many tasks were re-created here for
                it, and which of the two it was.
            on_work: told, at the root, what a node has done so far.
            on_value: told, at the root, of each value that the program has got.
            on_outcome: told, at the root, of the end of each of the program's tasks.
            on_said: gets, at the root, what tasks on other nodes say, and how much of that was dropped before.
            glance: sees what another node says before the core hears of it (`ahead.py`).
            has_filled: whether a future was filled before the core has heard of it.
        """
        self.core = core
        self._feed = feed or core.handle
        self.halted: trio.Event = trio.Event()
        self.stopping: trio.Event = trio.Event()
        self.root_gone: trio.Event = trio.Event()
        """The root needs nothing more of this node: it is dead, or has declared it dead."""
        self.halt: fx.Halt | None = None
        self.told_to_end = False
        """At the root: by a signal, while the program ran."""
        self.changed: trio.Event = trio.Event()
        """Set, and made anew, when a node joins or dies, and when the run ends."""
        self._schedulers = schedulers
        self._transport: Transport | None = None
        self._program = program
        self._on_join = on_join
        self._on_death = on_death
        self._on_work = on_work
        self._on_value = on_value
        self.on_outcome = on_outcome
        self._on_said = on_said
        self._glance = glance
        self._has_filled = has_filled
        self._time: Callable[[], float] | None = None
        """Of trio's clock."""
        self._armed_s: float | None = None
        self._rearm = trio.Event()
        self._in_turn = False
        self._is_crowded = False
        """What the core knows of the links."""
        self._roster = (0, 0)
        self._here = here
        self._places = {ROOT: root}
        """Of the other nodes that there have been."""
        self._stirred = trio.Event()
        """Set as soon as a scheduler has something to do, after a time in which none had."""
        self._stirred.set()

    @property
    def is_leaving(self) -> bool:
        """Whether this node was told to."""
        return self.core.me is not None and self.core.leaving.under_way

    def attach_transport(self, transport: Transport) -> None:
        """The transport delivers to `hear`, so it is made after the driver."""
        self._transport = transport

    def hear(self, event: TransportEvent) -> None:
        """One event of the transport."""
        if isinstance(event, Received):
            if self.halt is None:
                self._glance(event.sender, event.message)
            self.handle([event])
        elif isinstance(event, Noted):
            self._on_work(event.sender, Work(*event.seconds))
        elif isinstance(event, Told):
            self._schedulers.tell(event.topic, event.rank, event.find)
        elif isinstance(event, Said):
            self._on_said(event.lost, event.bundle)
        elif isinstance(event, Lightened):
            self.handle([])
        elif isinstance(event, Fenced):
            self.root_gone.set()  # it has ruled
            self.end(fx.Halt("it was declared dead while it was stopped or cut off", rejoin=not self.is_leaving))
        else:
            if event == Suspected(ROOT):
                self.root_gone.set()
            self.handle([event])

    def handle(self, events: Sequence[Event]) -> None:
        """Feed the core, carry out what it wants.  An exception in here is our bug and ends the node (fail-stop)."""
        if self.halt is not None:
            return
        if self._time is None:
            self._time = trio.lowlevel.current_clock().current_time
        now_s = self._time()
        core, feed, program, transport = self.core, self._feed, self._program, self._transport
        schedulers = self._schedulers
        for event in events:
            if transport is not None:
                transport.hold()
            if isinstance(event, (Received, Kept)):  # a union would be made anew each time
                self._look_at(event)
            for effect in feed(event, now_s):
                self._carry_out(effect)
            # Somebody waits for this, while the next event is mostly somebody's hunger.
            if program is not None:
                program.flush()
            schedulers.flush()
            if transport is not None:
                transport.release()
        if core.roster != self._roster:
            self._roster = core.roster
            self.tell_nodes()
            if program is not None:
                program.flush()
        if transport is not None and transport.is_crowded is not self._is_crowded:
            self._is_crowded = transport.is_crowded
            self.handle([Crowded(self._is_crowded)])
        schedulers.flush()  # what was posted without an event, too
        if not self._stirred.is_set() and core.schedulers.busy:
            self._stirred.set()
        if not self._in_turn:
            self._arm()

    def begin_turn(self) -> None:
        """Until `end_turn` there will be one event after the other, and `tick` has no turn."""
        self._in_turn = True

    def end_turn(self) -> None:
        """See there."""
        self._in_turn = False
        self._arm()

    def _arm(self) -> None:
        """The core may have an earlier deadline than before."""
        deadline_s = self.core.next_deadline()
        if deadline_s is not None and (self._armed_s is None or deadline_s < self._armed_s):
            self._rearm.set()

    def _look_at(self, event: Received | Kept) -> None:
        """Before the core sees it."""
        if isinstance(event, Kept):
            self._pass_on(event.pieces)
        elif isinstance(event.message, Term):
            self._schedulers.work()  # brings the counters up to date, for the answer has them
        elif isinstance(event.message, Keep):
            self._pass_on(event.message.pieces)

    def _pass_on(self, pieces: Sequence[Piece]) -> None:
        """Among the pieces that come to the root are outcomes of calls for which the program waits (decision 16)."""
        if self._program is None:
            return
        parts = [[piece.path, pack_outcome(piece.outcome)] for piece in pieces if first_index(piece.path) == piece.path]
        if parts:
            self._program.post([local.PARTS, parts])

    def _carry_out(self, effect: fx.Effect) -> None:
        match effect:
            case fx.Deliver(origin, slot, outcome):
                is_filled = self._has_filled(origin, slot)
                if origin != PROGRAM:
                    if not is_filled:
                        self._schedulers.deliver(origin, slot, outcome)
                elif self._program is not None:
                    self.on_outcome(slot, outcome)
                    if not is_filled:
                        self._program.post([local.DELIVER, slot, pack_outcome(outcome)])
                    self._on_value(slot, outcome)
            case fx.Start(scheduler, sparks, first):
                if first:
                    self._schedulers.start_first(scheduler, sparks)
                else:
                    self._schedulers.start(scheduler, sparks)
            case fx.Teach(scheduler, digest, data):
                self._schedulers.teach(scheduler, digest, data)
            case fx.Unlearn(scheduler, digest):
                self._schedulers.unlearn(scheduler, digest)
            case fx.Demand(wanted):
                self._schedulers.demand(wanted)
            case fx.Send(to, message):
                self._peers().send(to, message)
                if isinstance(message, Keep):
                    self._schedulers.kept(message.pieces)
            case fx.Admit(ticket, member):
                self._places[member.node] = member.host, member.slots
                self._peers().admit(ticket, member)
                for find in self._schedulers.found():
                    self._peers().tell(member.node, *find)
                self._on_join(member)
            case fx.Connect(member):
                self._places[member.node] = member.host, member.slots
                self._peers().connect(member)
            case fx.Fence(node, recreated, parting):
                self._peers().fence(node)
                self._on_death(node, recreated, parting)
            case fx.Cancel(scheduler, copies):
                self._schedulers.cancel(scheduler, copies)
            case fx.Replace(scheduler, copies):
                self._schedulers.replace(scheduler, copies)
            case fx.Double(_, _, name):
                say(f"task {name} takes longer than others of its kind, and is started once more")
            case fx.StopSchedulers():
                self.tell_work()
                self.stopping.set()
                self._tell_change()
            case fx.Halt():
                self.end(effect)
            case _:
                assert_never(effect)

    def _peers(self) -> Transport:
        assert self._transport is not None, "a node without a transport has no peers"
        return self._transport

    def end(self, halt: fx.Halt) -> None:
        """This node's part is over; the first reason counts."""
        if self.halt is None:
            self.halt = halt
            self.halted.set()

    def tell_nodes(self) -> None:
        """Tell schedulers and program who is alive."""
        me, *others = self.core.live_nodes()
        told: list[list[Any]] = [[me, *self._here]]
        told += [[node, *self._places.get(node, UNKNOWN)] for node in others]
        self._schedulers.tell_nodes(told)
        if self._program is not None:
            self._program.post([local.NODES, told])
        self._tell_change()

    def _tell_change(self) -> None:
        self.changed.set()
        self.changed = trio.Event()

    def tell_work(self) -> Work:
        """Let the root know what has been done here."""
        work = self._schedulers.work()
        if self.core.me == ROOT:
            self._on_work(ROOT, work)
        elif self._transport is not None:
            self._transport.note(ROOT, work)
        return work

    def leave(self, grace_s: float) -> None:
        """This node was told to leave, within so many seconds: what its schedulers have laid down goes first."""
        self._schedulers.collect()
        self.handle([Leave(grace_s)])

    def spread(self, topic: bytes, rank: float, find: bytes) -> None:
        """A task here has found something: let all tasks of its search know, if it is news."""
        if self._schedulers.tell(topic, rank, find) and self._transport is not None:
            for node in self.core.live_nodes()[1:]:
                self._transport.tell(node, topic, rank, find)

    async def keep_telling(self) -> None:
        """Tell it again and again, with what the schedulers have laid down, for the case that this node dies; until
        cancelled.

        While no scheduler has anything to do there is nothing to tell, and nobody is woken for it.
        """
        told = Work()
        while True:
            await trio.sleep(work_beat_s(len(self.core.live_nodes())))
            transport = self._peers()
            transport.hold()
            self._schedulers.collect()
            has_more = self._schedulers.work() != told
            if has_more:
                told = self.tell_work()
            transport.release()
            if not has_more and not self.core.schedulers.busy:
                self._stirred = trio.Event()
                await self._stirred.wait()

    async def tick(self) -> None:
        """Wake the core at its deadlines, until cancelled."""
        while True:
            self._armed_s = self.core.next_deadline()
            self._rearm = trio.Event()
            with trio.move_on_at(float("inf") if self._armed_s is None else self._armed_s) as sleep:
                await self._rearm.wait()
            if sleep.cancelled_caught:
                if self.is_leaving:  # this may be the end of it
                    self._schedulers.collect()
                self.handle([Tick()])
