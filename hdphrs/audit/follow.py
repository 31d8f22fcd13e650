"""The invariants, followed event by event.

What lives here: `Follower`, which knows the one place of each copy of a task, a copy being a ref with a replica number,
and pays only for what an event touches; so the simulator can afford it after every event.  What does not: a look at
everything at once, which finds a copy that was dropped (`scan`).

A copy that a core drops, because it is an orphan or obsolete, keeps its last place here: nobody may start it again
elsewhere, and nobody does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from hdphrs.audit.violation import Violation
from hdphrs.protocol import effects as fx
from hdphrs.protocol import events as ev
from hdphrs.protocol import messages as msg
from hdphrs.protocol.node import Node
from hdphrs.protocol.supervisor import Adopted, InTransition, OnNode, covers
from hdphrs.protocol.tasks import NodeId, Origin, Parting, Spark, TaskRef

Copy = tuple[TaskRef, int]
Link = tuple[NodeId, NodeId]
Place = NodeId | Link
"""At a node, in its pool, guarded or with a scheduler; or on its way."""


class Follower:
    """One cluster under observation.

    For each event, in an order in which every message is sent before it is received:

        effects = cores[node].handle(event, now)
        follower.step(node, event, effects)
    """

    def __init__(self, cores: Mapping[NodeId, Node]) -> None:
        """
        Args:
            cores: those that run; looked at again and again, so that nodes may come and go.
        """
        self._cores = cores
        self._places: dict[Copy, Place] = {}
        self._held: dict[NodeId, dict[Copy, Origin]] = {}
        """What a scheduler of each node has."""
        self._under_way: dict[Link, dict[Copy, None]] = {}
        self._pushed: dict[Copy, None] = {}
        """Of those under way, the threads."""
        self._newest: dict[TaskRef, int] = {}
        """Replica numbers above 0."""
        self._filled: dict[TaskRef, None] = {}
        self._stopped: dict[tuple[NodeId, TaskRef], None] = {}
        """Where it is known that nobody wants a task any more."""
        self._touched: list[Copy] = []
        self._enter: dict[type, Callable[[NodeId, Any], None]] = {
            ev.Exported: self._exported,
            ev.Placed: self._placed,
            ev.Received: self._received,
            ev.Finished: self._finished,
            ev.GivenBack: self._given_back,
            ev.Cancelled: self._cancelled,
            ev.SchedulerDied: self._scheduler_died,
        }

    def step(self, node: NodeId, event: ev.Event, effects: Sequence[fx.Effect]) -> None:
        """What a core has just done with an event.

        Raises:
            Violation: an invariant does not hold.
        """
        enter = self._enter.get(type(event))
        if enter is not None:
            enter(node, event)
        for effect in effects:
            if isinstance(effect, fx.Send):
                self._sent(node, effect.to, effect.message)
                if isinstance(effect.message, msg.Bye):
                    self._parted(node, effect.message)
            elif isinstance(effect, fx.Start):
                self._started(node, effect)
            elif isinstance(effect, fx.Deliver):
                self._delivered(node, event, effect)
            elif isinstance(effect, fx.Fence):
                self._fenced(node, effect, [one.ref for one in effects if isinstance(one, fx.Double)])
            elif isinstance(effect, fx.Double):
                self._doubled(node, effect)
        if self._touched:
            for copy in self._touched:
                self._check(copy)
            self._touched.clear()

    def lost(self, source: NodeId, to: NodeId, message: msg.Message) -> None:
        """A message that was sent will never arrive."""
        for copy in _copies(message):
            if self._places.get(copy) == (source, to):
                self._land(copy, (source, to))
                del self._places[copy]

    def died(self, node: NodeId) -> None:
        """A node's process is gone, with all that was there or on its way to it."""
        for copy, place in list(self._places.items()):
            if place == node:
                del self._places[copy]
        self._held.pop(node, None)
        for link in [link for link in self._under_way if link[1] == node]:
            self._vanish(link)

    # ---- what an event brings --------------------------------------------------------------------------------

    def _exported(self, node: NodeId, event: ev.Exported) -> None:
        for slot, _ in event.tasks:
            self._places[TaskRef(node, event.origin, slot), 0] = node

    def _placed(self, node: NodeId, event: ev.Placed) -> None:
        self._places[TaskRef(node, event.origin, event.slot), 0] = node

    def _received(self, node: NodeId, event: ev.Received) -> None:
        message = event.message
        if isinstance(message, msg.Cancel):
            if message.node == node:
                self._stopped.update(((node, ref), None) for ref in message.refs)
            return
        if isinstance(message, msg.Req | msg.Ack):
            self._touched.append((message.ref, message.replica))
            return
        core = self._cores[node]
        for copy in _copies(message):
            link = event.sender, node
            self._expect(copy, link, "arrives")
            self._land(copy, link)
            if core.members.is_dead(event.sender):
                del self._places[copy]
            else:
                self._places[copy] = node
                self._touched.append(copy)

    def _finished(self, node: NodeId, event: ev.Finished) -> None:
        for ref, replica, _ in event.results:
            self._release(node, event.scheduler, (ref, replica), "finished")
            del self._places[ref, replica]

    def _given_back(self, node: NodeId, event: ev.GivenBack) -> None:
        for copy in event.sparks:
            self._release(node, event.scheduler, copy, "given back")

    def _cancelled(self, node: NodeId, event: ev.Cancelled) -> None:
        for slot in event.slots:
            ref = TaskRef(node, event.origin, slot)
            self._filled[ref] = self._stopped[node, ref] = None

    def _scheduler_died(self, node: NodeId, event: ev.SchedulerDied) -> None:
        held = self._held.get(node, {})
        for copy in [copy for copy, holder in held.items() if holder == event.scheduler]:
            del held[copy]

    def _release(self, node: NodeId, scheduler: Origin, copy: Copy, how: str) -> None:
        if self._held.get(node, {}).pop(copy, None) != scheduler:
            raise Violation(4, f"{_name(copy)} is {how} by {node}.{scheduler}, which did not have it")

    # ---- what a core does ------------------------------------------------------------------------------------

    def _sent(self, node: NodeId, to: NodeId, message: msg.Message) -> None:
        if isinstance(message, msg.Schedule):
            for spark in message.sparks:
                if spark.placed:
                    raise Violation(4, f"{_name((spark.ref, spark.replica))} is a thread, and leaves {node} for {to}")
                self._depart(node, to, spark)
        elif isinstance(message, msg.Push):
            self._depart(node, to, message.spark)
            self._pushed[message.spark.ref, message.spark.replica] = None

    def _depart(self, node: NodeId, to: NodeId, spark: Spark) -> None:
        copy = spark.ref, spark.replica
        self._expect(copy, node, f"leaves {node} for {to}")
        if copy in self._held.get(node, ()):
            raise Violation(4, f"{_name(copy)} leaves {node} for {to} while a scheduler has it")
        self._places[copy] = node, to
        self._under_way.setdefault((node, to), {})[copy] = None
        self._touched.append(copy)

    def _started(self, node: NodeId, effect: fx.Start) -> None:
        held = self._held.setdefault(node, {})
        for spark in effect.sparks:
            copy = spark.ref, spark.replica
            self._expect(copy, node, f"is started on {node}")
            if (node, spark.ref) in self._stopped and spark.task.supervised and not self._is_on_its_way(spark.ref):
                raise Violation(
                    4, f"{_name(copy)} is started by {node}.{effect.scheduler}, which knew that nobody wants it"
                )
            if copy in held:
                raise Violation(4, f"{_name(copy)} is started by {node}.{effect.scheduler} and by {held[copy]}")
            held[copy] = effect.scheduler

    def _is_on_its_way(self, ref: TaskRef) -> bool:
        """Whether the supervisor still waits to learn where a copy is, and will have it stopped there."""
        core = self._cores.get(ref.node)
        return core is not None and ref in core.supervisor._vanishing

    def _delivered(self, node: NodeId, event: ev.Event, effect: fx.Deliver) -> None:
        ref = TaskRef(node, effect.origin, effect.slot)
        if ref in self._filled:
            raise Violation(3, f"{ref} is filled a second time, with {effect.outcome.verdict.name}")
        self._filled[ref] = None
        if isinstance(event, ev.Exported | ev.Placed):
            self._places.pop((ref, 0), None)  # it had used up its attempts before, or had nowhere to go

    def _fenced(self, node: NodeId, effect: fx.Fence, doubled: Sequence[TaskRef]) -> None:
        """Nothing comes from there any more, and what this node re-created is here.

        What it had sent there may have reached the door: a node that was stopped takes it when it runs again, before it
        learns that it is dead.  With the same event tasks may have been started once more: `doubled`.
        """
        self._vanish((effect.node, node))
        recreated = 0
        for ref, record in self._cores[node].supervisor.records():
            known = self._newest.get(ref, 0)
            replica = record.replica - doubled.count(ref)
            if replica == known:
                continue
            if replica != known + 1:
                raise Violation(2, f"replica {replica} of {ref} comes after replica {known}")
            recreated += 1
            self._newest[ref] = replica
            self._places[ref, replica] = node
            self._touched.append((ref, replica))
        if recreated != effect.recreated:
            told = f"{effect.recreated} tasks were re-created on {node}, {recreated} have a new replica number"
            raise Violation(2, told)

    def _parted(self, node: NodeId, bye: msg.Bye) -> None:
        if bye.parting is not Parting.LEFT_NOTHING:
            return
        is_dead = self._cores[node].members.is_dead
        here = [*self._held.get(node, ())]
        for (source, to), copies in self._under_way.items():
            if node in (source, to) and not is_dead(source) and not is_dead(to):
                here += copies
        if here:
            told = ", ".join(map(_name, here))
            raise Violation(4, f"node {node} says that it leaves nothing behind, but there is {told}")

    def _doubled(self, node: NodeId, effect: fx.Double) -> None:
        known = self._newest.get(effect.ref, 0)
        if effect.replica != known + 1:
            raise Violation(2, f"replica {effect.replica} of {effect.ref} comes after replica {known}")
        self._newest[effect.ref] = effect.replica
        self._places[effect.ref, effect.replica] = node
        self._touched.append((effect.ref, effect.replica))

    # ---- places ----------------------------------------------------------------------------------------------

    def _expect(self, copy: Copy, place: Place, what: str) -> None:
        actual = self._places.get(copy)
        if actual != place:
            raise Violation(4, f"{_name(copy)} {what}, but it is {_where(actual)}")

    def _land(self, copy: Copy, link: Link) -> None:
        del self._under_way[link][copy]
        self._pushed.pop(copy, None)

    def _vanish(self, link: Link) -> None:
        for copy in self._under_way.pop(link, ()):
            self._pushed.pop(copy, None)
            del self._places[copy]

    def _check(self, copy: Copy) -> None:
        """Invariant 1, for one copy: its supervisor knows where it may be."""
        ref, replica = copy
        core = self._cores.get(ref.node)
        record = core.supervisor.record(ref) if core is not None else None
        place = self._places.get(copy)
        if record is None or place is None or record.replica != replica or not record.task.supervised:
            return
        location = record.location
        if isinstance(location, Adopted):
            return  # the copy is gone: an orphan is waited for in its place
        if not isinstance(place, tuple):
            right = covers(location, place)
        elif copy in self._pushed:
            right = location == OnNode(place[1])
        else:
            right = location == InTransition(*place)
        if not right:
            raise Violation(1, f"{_name(copy)} is {_where(place)}, but tracked as {location}")


def _copies(message: msg.Message) -> Iterable[Copy]:
    if isinstance(message, msg.Schedule):
        return [(spark.ref, spark.replica) for spark in message.sparks]
    if isinstance(message, msg.Push):
        return [(message.spark.ref, message.spark.replica)]
    return ()


def _name(copy: Copy) -> str:
    return f"{copy[0]}#{copy[1]}"


def _where(place: Place | None) -> str:
    if place is None:
        return "nowhere"
    return f"on its way from {place[0]} to {place[1]}" if isinstance(place, tuple) else f"on {place}"
