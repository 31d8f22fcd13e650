"""A virtual scheduler: does with virtual tasks what `hdphrs/scheduler/hub.py` does with real ones.

What lives here: the loop, the stack that runs and those that wait, and the talk with the node.  A task
computes for a while, spawns its children, gets them, computes again and ends.  A child that nobody has taken runs in
place, on its parent's stack; one that is away suspends the stack, and the scheduler goes on with other work.  When the
process dies, everything in here is lost with it.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any, NamedTuple

from hdphrs.protocol import events as ev
from hdphrs.protocol.pieces import piece_of, worth
from hdphrs.protocol.tasks import NodeId, Origin, Outcome, Spark, Task, TaskRef, Verdict
from hdphrs.sim.errors import Wrong
from hdphrs.sim.export import Exporter
from hdphrs.sim.program import number_of
from hdphrs.sim.reuse import Reuse
from hdphrs.sim.stack import AWAY, BEGIN, DONE, END, GET, RUNNING, SPAWN, WAITING, Frame, Future, Stack
from hdphrs.sim.world import Action

if TYPE_CHECKING:
    from hdphrs.sim.cluster import Cluster
    from hdphrs.sim.host import Host

RESULTS_MAX = 16
WAIT_NS = 1_000_000
SOON_NS = 5_000_000
FEW = 1
"""As in the real one, which does not know how long a task takes, but how long the last of its kind has taken."""


STOPPED = Outcome(Verdict.RAISED, b"cancelled")


class Death(NamedTuple):
    """That of a scheduler process."""

    scheduler: Scheduler
    root: Spark | None
    """Of the stack that had the core."""
    blameless: bool
    read_of: bytes
    """The path of the task whose value it was reading, if it was."""


class Scheduler:
    """One scheduler process, from the moment it is ready."""

    def __init__(self, cluster: Cluster, host: Host, origin: Origin) -> None:
        self.origin = origin
        self.nodes: list[NodeId] = []
        self.demand: bool = False
        """The byte in the shared page."""
        self.asked = False
        """Whether the core knows that it is hungry."""
        self.handed: dict[tuple[TaskRef, int], Task] = {}
        """What the node has handed to it, and it has not answered."""
        self.dead: bool = False
        self.stalled: bool = False
        self.stack: Stack | None = None
        """What has the core."""
        self.computed_ns: dict[int, int] = {}
        """By task, how long."""
        self._cluster = cluster
        self._world = cluster.world
        self._program = cluster.program
        self._host = host
        self._local_ns = cluster.drawn.local_us * 1000
        self._eager = bool(cluster.drawn.eager)
        self._began_ns = 0
        self._reuses: dict[tuple[TaskRef, int], Reuse] = {}
        """Of those that are run again."""
        self._hungry = False
        self._mine: dict[tuple[TaskRef, int], None] = {}
        """What it has got and not answered."""
        self._cancelled: dict[tuple[TaskRef, int], None] = {}
        """Of these, what is to end; only the running one is not at once."""
        self._given_up: dict[int, None] = {}
        """Slots whose outcomes may still arrive."""
        self._late: list[tuple[Action, Any]] = []
        self._mail: deque[tuple[Action, Any]] = deque()
        self._exporter = Exporter(cluster.program, origin, self._tell)
        self._deque = self._exporter.deque
        self._first: deque[Spark] = deque()
        """To be run before what runs."""
        self._ready: deque[Stack] = deque()
        self._results: list[tuple[TaskRef, int, Outcome]] = []
        self._until_ns = 0
        """The oldest of them waits until then at most."""

    @property
    def is_running(self) -> bool:
        """Whether it is deep in a task."""
        return self.stack is not None

    # ---- what the node says ----------------------------------------------------------------------------------

    def receive(self, mail: tuple[Action, Any]) -> None:
        """Something of the node has arrived; it is read when the scheduler comes to it."""
        if self.dead:
            return
        self._mail.append(mail)
        if self.stack is None and not self.stalled:
            self._advance()

    def learn_code(self, digest: bytes) -> None:
        """`Teach`."""
        if digest in self._exporter.taught:
            raise Wrong(f"scheduler {self._host.node}.{self.origin} is taught what it knows")
        self._exporter.taught[digest] = None

    def forget_code(self, digest: bytes) -> None:
        """`Unlearn`."""
        self._exporter.forget_code(digest)

    def learn_nodes(self, nodes: list[NodeId]) -> None:
        """Who is alive."""
        self.nodes = nodes

    def start(self, sparks: tuple[Spark, ...]) -> None:
        """`Start`."""
        self._hungry = False
        self._deque.extend(reversed(sparks))
        self._mine.update((_copy(spark), None) for spark in sparks)

    def start_first(self, sparks: tuple[Spark, ...]) -> None:
        """`Start`, before what runs."""
        self._first.extend(sparks)
        self._mine.update((_copy(spark), None) for spark in sparks)

    def deliver(self, filled: tuple[int, Outcome]) -> None:
        """`Deliver`."""
        slot, outcome = filled
        self._hungry = False
        future = self._exporter.away.pop(slot, None)
        if slot in self._given_up:
            return  # it was under way
        if future is None:
            raise Wrong(f"slot {slot} of scheduler {self._host.node}.{self.origin} is filled, and nobody waits for it")
        if self._dies_of(future.number, outcome):
            return
        self._cluster.judge(future.number, outcome)
        future.contribution = self._program.contribution(future.number, outcome)
        self._fill(future)

    def _dies_of(self, number: int, outcome: Outcome) -> bool:
        """Whether to read what a task has come to takes this process down."""
        if not self._program.deadly[number] or outcome.verdict not in (Verdict.VALUE, Verdict.RAISED):
            return False
        self._world.tally("readers killed")
        self.die(blameless=False, read_of=self._program.task[number].path)
        return True

    def cancel(self, copies: tuple[tuple[TaskRef, int], ...]) -> None:
        """`Cancel`: what it has started ends where it waits, what runs with its next `get` of something elsewhere."""
        self._hungry = False
        for copy in copies:
            if copy in self._mine:  # else it was answered, or given back, a moment ago
                self._cancelled[copy] = None
                if self.stack is None or _copy(self.stack.root) != copy:
                    self._stop(copy)

    def _stop(self, copy: tuple[TaskRef, int]) -> None:
        """A cancelled task ends, and gives up what it has spawned."""
        given_up = [slot for slot, future in self._exporter.away.items() if _copy(future.root) == copy]
        for slot in given_up:
            del self._exporter.away[slot]
            self._given_up[slot] = None
        if given_up:
            self._tell(ev.Cancelled(self.origin, tuple(given_up)))
        kept = [item for item in self._deque if _copy(item if isinstance(item, Spark) else item.root) != copy]
        self._deque.clear()
        self._deque.extend(kept)
        self._first = deque(spark for spark in self._first if _copy(spark) != copy)
        self._ready = deque(stack for stack in self._ready if _copy(stack.root) != copy)
        del self._cancelled[copy]
        self._world.tally("stopped")
        self._answer(copy, STOPPED)

    def _answer(self, copy: tuple[TaskRef, int], outcome: Outcome) -> None:
        del self._mine[copy]
        if not self._results:
            self._until_ns = self._world.now_ns + WAIT_NS
        self._results.append((*copy, outcome))

    def quit(self, _: None) -> None:
        """The run has ended."""
        self.stop()

    # ---- life ------------------------------------------------------------------------------------------------

    def rise(self) -> None:
        """The process is ready."""
        self._tell(ev.SchedulerUp(self.origin))
        self._advance()

    def die(self, *, blameless: bool, read_of: bytes = b"") -> None:
        """The process is gone."""
        if self.dead:
            return
        self.stop()
        root = None if self.stack is None else self.stack.root
        self._world.post(self._local_ns, self._buried, Death(self, root, blameless, read_of))

    def stop(self) -> None:
        """The process is no more, wherever it was."""
        if not self.dead and self.stack is not None:
            self._account(self.stack.frames[-1])
        self.dead = True

    def _buried(self, died: Death) -> None:
        self._host.when_running(self._host.crew.bury, died)

    def go_on(self) -> None:
        """It was stopped, together with its node."""
        if self.stalled and not self.dead:
            self.stalled = False
            late, self._late = self._late, []
            for action, argument in late:
                action(argument)
            if self.stack is None:
                self._advance()

    def speak(self) -> None:
        """The helper thread, for a task that neither spawns nor gets for long."""
        if not self.dead and not self.stalled:
            if self.demand:
                self._export(careful=False)
            self._flush()

    # ---- the loop --------------------------------------------------------------------------------------------

    def _compute(self, cost_ns: int) -> None:
        self._began_ns = self._world.now_ns
        self._world.post(cost_ns, self._computed, None)

    def _account(self, frame: Frame) -> None:
        """It has computed since it began; a stop is no computing."""
        program, number = self._program, frame.number
        cost_ns = program.before_ns[number] if frame.phase == BEGIN else program.after_ns[number]
        for_ns = min(cost_ns, self._world.now_ns - self._began_ns)
        self.computed_ns[number] = self.computed_ns.get(number, 0) + for_ns
        self._cluster.accounts.compute(number, for_ns)

    def _computed(self, _: None) -> None:
        if self.stalled:
            self._late.append((self._computed, None))
        elif not self.dead:
            stack = self.stack
            assert stack is not None
            frame = stack.frames[-1]
            if frame.phase == BEGIN and self._program.poison[frame.number]:
                self._world.tally("poisonings")
                self.die(blameless=False)
                return
            self._account(frame)
            frame.phase += 1
            self._advance()

    def _advance(self) -> None:
        """Go on until something takes time, or there is nothing to do."""
        program = self._program
        while not self.dead:
            stack = self.stack
            if stack is None:
                self._read()
                if self.dead:
                    return
                stack = self._next()
                if stack is None:
                    return
                self.stack = stack
            frame = stack.frames[-1]
            if frame.phase != BEGIN and self._is_cancelled(stack):
                self.stack = None
                self._stop(_copy(stack.root))
                continue
            if frame.phase == SPAWN:
                self._read()
                if self.dead:
                    return  # of what it has read
                if self._first:
                    self._world.tally("gave way")
                    self._ready.append(stack)
                    self.stack = None
                    continue
            match frame.phase:
                case 0:  # BEGIN
                    self._compute(program.before_ns[frame.number])
                    return
                case 1:  # SPAWN
                    frame.phase = GET
                    if program.children[frame.number]:
                        self._spawn(stack, frame)
                case 2:  # GET
                    if not frame.gets:
                        if program.after_ns[frame.number]:
                            self._compute(program.after_ns[frame.number])
                            return
                        frame.phase = END
                    else:
                        self._get(stack, frame)
                case _:
                    self._finish(stack, frame)

    def _next(self) -> Stack | None:
        """Resumed tasks first, then the deque, youngest first, then the node."""
        while True:
            if self._first:
                self._flush()
                return self._begin(self._first.popleft())
            if self._ready:
                self._flush()
                return self._ready.popleft()
            if not self._deque:
                self._starve()
                return None
            item = self._deque.pop()
            if isinstance(item, Spark):
                return self._begin(item)
            if item.status == WAITING:
                item.status = RUNNING
                self._flush()
                return Stack(item.root, Frame(item.number, item, self._world.now_ns))

    def _begin(self, spark: Spark) -> Stack:
        number = number_of(spark.task)
        if spark.task.code not in self._exporter.taught:
            raise Wrong(f"{spark.ref} is started on {self._host.node}.{self.origin}, which does not have its code")
        if self._results:
            self._pass_on(number)
        if spark.pieces:
            self._reuses[spark.ref, spark.replica] = Reuse(spark, self._program)
        return Stack(spark, Frame(number, None, self._world.now_ns))

    def _pass_on(self, following: int) -> None:
        """Results have gathered, and this task is to run next.

        The real one is hungry in time where its node is alone; so is this one if times are what matters.
        """
        alone = len(self.nodes) <= 1 or not self._program.is_paper
        cost_ns, others = self._program.before_ns[following], len(self._deque)
        ends = not self._program.children[following] and others <= FEW and cost_ns * (1 + others) < SOON_NS
        if alone and ends and not self._hungry and not self._ready:
            self._world.tally("hungry in time")
            self._starve()
        elif len(self._results) >= RESULTS_MAX or self._world.now_ns + cost_ns > self._until_ns:
            self._flush()

    def _spawn(self, stack: Stack, frame: Frame) -> None:
        program, root = self._program, stack.root
        careful = bool(root.crashes)
        met = self._reuses[root.ref, root.replica].met(frame.number) if root.pieces else {}
        futures: dict[int, Future] = {}
        for child in program.children[frame.number]:
            future = futures[child] = Future(child, root)
            outcome = met.get(child)
            if outcome is not None:
                self._reuse(future, outcome)
                if self.dead:
                    return
                continue
            if program.place[child] >= 0 and self.nodes:
                self._exporter.place(future, sorted(self.nodes) if program.is_paper else self.nodes)
                continue
            self._deque.append(future)
            if child in met:
                self._exporter.export_youngest()
            if careful or self.demand or self._eager:
                self._export(careful=careful or self._eager)
        frame.gets = [futures[child] for child in reversed(program.got[frame.number])]

    def _reuse(self, future: Future, outcome: Outcome) -> None:
        if self._dies_of(future.number, outcome):
            return
        self._cluster.judge(future.number, outcome)
        self._world.tally("pieces used")
        future.contribution = self._program.contribution(future.number, outcome)
        future.status = DONE

    def _get(self, stack: Stack, frame: Frame) -> None:
        future = frame.gets[-1]
        if future.status == AWAY:
            self._read()
            if self.dead or self._is_cancelled(stack):
                return
        if future.status == DONE:
            frame.contributions.append(future.contribution)
            frame.gets.pop()
        elif future.status == WAITING:
            future.status = RUNNING
            if self._deque and self._deque[-1] is future:
                self._deque.pop()
            stack.frames.append(Frame(future.number, future, self._world.now_ns))
        else:
            future.waiter = stack
            self.stack = None

    def _finish(self, stack: Stack, frame: Frame) -> None:
        cost_s = (self._world.now_ns - frame.began_ns) / 1e9
        outcome = self._program.combine(frame.number, frame.contributions, cost_s)
        stack.frames.pop()
        if frame.future is None:
            self._answer(_copy(stack.root), outcome)
        else:
            self._keep(stack.root, frame.number, outcome)
            frame.future.contribution = self._program.contribution(frame.number, outcome)
            self._fill(frame.future)
        if not stack.frames:
            self.stack = None

    def _keep(self, root: Spark, number: int, outcome: Outcome) -> None:
        """A child has been run in place: the root keeps its value if that was worth it."""
        cluster = self._cluster
        if not cluster.drawn.pieces_bytes_max or not root.task.supervised:
            return
        if worth(cluster.config, len(self.nodes), outcome) and cluster.is_sampled():
            self._tell(ev.Kept((piece_of(self._program.task[number], outcome),)))

    def _fill(self, future: Future) -> None:
        future.status = DONE
        if future.waiter is not None:
            self._ready.append(future.waiter)

    # ---- the talk with the node ------------------------------------------------------------------------------

    def _is_cancelled(self, stack: Stack) -> bool:
        return bool(self._cancelled) and _copy(stack.root) in self._cancelled

    def _tell(self, *events: ev.Event) -> None:
        for event in events:
            if isinstance(event, ev.GivenBack):
                for copy in event.sparks:
                    del self._mine[copy]
        self._world.post(self._local_ns, self._host.crew.hear, (self, events))

    def _read(self) -> None:
        mail = self._mail
        while mail and not self.dead:
            action, argument = mail.popleft()
            action(argument)

    def _starve(self) -> None:
        """Nothing to run: say so, once."""
        if self._hungry or self.dead:
            self._flush()
            return
        self._hungry = True
        self._exporter.release_code()
        hungry = ev.Hungry(self.origin, self._cluster.drawn.room)
        if self._results:
            results, self._results = self._results, []
            self._tell(ev.Finished(self.origin, tuple(results)), hungry)
        else:
            self._tell(hungry)

    def _export(self, *, careful: bool) -> None:
        if self._exporter.export(careful=careful):
            self.demand = False

    def _flush(self) -> None:
        if self._results:
            results, self._results = self._results, []
            self._tell(ev.Finished(self.origin, tuple(results)))


def _copy(spark: Spark) -> tuple[TaskRef, int]:
    return spark.ref, spark.replica
