"""One node: a core and the schedulers around it, without processes.

What lives here: `Host`, which carries out what the core wants of its own node, and plays the schedulers: they wait for
work, run tasks, wait for children, give tasks back, and die.  What does not: what goes to other nodes; it is returned.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import assert_never

from hdphrs.audit.foretold import foretell, hold_to
from hdphrs.audit.scan import Copy, facts, scan_leave
from hdphrs.audit.violation import Violation
from hdphrs.explore.work import CRASH, children_of, task, value_of
from hdphrs.protocol import effects as fx
from hdphrs.protocol import events as ev
from hdphrs.protocol import messages as msg
from hdphrs.protocol.node import Node
from hdphrs.protocol.tasks import PROGRAM, Cause, Origin, Outcome, Parting, Piece, Spark, Verdict


@dataclass(slots=True)
class Scheduler:
    """A scheduler process: what it has been given, and tasks that wait for their children."""

    queue: dict[Copy, Spark] = field(default_factory=dict)
    waiting: dict[Copy, tuple[Spark, dict[int, None]]] = field(default_factory=dict)
    """With the slots of the children that are still out."""
    resumed: dict[Copy, None] = field(default_factory=dict)
    """Tasks in the queue that have waited: they have been started, and cannot be given back."""
    stopped: dict[Copy, None] = field(default_factory=dict)
    """Tasks in the queue that were cancelled: they are answered, and do nothing more."""
    hungry: bool = False
    codes: set[bytes] = field(default_factory=set)
    slots: int = 0
    """How many futures it has made."""

    @property
    def not_started(self) -> tuple[Copy, ...]:
        """What it could give back."""
        return tuple(copy for copy in self.queue if copy not in self.resumed)


@dataclass(slots=True)
class Host:
    """One node and what is around its core; each method returns the effects of one event, in order."""

    core: Node
    alive: bool = True
    halt: fx.Halt | None = None
    demand: bool = False
    demands: int = 0
    stopped: bool = False
    schedulers: dict[Origin, Scheduler] = field(default_factory=dict)
    next_origin: int = 1
    awaited: dict[tuple[Origin, int], bytes] = field(default_factory=dict)
    """Futures made here that are empty: (origin, slot), and the paths of their tasks."""

    @property
    def runs(self) -> bool:
        """Whether it takes events."""
        return self.alive and self.halt is None

    @property
    def is_idle(self) -> bool:
        """Whether nothing here has to do with a task, and no leave is to come to its end."""
        core = self.core
        here = len(core.pool) + len(core.supervisor) + len(core.schedulers.held()) + len(self.awaited)
        here += core.supervisor.vanishing + len(core.cancelling)
        guarded = any(True for _ in core.victim.guarded())
        if core.leaving.under_way:
            return False
        return not here and not guarded and not any(one.queue or one.waiting for one in self.schedulers.values())

    def take(self, event: ev.Event, now: float = 0.0) -> list[fx.Effect]:
        """One event for the core; what it wants of this node is done.

        Raises:
            Violation: the core has filled a future twice.
            AssertionError: the core has found, or done, what no interleaving can produce.
        """
        assert self.runs, "this node takes no events any more"
        match event:
            case ev.Exported(origin, tasks):
                self.awaited.update(((origin, slot), spawned.path) for slot, spawned in tasks)
            case ev.Placed(origin, slot, placed):
                self.awaited[origin, slot] = placed.path
            case ev.Cancelled(origin, slots):
                for slot in slots:
                    self.awaited.pop((origin, slot), None)
        foretold = foretell(self.core, event)
        effects = self.core.handle(event, now)
        hold_to(foretold, effects)
        for effect in effects:
            self._carry_out(effect)
        return effects

    def admit(self, ticket: int, slots: int, now: float = 0.0) -> list[fx.Effect]:
        """At the root: a newcomer arrives."""
        return self.take(ev.Arrived(ticket, "host", slots, ("host", 1), 1), now)

    # ---- the schedulers --------------------------------------------------------------------------------------

    def up(self, now: float = 0.0) -> list[fx.Effect]:
        """A scheduler process is started, and ready at once."""
        origin = Origin(self.next_origin)
        self.next_origin += 1
        self.schedulers[origin] = Scheduler()
        return self.take(ev.SchedulerUp(origin), now)

    def starve(self, origin: Origin, room: int, now: float = 0.0) -> list[fx.Effect]:
        """A scheduler waits for work."""
        self.schedulers[origin].hungry = True
        return self.take(ev.Hungry(origin, room), now)

    def run(self, origin: Origin, now: float = 0.0) -> list[fx.Effect]:
        """A scheduler takes the next of its tasks: the task ends, or spawns its children and waits."""
        scheduler = self.schedulers[origin]
        copy = next(iter(scheduler.queue))
        running = scheduler.queue.pop(copy)
        scheduler.resumed.pop(copy, None)
        if copy in scheduler.stopped:
            return self._stop(origin, copy, now)
        begun = self.take(ev.Begun(origin, *copy), now) if running.task.timeout_s else []
        finished = [piece.path for piece in running.pieces if isinstance(piece, Piece)]
        children = [child for child in children_of(running.task) if child.path not in finished]
        if not children:
            outcome = value_of(running.task.path)
            return begun + self.take(ev.Finished(origin, ((*copy, outcome),)), now)
        first = scheduler.slots
        scheduler.slots += len(children)
        slots = range(first, scheduler.slots)
        scheduler.waiting[copy] = running, dict.fromkeys(slots)
        return begun + self.take(ev.Exported(origin, tuple(zip(slots, children, strict=True))), now)

    def _stop(self, origin: Origin, copy: Copy, now: float) -> list[fx.Effect]:
        """A cancelled task comes to its end: it cancels the children that it waits for."""
        scheduler = self.schedulers[origin]
        del scheduler.stopped[copy]
        _, slots = scheduler.waiting.pop(copy, (None, {}))
        effects = self.take(ev.Cancelled(origin, tuple(slots)), now) if slots else []
        return effects + self.take(ev.Finished(origin, ((*copy, STOPPED),)), now)

    def cancel(self, slot: int, now: float = 0.0) -> list[fx.Effect]:
        """At the root: the program cancels one of its futures."""
        return self.take(ev.Cancelled(PROGRAM, (slot,)), now)

    def give_back(self, origin: Origin, now: float = 0.0) -> list[fx.Effect]:
        """A scheduler returns all that it has not started."""
        scheduler = self.schedulers[origin]
        copies = scheduler.not_started
        for copy in copies:
            del scheduler.queue[copy]
            scheduler.stopped.pop(copy, None)
        return self.take(ev.GivenBack(origin, copies), now)

    def crash(
        self, origin: Origin, running: Copy | None, *, blameless: bool, read_of: bytes = b"", now: float = 0.0
    ) -> list[fx.Effect]:
        """A scheduler process dies."""
        del self.schedulers[origin]
        self.awaited = {key: path for key, path in self.awaited.items() if key[0] != origin}
        crash = replace(CRASH, cause=Cause.VALUE) if read_of else CRASH
        return self.take(ev.SchedulerDied(origin, running, crash, blameless, read_of=read_of), now)

    # ---- what the core wants ---------------------------------------------------------------------------------

    def _carry_out(self, effect: fx.Effect) -> None:
        match effect:
            case fx.Teach(origin, digest):
                self.schedulers[origin].codes.add(digest)
            case fx.Unlearn(origin, digest):
                self.schedulers[origin].codes.discard(digest)
            case fx.Start(origin, sparks, first):
                scheduler = self.schedulers[origin]
                assert scheduler.hungry != first, f"scheduler {origin} did not ask for work, or has none"
                scheduler.hungry = False
                for copy in sparks:
                    assert not copy.task.code or copy.task.code in scheduler.codes, f"{copy.ref} comes without its code"
                    scheduler.queue[copy.ref, copy.replica] = copy
            case fx.Deliver(origin, slot, outcome):
                self._fill(origin, slot, outcome)
            case fx.Demand(wanted):
                self.demand = wanted
                self.demands += 1
            case fx.Cancel(origin, copies):
                self._cancel(origin, copies)
            case fx.StopSchedulers():
                self.stopped = True
            case fx.Halt():
                self.halt = effect
            case fx.Send(to, message):
                assert not self.core.members.is_dead(to), f"{message} is sent to {to}, which is dead"
                assert to != self.core.me, f"{message} is sent to itself"
                if isinstance(message, msg.Bye) and message.parting is Parting.LEFT_NOTHING:
                    assert self.core.me is not None
                    scan_leave(self.core.me, facts(self.core, ()), ())
            case fx.Fence() | fx.Admit() | fx.Connect() | fx.Double() | fx.Replace():
                pass
            case _:
                assert_never(effect)

    def _cancel(self, origin: Origin, copies: tuple[Copy, ...]) -> None:
        scheduler = self.schedulers[origin]
        scheduler.hungry = False
        for copy in copies:
            assert copy not in scheduler.stopped, f"{copy} is cancelled a second time"
            if copy in scheduler.waiting:
                scheduler.queue[copy], _ = scheduler.waiting[copy]
                scheduler.resumed[copy] = None
            assert copy in scheduler.queue, f"{copy} is cancelled, and scheduler {origin} does not have it"
            scheduler.stopped[copy] = None

    def _fill(self, origin: Origin, slot: int, outcome: Outcome) -> None:
        path = self.awaited.pop((origin, slot), None)
        if path is None:
            raise Violation(3, f"future {self.core.me}.{origin}.{slot} is filled a second time")
        if outcome.verdict is Verdict.VALUE:
            assert outcome == value_of(path), f"future {self.core.me}.{origin}.{slot} is filled with {outcome}"
        if origin == PROGRAM:
            assert not any(crash.cause is Cause.VALUE for crash in outcome.crashes), "no scheduler reads its values"
            return
        scheduler = self.schedulers[origin]
        scheduler.hungry = False  # it asks again when it has nothing to go on with
        for copy, (parent, slots) in list(scheduler.waiting.items()):
            slots.pop(slot, None)
            if not slots:
                del scheduler.waiting[copy]
                scheduler.queue[copy] = _resumed(parent)
                scheduler.resumed[copy] = None


STOPPED = Outcome(Verdict.RAISED, b"cancelled")
"""What a scheduler answers for a task that it was told to stop."""


def _resumed(parent: Spark) -> Spark:
    """A parent that has all its children: it goes on, and has nothing left to spawn."""
    rest = task(parent.task.path, code=parent.task.code)
    return Spark(parent.ref, parent.replica, rest)
