"""A whole cluster in virtual time: real drivers and cores, the memory transport, and schedulers that only sleep.

A task here is a tree: it costs so many virtual seconds, and has so many levels of two children below.  Its value is the
number of leaves.  Its children may have options (`VirtualCluster.options`); a child that ends otherwise than with a
value counts as if it had one, if its options and the deaths so far allow that.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any, TypeVar

import trio
import trio.testing
from trio._core import _run

from hdphrs.api.board import Board
from hdphrs.config import REJOIN_FOR_S, CoreConfig
from hdphrs.errors import StartError
from hdphrs.node.books import Work
from hdphrs.node.driver import Driver
from hdphrs.node.member import Comeback
from hdphrs.node.recorder import Recorder
from hdphrs.protocol.events import Begun, Event, Exported, Finished, Hungry, SchedulerDied, SchedulerUp, Terminate
from hdphrs.protocol.node import Node
from hdphrs.protocol.paths import PROGRAM_PATH, child_path
from hdphrs.protocol.tasks import PROGRAM, ROOT, Crash, NodeId, Origin, Outcome, Piece, Spark, Task, TaskRef, Verdict
from hdphrs.transport.memory import ADDRESS, MemoryNetwork, MemoryTransport
from hdphrs.wire import local
from hdphrs.wire.items import unpack_outcome
from hdphrs.wire.trace import Header

T = TypeVar("T")

JOIN_S = 60.0
ROOM = 16

Happening = tuple[float, Callable[[], None]]
"""At this virtual second of the computation, call this."""


def tree(levels: int, cost_s: float, path: bytes = PROGRAM_PATH) -> Task:
    """A task of this shape."""
    return Task(f"tree {levels}", path, b"", f"{levels} {cost_s}".encode())


def run_virtually(main: Callable[[], Awaitable[T]], seed: int) -> T:
    """Run in virtual time; a seed determines in which order trio takes tasks that could go on at the same time."""
    _run.__dict__["_ALLOW_DETERMINISTIC_SCHEDULING"] = True
    _run._r.seed(seed)
    return trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0))


FOREVER_S = 1e6
"""What a task costs that does not end."""


class Unfilled:
    """A future of a virtual task."""

    def __init__(self, task: Task) -> None:
        self.task = task
        self.full = trio.Event()
        self.value = 0


class VirtualScheduler:
    """One core: one task computes at a time, those that wait for children do not hold it."""

    def __init__(self, origin: Origin, driver: Driver, nursery: trio.Nursery, cluster: VirtualCluster) -> None:
        self.origin = origin
        self.running: Spark | None = None
        """What has the core."""
        self._cluster = cluster
        self._dead = False
        self._scopes: dict[trio.CancelScope, None] = {}
        """Of all tasks that have begun."""
        self._endless: dict[tuple[TaskRef, int], trio.CancelScope] = {}
        self._driver = driver
        self._nursery = nursery
        self._resumable: deque[tuple[Spark, trio.Event]] = deque()
        self._waiting: deque[Spark] = deque()
        self._futures: list[Unfilled] = []
        self._hungry = False

    def up(self) -> None:
        """Report for work."""
        self._say(SchedulerUp(self.origin))
        self._look()

    def start(self, sparks: Sequence[Spark]) -> None:
        """Take these tasks."""
        self._hungry = False
        self._waiting.extend(sparks)
        self._cluster.check_places(self._driver, sparks)
        self._look()

    def die(self) -> None:
        """kill -9."""
        self._dead = True
        for scope in self._scopes:
            scope.cancel()
        copy = None if self.running is None else (self.running.ref, self.running.replica)
        self._driver.handle([SchedulerDied(self.origin, copy, Crash("host", 1, "was killed by SIGKILL"))])

    def stop(self, copies: Sequence[tuple[TaskRef, int]]) -> None:
        """Only what does not end by itself is ended."""
        for copy in copies:
            if copy in self._endless:
                self._endless[copy].cancel()

    def deliver(self, slot: int, outcome: Outcome) -> None:
        """Fill a future."""
        future = self._futures[slot]
        future.value = self._cluster.value(future.task, outcome)
        future.full.set()
        self._hungry = False
        self._nursery.start_soon(self._look_again)

    def _look(self) -> None:
        """Give the core to the next: resumed tasks first, then those that have not begun."""
        if self.running is not None or self._dead:
            return
        if self._resumable:
            self.running, turn = self._resumable.popleft()
            turn.set()
        elif self._waiting:
            self.running = self._waiting.popleft()
            self._nursery.start_soon(self._live, self.running)
        elif not self._hungry:
            self._hungry = True
            self._say(Hungry(self.origin, ROOM))

    def _say(self, event: Event) -> None:
        """Tell the node; a task that was about to go on when this process was killed says nothing any more."""
        if not self._dead:
            self._driver.handle([event])

    async def _look_again(self) -> None:
        self._look()

    async def _live(self, spark: Spark) -> None:
        scope = trio.CancelScope()
        self._scopes[scope] = None
        with scope:
            await self._run(spark)
        del self._scopes[scope]

    async def _run(self, spark: Spark) -> None:
        levels, cost = spark.task.payload.split()
        if spark.task.timeout_s:
            self._say(Begun(self.origin, spark.ref, spark.replica))
        with trio.CancelScope() as scope:
            if float(cost) == FOREVER_S:
                self._endless[spark.ref, spark.replica] = scope
            await trio.sleep(float(cost))
        self._endless.pop((spark.ref, spark.replica), None)
        outcome = Outcome(Verdict.RAISED, b"") if scope.cancelled_caught else None
        value = 1
        if levels != b"0":
            futures = self._spawn(spark.task, int(levels) - 1, float(cost))
            self._leave()
            for future in futures:
                await future.full.wait()
            await self._enter(spark)
            value = sum(future.value for future in futures)
        result = (spark.ref, spark.replica, outcome or Outcome(Verdict.VALUE, str(value).encode()))
        self._say(Finished(self.origin, (result,)))
        self._leave()

    def _leave(self) -> None:
        self.running = None
        self._look()

    async def _enter(self, spark: Spark) -> None:
        turn = trio.Event()
        self._resumable.append((spark, turn))
        self._look()
        await turn.wait()

    def _spawn(self, parent: Task, levels: int, cost_s: float) -> list[Unfilled]:
        slot = len(self._futures)
        children = [self._cluster.child(levels, cost_s, child_path(parent.path, i)) for i in range(2)]
        futures = [Unfilled(task) for task in children]
        self._futures += futures
        self._say(Exported(self.origin, tuple(enumerate(children, slot))))
        return futures


class VirtualCrew:
    """The schedulers of one node, as its driver sees them."""

    def __init__(self) -> None:
        self.schedulers: dict[Origin, VirtualScheduler] = {}
        self.board: Board[bytes] = Board()
        self._made = 0

    def add(self, make: Callable[[Origin], VirtualScheduler]) -> None:
        """One more scheduler."""
        self._make = make
        self._made += 1
        scheduler = self.schedulers[Origin(self._made)] = make(Origin(self._made))
        scheduler.up()

    def kill(self, choose: Callable[[Sequence[Origin]], Origin]) -> None:
        """kill -9 of one of them, which is replaced."""
        self.schedulers.pop(choose(list(self.schedulers))).die()
        self.add(self._make)

    def teach(self, origin: Origin, digest: bytes, data: bytes) -> None:
        """Trees need no code."""

    def start_first(self, origin: Origin, sparks: Sequence[Spark]) -> None:
        raise AssertionError("these nodes are not fair")

    def unlearn(self, origin: Origin, digest: bytes) -> None:
        """Nor do they forget any."""

    def start(self, origin: Origin, sparks: Sequence[Spark]) -> None:
        self.schedulers[origin].start(sparks)

    def deliver(self, origin: Origin, slot: int, outcome: Outcome) -> None:
        if origin in self.schedulers:
            self.schedulers[origin].deliver(slot, outcome)

    def tell(self, topic: bytes, rank: float, find: bytes) -> bool:
        return self.board.improve(topic, rank, find)

    def found(self) -> list[tuple[bytes, float, bytes]]:
        return self.board.all()

    def cancel(self, origin: Origin, copies: Sequence[tuple[TaskRef, int]]) -> None:
        """Virtual tasks run to their ends if they were started twice, unless they have none."""
        if origin in self.schedulers:
            self.schedulers[origin].stop(copies)

    def replace(self, origin: Origin, copies: Sequence[tuple[TaskRef, int]]) -> None:
        """So they need no replacement."""

    def demand(self, wanted: bool) -> None:
        """Virtual schedulers export everything anyway."""

    def tell_nodes(self, nodes: list[list[Any]]) -> None:
        """Trees do not ask where they are."""

    def kept(self, pieces: Sequence[Piece]) -> None:
        """Nobody asks what virtual work was lost."""

    def collect(self) -> None:
        """What they have to say they say at once."""

    def work(self) -> Work:
        return Work()

    def flush(self) -> None:
        """Nothing is buffered."""

    async def stop(self) -> None:
        """They end with their node's nursery."""


class VirtualProgram:
    """Spawns one task, and waits for its outcome."""

    def __init__(self) -> None:
        self.done = trio.Event()
        self.outcome: Outcome | None = None

    def post(self, message: list[Any]) -> None:
        if message[0] == local.DELIVER:
            self.outcome = unpack_outcome(message[2])
            self.done.set()

    def flush(self) -> None:
        """Nothing is buffered."""


class VirtualNode:
    """One node: driver, core, crew, transport, and its share of trio."""

    def __init__(self, cluster: VirtualCluster, number: int) -> None:
        self.scope = trio.CancelScope()
        self.crew = VirtualCrew()
        """That of its present life."""
        self.lives = 0
        self.gave_up: str | None = None
        """Why it could not join again."""
        self.comeback = Comeback(cluster.rejoin_s, random.Random(f"{cluster.seed} {number}").random)
        self._cluster = cluster
        self._number = number
        self._driver: Driver | None = None

    @property
    def driver(self) -> Driver:
        """That of its present life."""
        assert self._driver is not None
        return self._driver

    @property
    def host(self) -> str:
        """Where it runs, as newcomers say it."""
        return f"host {self._number}"

    @property
    def id(self) -> NodeId:
        """Its present id."""
        assert self.driver.core.me is not None
        return self.driver.core.me

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Live; join again when cut off or declared dead."""
        with self.scope:
            try:
                while await self._life(task_status if self.lives == 0 else trio.TASK_STATUS_IGNORED):
                    pass
            except* StartError as refusals:
                self.gave_up = str(refusals.exceptions[0])

    async def _life(self, task_status: trio.TaskStatus[None]) -> bool:
        self.lives += 1
        cluster = self._cluster
        choose = random.Random(f"{cluster.seed} {self._number} {self.lives}").randrange
        crew = self.crew = VirtualCrew()
        if self._number == 0:
            make, program, node = Node.root, cluster.program, ROOT
        else:
            make, program, node = Node.newcomer, None, None
        if cluster.trace is None:
            core = make(cluster.config, choose)
            self._driver = driver = Driver(core, crew, program=program)
        else:
            recorder = Recorder(cluster.trace, self._header(), lambda line: None)
            cluster.recorders.append(recorder)
            core = make(cluster.config, recorder.watch(choose))
            self._driver = driver = Driver(core, crew, feed=partial(recorder.handle, core), program=program)
        transport = cluster.network.transport(driver.hear, node=node)
        driver.attach_transport(transport)
        async with trio.open_nursery() as nursery:
            await nursery.start(transport.serve)
            if node == ROOT:
                cluster.root_address = (ADDRESS, transport.port)
            else:
                await self._join(transport, driver)
            joined_s = trio.current_time()
            nursery.start_soon(driver.tick)
            for _ in range(cluster.cores if driver.halt is None else 0):
                crew.add(partial(VirtualScheduler, driver=driver, nursery=nursery, cluster=cluster))
            task_status.started()
            await driver.halted.wait()
            if driver.halt is not None and driver.halt.reason is None and node != ROOT:
                await transport.flush(ROOT, 1.0)
            nursery.cancel_scope.cancel()
        assert driver.halt is not None
        if driver.halt.rejoin:
            await transport.aclose()
            self.comeback.lose(trio.current_time(), 0.0 if core.me is None else trio.current_time() - joined_s)
        return driver.halt.rejoin

    async def _join(self, transport: MemoryTransport, driver: Driver) -> None:
        """Become a member, unless the root is lost before."""
        within_s = JOIN_S
        if self.comeback.under_way:
            await trio.sleep(self.comeback.pause_s())
            within_s = self.comeback.left_s(trio.current_time())
        await transport.join([self._cluster.root_address], self.host, self._cluster.cores, 1, within_s)
        async with trio.open_nursery() as nursery:

            async def welcome() -> None:
                while driver.core.me is None:
                    await driver.changed.wait()
                self.comeback.succeed()
                nursery.cancel_scope.cancel()

            nursery.start_soon(welcome)
            await driver.halted.wait()
            nursery.cancel_scope.cancel()

    def _header(self) -> Header:
        now_s = trio.current_time()
        return Header(b"virtual", self._number == 0, f"host {self._number}", 1, now_s, now_s, self._cluster.config)


class VirtualCluster:
    """Nodes 0, 1, ... of one run."""

    def __init__(
        self,
        nodes: int,
        *,
        cores: int = 1,
        latency_s: float = 1e-4,
        detect_after_s: float = 5.0,
        seed: int = 0,
        trace: str | None = None,
        rejoin_s: float = REJOIN_FOR_S,
    ) -> None:
        self.rejoin_s = rejoin_s
        self._parted: dict[int, list[tuple[NodeId, NodeId]]] = {}
        """The links of nodes that are cut off."""
        self.config = CoreConfig()
        self.cores = cores
        self.seed = seed
        self.trace = trace
        """Where every life is recorded."""
        self.recorders: list[Recorder] = []
        self.network = MemoryNetwork(latency_s=latency_s, detect_after_s=detect_after_s)
        self.program = VirtualProgram()
        self.root_address = (ADDRESS, 0)
        self.nodes = [VirtualNode(self, number) for number in range(nodes)]
        self.options: Callable[[Task], Task] = lambda task: task
        """Gives a child its options, by its path."""
        self.dead: set[NodeId] = set()
        self.lost: list[str] = []
        """Names of children that were pinned to dead nodes."""
        self.crashes = 0
        """Schedulers that were killed."""

    def child(self, levels: int, cost_s: float, path: bytes) -> Task:
        """A task of this shape, with options."""
        return self.options(tree(levels, cost_s, path))

    def check_places(self, driver: Driver, sparks: Sequence[Spark]) -> None:
        """What is pinned starts nowhere else."""
        for spark in sparks:
            assert not spark.task.pin or driver.core.me in spark.task.pin, spark

    def value(self, task: Task, outcome: Outcome) -> int:
        """The value of a child; of one that has none, what it would be, if that may be so."""
        leaves: int = 2 ** int(task.name.split()[1])
        match outcome.verdict:
            case Verdict.VALUE:
                assert int(outcome.data) == leaves
            case Verdict.LOST:
                assert task.pin
                assert self.dead.issuperset(task.pin), (task, self.dead)
                self.lost.append(task.name)
            case Verdict.TIMED_OUT:
                assert task.timeout_s
                assert float(task.payload.split()[1]) == FOREVER_S
            case Verdict.CRASHED:
                assert (task.attempts or self.config.attempts_max) <= self.crashes
            case _:
                raise AssertionError(f"{task} ends with {outcome}")
        return leaves

    def kill_scheduler(self, number: int, choose: Callable[[Sequence[Origin]], Origin]) -> None:
        """kill -9 of one scheduler of a node."""
        self.crashes += 1
        self.nodes[number].crew.kill(choose)

    def kill(self, number: int) -> None:
        """kill -9 of one node."""
        self.dead.add(self.nodes[number].id)
        self.network.kill(self.nodes[number].id)
        self.nodes[number].scope.cancel()

    def part(self, number: int, others: Sequence[int]) -> None:
        """Cut a node off from these, as far as they are members, both ways; and from the root's door."""
        ids = [self.nodes[one].driver.core.me for one in (number, *others)]
        pairs = [(ids[0], other) for other in ids[1:] if ids[0] is not None and other is not None]
        for pair in pairs:
            self.network.cut(*pair)
        self._parted[number] = pairs
        self.network.shut_out(self.nodes[number].host)

    def reunite(self, number: int) -> None:
        """End that."""
        for pair in self._parted.pop(number):
            self.network.heal(*pair)
        self.network.let_in(self.nodes[number].host)

    async def compute(self, task: Task, happenings: Callable[[], Sequence[Happening]]) -> tuple[int, float]:
        """Run one task, while things happen; its value, and how many virtual seconds it took."""
        async with trio.open_nursery() as nursery:
            await nursery.start(self.network.serve)
            for node in self.nodes:
                await nursery.start(node.run)
            root = self.nodes[0].driver
            started_s = trio.current_time()
            for at_s, action in happenings():
                nursery.start_soon(self._later, at_s, action)
            root.handle([Exported(PROGRAM, ((0, task),))])
            await self.program.done.wait()
            took_s = trio.current_time() - started_s
            root.handle([Terminate()])
            with trio.move_on_after(2.0):
                await root.halted.wait()
            nursery.cancel_scope.cancel()
        for recorder in self.recorders:
            recorder.close()
        assert self.program.outcome is not None
        return int(self.program.outcome.data), took_s

    async def _later(self, at_s: float, action: Callable[[], None]) -> None:
        await trio.sleep(at_s)
        action()
