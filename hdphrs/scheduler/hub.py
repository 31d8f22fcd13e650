"""The scheduler: runs tasks on greenlets, one at a time, until its node ends it.

What lives here: the loop, which runs tasks, and the port of the tasks that run.

Theory of operation
-------------------

Every greenlet of this process runs `_loop`: take a task, run it, again.  A task that must wait switches from the
middle of its stack to an idle greenlet (or a new one), which goes on with the loop: resumed tasks first, then the
deque, newest spark first and then what the node has handed over, as it came, then the node.  So waiting holds neither
the core nor anybody else's stack (`stacks.py`, `waiting.py`).

Results gather and leave in one frame (`answers.py`, `dialogue.py`).  The helper thread does for a long task, which
neither spawns nor gets, what the main thread would do at its next spawn or get (`helper.py`).
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from time import perf_counter
from typing import Any, NoReturn, TypeVar

from greenlet import getcurrent

from hdphrs.api import future as fast
from hdphrs.api.future import AWAY, DONE, FAILED, Future, take
from hdphrs.api.options import use
from hdphrs.api.places import Roster
from hdphrs.api.port import Bell
from hdphrs.api.seeds import beside
from hdphrs.errors import CannotTravelError, UsageError
from hdphrs.protocol.paths import child_path
from hdphrs.protocol.tasks import NodeId, Task
from hdphrs.scheduler.answers import COST, LATE_S, LEDGER_LATE_S, Answers
from hdphrs.scheduler.assigned import Assigned, path_of, root_of
from hdphrs.scheduler.bundles import Bundle, Bundles, Call
from hdphrs.scheduler.dialogue import Dialogue
from hdphrs.scheduler.end import fail
from hdphrs.scheduler.export import Exporter
from hdphrs.scheduler.finds import Finds
from hdphrs.scheduler.habits import SOON_S, Habits
from hdphrs.scheduler.helper import Helper
from hdphrs.scheduler.keep import Keeper
from hdphrs.scheduler.mail import Mail
from hdphrs.scheduler.meter import Account, Meter, Share
from hdphrs.scheduler.note import Noter, plain
from hdphrs.scheduler.reuse import Reuse, fill
from hdphrs.scheduler.stacks import Stacks
from hdphrs.scheduler.stop import Stopper
from hdphrs.scheduler.strands import Strands
from hdphrs.scheduler.timers import Timers
from hdphrs.scheduler.voice import Voice
from hdphrs.scheduler.waiting import RUNNING, TaskBell, Waiting
from hdphrs.wire import local
from hdphrs.wire.code import CodeBook, CodeShelf
from hdphrs.wire.items import pack_outcome
from hdphrs.wire.page import Line
from hdphrs.wire.values import dump_error, pack_result, summary

T = TypeVar("T")

LIGHT_S = 0.2e-3
"""To unpickle what a task gets, or to pickle its value, is no work of its own if it takes less: in place that would not
be needed, and the first times it takes many times as long as later."""

TURN_S = 20e-3
"""How long a stack has the core before the helper thread, at its next tick, has it let others have theirs."""


class Hub:
    """One scheduler process; also the port of the tasks that it runs."""

    is_scheduler: bool = True

    def __init__(
        self,
        link: local.Link,
        control: socket.socket,
        line: Line,
        *,
        reliable: bool,
        ledger: bool = False,
        explain: bool = False,
    ) -> None:
        self._line = line
        self._mail = Mail(link, line)
        self._tell = tell = self._mail.tell
        self._book = book = CodeBook(lambda digest, data: tell([local.CODE, digest, data]))
        self._shelf = CodeShelf(book)
        self.roster: Roster = Roster()
        self._exporter = Exporter(tell, line, book, self.roster, reliable=reliable, ledger=ledger, explain=explain)
        self._meter = Meter(line)
        self._keeper = Keeper(
            tell if ledger else self._mail.lay,
            self._exporter.check,
            self._exporter.check_later,
            self._meter,
            ledger=ledger,
        )
        self._noter = Noter(self._meter.ran_s, self._keeper.keep_timed) if ledger else None
        self._strands = Strands(self._meter) if explain else None
        self._thread = threading.get_ident()
        self._stacks = Stacks(self._serve_loop)
        self._waiting = Waiting(self._stacks.ready.append)
        self._timers = Timers()
        self._answers = Answers(LEDGER_LATE_S if ledger else LATE_S)
        self._habits = Habits()
        self.voice: Voice = Voice(link)
        self._bundles = Bundles(
            book,
            self._shelf,
            self._meter,
            enter=self._enter,
            answer=self._answers.add,
            after=self._after_call,
            refuses=explain,
            roster=self.roster,
        )
        self._stopper = Stopper(self._exporter, self._meter, line, self._bundles, answer=self._answers.add, tell=tell)
        self._finds = Finds(tell)
        self._dialogue = Dialogue(
            self._mail,
            self._exporter,
            self._keeper,
            self._stopper,
            self._answers,
            self._bundles,
            self._waiting,
            self._timers,
            self._meter,
            self._strands,
            self._shelf.teach,
            self._finds,
            self.voice,
            self.roster,
        )
        self._helper = Helper(
            control,
            line,
            self._mail,
            self._exporter,
            self._keeper,
            self._noter,
            self._stopper,
            self._answers,
            self.voice,
            self._timers,
            self._bundles,
            self._dialogue.flush,
            self.end_turn,
            looks=reliable,
        )
        self._root: Assigned | None = None
        self._turn_is_over = False
        """Whether the running task has had the core for a while, and others are to have theirs at its next spawn."""
        use.on_begin = line.again

    # ---- the port of the tasks -------------------------------------------------------------------------------

    def spawn(
        self,
        function: Callable[..., T],
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
        supervised: bool | None,
    ) -> NoReturn:
        raise UsageError("spawn: this code runs in a scheduler process but belongs to no task")

    def place(
        self, node: NodeId, function: Callable[..., T], args: tuple[Any, ...], supervised: bool | None
    ) -> Future[T]:
        parent = fast.here.task
        if parent is None:
            raise UsageError("spawn_at: this code runs in a scheduler process but belongs to no task")
        self._stopper.check()
        path = child_path(path_of(parent), parent._spawned)
        future = self._finished_before(path, function, args)
        if future is None:
            future = self._exporter.place(node, function, args, path, supervised)
            future._parent = parent
            if self._strands is not None:
                self._strands.spawned(future)
        parent._spawned += 1
        return future

    def bell(self) -> Bell:
        return TaskBell(self._stacks.ready.append, self._suspend, self._stopper.check, self._timers)

    def watch(self, future: Future[Any], call: Callable[[], object]) -> None:
        if not hasattr(future, "_status"):
            self._exporter.finish()  # as in `wait`
        self._waiting.watch(future, call)

    def unwatch(self, future: Future[Any], call: Callable[[], object]) -> None:
        self._waiting.unwatch(future, call)

    def cancel(self, future: Future[Any]) -> bool:
        if threading.get_ident() != self._thread:
            raise UsageError("cancel: inside a task, cancel only in the task's own thread")
        if not hasattr(future, "_status"):
            self._exporter.finish()  # as in `wait`
        if getattr(future, "_status", None) is AWAY:
            self._dialogue.receive(block=False)
        status = getattr(future, "_status", None)
        if status is DONE or status is FAILED:
            return False
        if status is not AWAY:
            self._stopper.stop(future)
        elif not self._exporter.cancel(future):
            return False
        self._waiting.wake_all()
        return True

    def wait(self, future: Future[T]) -> T:
        if threading.get_ident() != self._thread:
            raise UsageError("get: inside a task, wait only in the task's own thread")
        self._stopper.check()
        if not hasattr(future, "_status"):
            self._exporter.finish()  # the helper thread may have taken it a moment ago
        if getattr(future, "_status", None) is AWAY:
            self._dialogue.receive(block=False)
        if self._waiting.enter(future):
            self._suspend()
        self._stopper.check()
        return fast.get(future)

    def poll(self, future: Future[Any]) -> bool:
        if threading.get_ident() == self._thread:
            self._dialogue.receive(block=False)
        return future._status is DONE or future._status is FAILED

    def topic(self) -> bytes:
        parent = fast.here.task
        if parent is None or threading.get_ident() != self._thread:
            raise UsageError("rng: this code runs in a scheduler process but in no task's own thread")
        path = child_path(path_of(parent), parent._spawned)
        parent._spawned += 1
        return path

    def key(self) -> bytes:
        return self._book.chance

    @contextmanager
    def aside(self) -> Iterator[None]:
        parent = fast.here.task
        if parent is None:
            raise UsageError("aside: this code runs in a scheduler process but belongs to no task")
        index = parent._spawned
        parent._spawned = beside(index)
        try:
            yield
        finally:
            parent._spawned = index + 1

    def tell(self, topic: bytes, rank: float, find: object) -> None:
        self._finds.tell(topic, rank, find)

    def best(self, topic: bytes) -> tuple[float, Any] | None:
        self._dialogue.receive(block=False)
        return self._finds.best(topic)

    def run(self, main: Callable[..., T], args: tuple[Any, ...]) -> T:
        return main(*args)

    def export(self) -> None:
        root = self._root
        assert root is not None, "only tasks spawn"
        if self._stopper.stopping:
            self._stopper.check_spawn()
        if root.reuse is not None:
            with suppress(IndexError):  # the helper thread has taken it
                future = fast.sparks[-1]
                if root.reuse.meet(future, root):
                    self._exporter.export_youngest()
        if use.begun:
            self._exporter.export_marked()
        if self._noter is not None and self._noter.on:
            with suppress(IndexError):
                self._noter.time(fast.sparks[-1])
        if self._strands is not None:
            with suppress(IndexError):
                self._strands.wrap(fast.sparks[-1])
        if root.careful:
            self._exporter.export_new()
        elif self._line.demand:
            if not self._exporter.pace.is_resting:
                self._dialogue.receive(block=False)
            self._exporter.export()
        if self._timers.calls or self._turn_is_over:
            self._give_way()  # at the end: the youngest spark is another one then

    # ---- the loop --------------------------------------------------------------------------------------------

    def serve(self) -> NoReturn:
        """Tell the node that this scheduler is ready, and run what it gets until the process is ended."""
        self._helper.start()
        self._stacks.begin()
        self._tell([local.READY])
        self._serve_loop()
        raise AssertionError("the loop of the main greenlet never ends")

    def _serve_loop(self) -> None:
        """The body of every greenlet; an error in here is ours, and must not surface in somebody's task."""
        try:
            self._loop()
        except BaseException:
            fail()

    def _loop(self) -> None:
        """Run tasks; returns only to hand over to a resumed task when enough greenlets are idle."""
        stacks, waiting, timers = self._stacks, self._waiting, self._timers
        while True:
            if waiting.in_place:
                waiting.look()
            if timers.calls:
                timers.fire()
            if stacks.ready:
                self._dialogue.flush()
                if not stacks.go_on():
                    return
                continue
            try:
                future = fast.sparks.pop()
            except IndexError:
                self._starve()
                continue
            function = take(future)
            if function is not None:
                self._execute(future, function)
            del future, function  # idle stacks keep no task's arguments

    def _suspend(self) -> None:
        """Leave the running task where it is until somebody has its greenlet go on."""
        task = fast.here.task, self._root, self._meter.account, self._keeper.watcher.leave()
        if isinstance(self._root, Bundle):
            self._bundles.pass_on(self._root)
        if self._timers.calls:
            self._helper.hurry()
        self._enter(None, None)
        self._stacks.suspend()
        fast.here.task, root, account, sample = task
        self._enter(root, account)
        self._keeper.watcher.resume(sample)

    def _give_way(self) -> None:
        """The running task spawns: those whose time has come go on before it, and others if it has had its turn."""
        if threading.get_ident() == self._thread:
            self._timers.fire()
            if self._turn_is_over:
                self._turn_is_over = False
                self._mark()
                self._dialogue.receive(block=False)
                self._waiting.look()
            if self._stacks.ready:
                self._stacks.ready.append(getcurrent())
                self._suspend()
                self._stopper.check()

    def end_turn(self) -> bool:
        """In the helper thread: if what runs has had the core for a while, and there are others, they have theirs at
        its next spawn; whether that is so."""
        runs_s = 0.0 if self._meter.account is None else perf_counter() - self._meter.stack_since_s
        if not self._stacks.aside or runs_s < TURN_S:
            return False
        self._turn_is_over = True
        self._line.again()
        return True

    def _enter(self, root: Assigned | None, account: Account | None, at_s: float | None = None) -> None:
        self._root = root
        self._meter.enter(account, at_s)
        self._mark()
        if root is None:
            self._keeper.watcher.leave()
        else:
            self._helper.stir()

    def _mark(self) -> None:
        """In the page: what runs, and whether it is to be asked at each spawn."""
        root = self._root
        if root is None:
            self._line.run(0, careful=False, again=False)
        else:
            asked = use.begun or (self._noter is not None and self._noter.on) or bool(self._stopper.stopping)
            again = asked or root.reuse is not None or self._strands is not None
            self._line.run(root.serial, careful=root.careful, again=again)

    def _execute(self, future: Future[Any], function: Callable[..., Any]) -> None:
        if isinstance(future, Assigned):
            started_s = perf_counter()
            if self._answers.gathered:
                self._pass_on(future.spark.task)
            if isinstance(future, Bundle):
                self._bundles.run(future)
            else:
                self._execute_assigned(future)
            for_s = perf_counter() - started_s
            if self._has_nothing:
                self._dialogue.flush(hungry=True)  # somebody may wait for this alone, and for what follows nobody does
            self._habits.learn(future.spark.task, for_s, future._spawned)
        else:
            self._execute_own(future, plain(function))
        self._look_up(future)

    def _execute_own(self, future: Future[Any], function: Callable[..., Any]) -> None:
        """A spark that was made here.  What the page says of it stays, for mostly the next one is a sibling."""
        future._status = RUNNING
        if self._answers.gathered:
            self._dialogue.flush()
        account = self._meter.open(future, function)
        if self._strands is not None:
            self._strands.begin(account)
        root = root_of(future).assigned
        if root is self._root and self._line.is_calm:
            self._meter.enter(account)
            self._helper.stir()
        else:
            self._enter(root, account)
        error, value = self._call(future, function, future._content, {})
        self._meter.enter(None)
        self._keeper.watcher.leave()
        if error is None:
            self._keeper.keep(future, function, value, account.cost_s, account.ran_s, account)
        self._meter.close(future)
        self._meter.credit(future, account.cost_s, Share(account.own_s, account.here_s))
        if self._strands is not None:
            self._strands.joined(future, self._strands.end(account))
        future._content = value if error is None else error
        future._status = DONE if error is None else FAILED
        self._waiting.wake(future)
        fast.here.ran += 1

    def _look_up(self, done: Future[Any]) -> None:
        """A task has ended: look around."""
        if self._stopper.stopping:
            self._stopper.ended(done)
            self._waiting.wake_all()
        if self._dialogue.is_due:
            self._dialogue.receive(block=False)

    def _after_call(self, call: Call) -> bool:
        """The same in the middle of a bundle; whether others are to have the core first."""
        self._look_up(call)
        if 0 < len(call.bundle.unstarted) == call.bundle.look_at:
            self._look_ahead(call)
        if self._timers.calls:
            self._timers.fire()
        if self._line.demand and fast.sparks:
            self._exporter.export()
        return bool(self._stacks.ready or self._waiting.in_place)

    def _look_ahead(self, call: Call) -> None:
        """Half of a bundle is done: if it will soon be over, and nothing else is here, say so; or look again later."""
        bundle = call.bundle
        if (rest_s := bundle.rest_s) > SOON_S:
            bundle.look_at = int(bundle.look_at * SOON_S / rest_s)
            return
        more = self._dialogue.is_hungry or call._spawned or fast.sparks or self._stacks.ready
        if not more and self._keeper.nodes <= 1:
            account = self._meter.account
            self._meter.enter(None)  # it is not its calls that wake the node, which may take the core for a while
            self._dialogue.flush(hungry=True)
            self._meter.enter(account)

    def _execute_assigned(self, future: Assigned) -> None:
        spark = future.spark
        task = spark.task
        if spark.pieces:
            future.reuse = Reuse(spark, self._exporter.check, self._meter.credit)
        if task.timeout_s:
            self._tell([local.BEGUN, list(spark.ref), spark.replica])
        account = self._meter.open(future)
        if self._strands is not None:
            self._strands.begin(account)
        self._enter(future, None)  # it is not the work of this task to load what others need too
        at_s = None
        try:
            if task.code:
                self._shelf.function(task.name, task.code)
            began_s = perf_counter()
            function, args, kwargs = self._shelf.decode(task.name, task.code, task.payload)
        except CannotTravelError as refusal:
            packed = pack_outcome(dump_error(task.name, refusal))
        else:
            took_s = perf_counter() - began_s
            if future.careful:
                self._tell([local.ABOUT, future.serial, summary(args, kwargs)])
            self._meter.enter(account, perf_counter() - (took_s if took_s > LIGHT_S else 0.0))
            error, value = self._call(future, function, args, kwargs)
            ended_s, ran = perf_counter(), fast.here.ran
            packed = pack_result(task.name, value) if error is None else pack_outcome(dump_error(task.name, error))
            at_s = perf_counter()
            if at_s - ended_s <= LIGHT_S and fast.here.ran == ran:  # to pickle may be to get, and then a child has run
                at_s = ended_s
        self._enter(None, None, at_s)
        self._meter.close(future)
        if future.reuse is not None:
            self._tell([local.REUSED, future.reuse.used, future.reuse.mismatched])
        span_s = 0.0 if self._strands is None else self._strands.end(account)
        packed[COST:] = account.cost_s, span_s
        self._answers.add([list(spark.ref), spark.replica, packed, account.own_s, account.here_s])

    def _pass_on(self, following: Task) -> None:
        """Results have gathered, and this task is to run next: send them, if that may take long, or the node is to know
        that there will soon be room here."""
        alone = self._keeper.nodes <= 1  # else the node would fish, and more would be on its way when somebody dies
        over = alone and self._habits.is_soon_over(following, len(fast.sparks))
        nobody_waits = alone and not self._line.wanted
        if over and not self._dialogue.is_hungry and not self._stacks.ready:
            self._dialogue.flush(hungry=True)
        elif self._answers.are_due(self._habits.took_s(following), nobody_waits=nobody_waits):
            self._dialogue.flush()
        elif not nobody_waits:
            self._helper.hurry()  # for the case that it takes longer

    def _call(
        self,
        future: Future[Any],
        function: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
    ) -> tuple[BaseException | None, Any]:
        future._spawned = 0
        fast.here.task = future
        try:
            return None, function(*args, **kwargs)
        except BaseException as error:  # whatever a task raises is its outcome, SystemExit too
            return error, None
        finally:
            fast.here.task = None

    # ---- pieces ----------------------------------------------------------------------------------------------

    def _finished_before(self, path: bytes, function: Callable[..., T], args: tuple[Any, ...]) -> Future[T] | None:
        """The future of a task that was to be placed, if it is among the pieces of the running one."""
        root = self._root
        piece = None if root is None or root.reuse is None else root.reuse.find(path)
        if piece is None or self._exporter.check(function, args, path) != piece.check:
            return None
        future: Future[T] = Future()
        future._function = None
        future._parent = fast.here.task
        fill(future, piece.outcome)
        self._meter.credit(future, piece.outcome.cost_s)
        return future

    # ---- the node --------------------------------------------------------------------------------------------

    def _starve(self) -> None:
        """Nothing to run: say so, once, and wait for the node."""
        if self._root is not None:
            self._enter(None, None)
        self._dialogue.flush(hungry=True)
        if self._waiting.calls:
            self._exporter.finish()  # what the helper thread could not export is full now
            self._waiting.wake_all()
            if self._stacks.ready:
                return
        self._dialogue.receive(block=True)

    @property
    def _has_nothing(self) -> bool:
        """Whether the loop is sure to starve next."""
        busy = fast.sparks or self._stacks.ready or self._waiting.in_place or self._timers.calls
        return not (busy or self._stopper.stopping or self._dialogue.is_due)
