"""The scheduler: runs tasks on greenlets, one at a time, until its node ends it.

What lives here: the loop, which runs tasks, and what it consists of.  What does not: what running tasks ask for
(`port.py`), and who has the core meanwhile (`turn.py`).

Theory of operation
-------------------

Every greenlet of this process runs `_loop`: take a task, run it, again.  A task that must wait switches from the
middle of its stack to an idle greenlet (or a new one), which goes on with the loop: resumed tasks first, then the
deque, newest spark first and then what the node has handed over, as it came, then the node.  So waiting holds neither
the core nor anybody else's stack (`turn.py`, `stacks.py`, `waiting.py`).

Results gather and leave in one frame (`answers.py`, `dialogue.py`).  The helper thread does for a long task, which
neither spawns nor gets, what the main thread would do at its next spawn or get (`helper.py`).
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Mapping, Sequence
from time import perf_counter
from typing import Any, NoReturn

from hdphrs.api import future as fast
from hdphrs.api.future import DONE, FAILED, Future, name_of, take
from hdphrs.api.options import use
from hdphrs.api.places import Roster
from hdphrs.errors import CannotTravelError
from hdphrs.protocol.tasks import Task
from hdphrs.scheduler.answers import COST, LATE_S, LEDGER_LATE_S, Answers
from hdphrs.scheduler.assigned import Assigned, root_of
from hdphrs.scheduler.bundles import Bundle, Bundles, Call
from hdphrs.scheduler.completion import Completer
from hdphrs.scheduler.dialogue import Dialogue
from hdphrs.scheduler.export import Exporter
from hdphrs.scheduler.finds import Finds
from hdphrs.scheduler.habits import SOON_S, WORTH_S, Habits
from hdphrs.scheduler.helper import Helper
from hdphrs.scheduler.imports import Imports
from hdphrs.scheduler.interrupting import Interrupter
from hdphrs.scheduler.keep import Keeper
from hdphrs.scheduler.links import Links
from hdphrs.scheduler.mail import Mail
from hdphrs.scheduler.meter import Meter, Share
from hdphrs.scheduler.note import Noter, plain
from hdphrs.scheduler.notice import notice
from hdphrs.scheduler.port import TaskPort
from hdphrs.scheduler.reuse import Reuse
from hdphrs.scheduler.stacks import Stacks
from hdphrs.scheduler.stop import Stopper
from hdphrs.scheduler.strands import Strands
from hdphrs.scheduler.surroundings import Adopter
from hdphrs.scheduler.threads import Threads
from hdphrs.scheduler.timers import Timers
from hdphrs.scheduler.turn import Turn
from hdphrs.scheduler.voice import Voice
from hdphrs.scheduler.waiting import RUNNING, TaskBell, Waiting
from hdphrs.wire import local
from hdphrs.wire.code import CodeBook, CodeShelf
from hdphrs.wire.items import pack_outcome
from hdphrs.wire.page import ARGUMENTS, Line
from hdphrs.wire.values import dump_error, pack_result, summary

LIGHT_S = 0.2e-3
"""To unpickle what a task gets, or to pickle its value, is no work of its own if it takes less: in place that would not
be needed, and the first times it takes many times as long as later."""

THREADS_S = 2e-3
"""How often a scheduler without work looks whether there is some for it, if threads of its tasks run."""


class Hub:
    """One scheduler process."""

    def __init__(
        self,
        link: local.Link,
        control: socket.socket,
        line: Line,
        *,
        reliable: bool,
        ledger: bool = False,
        explain: bool = False,
        others: Sequence[Line] = (),
    ) -> None:
        """`others` are the lines of the node's other schedulers."""
        self._line = line
        self._others = others
        self._links = links = Links(line)
        links.guard(*link.descriptors)
        self._mail = Mail(link, line, links)
        self._tell = tell = self._mail.tell
        self._book = book = CodeBook(lambda digest, data: tell([local.CODE, digest, data]))
        self._shelf = CodeShelf(book)
        roster = Roster()
        self._exporter = Exporter(tell, line, book, roster, reliable=reliable, ledger=ledger, explain=explain)
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
        self._stacks = Stacks(self._serve_loop)
        self._waiting = Waiting(self._stacks.ready.append)
        self._timers = Timers()
        self._turn = turn = Turn(
            line,
            links,
            self._meter,
            self._stacks,
            self._waiting,
            self._timers,
            self._keeper.watcher,
            self._noter,
            explain=explain,
        )
        self._answers = Answers(LEDGER_LATE_S if ledger else LATE_S)
        self.voice: Voice = Voice(link, links)
        self._adopter = Adopter(lambda: roster.infos[0].host, self.voice.say_lack)
        self._bundles = Bundles(
            book,
            self._shelf,
            self._meter,
            enter=turn.enter,
            answer=self._answers.add,
            after=self._after_call,
            refuses=explain,
            roster=roster,
        )
        self._stopper = Stopper(self._exporter, self._meter, line, self._bundles, answer=self._answers.add, tell=tell)
        self._habits = Habits()
        finds = Finds(tell, line)
        self._imports = Imports(tell)
        self._dialogue = Dialogue(
            self._mail,
            self._exporter,
            self._habits,
            self._keeper,
            self._stopper,
            self._answers,
            self._bundles,
            self._waiting,
            self._timers,
            self._meter,
            self._strands,
            book,
            self._shelf,
            self._adopter,
            self._imports,
            finds,
            self.voice,
            roster,
        )
        self._helper = Helper(
            control,
            line,
            links,
            self._mail,
            self._exporter,
            self._keeper,
            self._noter,
            self._stopper,
            self._answers,
            self.voice,
            self._timers,
            self._bundles,
            self._habits,
            self._dialogue.flush,
            turn,
            self._somebody_idles,
            looks=reliable,
        )
        turn.meet(self._bundles, self._stopper, self._dialogue, self._helper)
        self._threads = Threads(self._stopper.has_ended)
        self._interrupter = Interrupter(
            lambda: TaskBell(self._stacks.ready.append, turn.suspend, self._stopper.check, self._timers)
        )
        self._completer = Completer(
            self._dialogue, self._waiting, self._threads, self._stopper, links, self._interrupter
        )
        self.port: TaskPort = TaskPort(
            turn,
            self._dialogue,
            self._exporter,
            self._stopper,
            self._waiting,
            self._stacks,
            self._timers,
            self._meter,
            self._noter,
            self._strands,
            finds,
            roster,
            book,
            line,
            self._completer,
        )
        use.on_begin = line.again

    # ---- the loop --------------------------------------------------------------------------------------------

    def serve(self) -> NoReturn:
        """Tell the node that this scheduler is ready, and run what it gets until the process is ended."""
        self._stopper.handlers.install()
        self._helper.start()
        self._threads.install()
        self._interrupter.install()
        self._stacks.begin()
        self._tell([local.READY])
        self._serve_loop()
        raise AssertionError("the loop of the main greenlet never ends")

    def _serve_loop(self) -> None:
        """The body of every greenlet; an error in here is ours, and must not surface in somebody's task."""
        try:
            self._loop()
        except BaseException as error:
            self._links.fail(error)

    def _loop(self) -> None:
        """Run tasks; returns only to hand over to a resumed task when enough greenlets are idle."""
        stacks, waiting, timers = self._stacks, self._waiting, self._timers
        while True:
            if waiting.in_place:
                waiting.look()
            if timers.calls:
                timers.fire()
            if self._dialogue.first:
                self._dialogue.first -= 1
            elif stacks.ready:
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

    def _execute(self, future: Future[Any], function: Callable[..., Any]) -> None:
        if isinstance(future, Assigned):
            self._adopter.change()
            task, started_s = future.spark.task, perf_counter()
            expected_s = self._habits.begin(task, started_s)
            if self._answers.gathered:
                self._pass_on(task)
            elif expected_s >= WORTH_S:
                self._ask_ahead(task)
            if isinstance(future, Bundle):
                self._bundles.run(future)
            else:
                self._execute_assigned(future)
            for_s = perf_counter() - started_s
            self._habits.make_room(for_s)
            if self._has_nothing:
                self._dialogue.flush(hungry=True)  # somebody may wait for this alone, and for what follows nobody does
            self._habits.learn(task, for_s, future._spawned)
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
        if root is self._turn.root and self._line.is_calm:
            self._meter.enter(account)
            self._helper.stir()
        else:
            self._turn.enter(root, account)
        error, value = self._call(future, function, future._content, {})
        self._meter.enter(None)
        self._keeper.watcher.leave()
        if error is None:
            self._keeper.keep(future, function, value, account.cost_s, account.ran_s, account)
        self._meter.close(future)
        self._meter.credit(future, account.cost_s, Share(account.own_s, account.here_s))
        if self._strands is not None:
            self._strands.joined(future, self._strands.end(account, name_of(function)))
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
        return bool(self._stacks.ready or self._waiting.in_place or self._dialogue.first)

    def _look_ahead(self, call: Call) -> None:
        """Half of a bundle is done: if it will soon be over, and nothing else is here, say so; or look again later."""
        bundle = call.bundle
        if (rest_s := bundle.rest_s) > SOON_S:
            bundle.look_at = int(bundle.look_at * SOON_S / rest_s)
            return
        if self._may_ask_ahead and not (call._spawned or fast.sparks):
            account = self._meter.account
            self._meter.enter(None)  # it is not its calls that wake the node, which may take the core for a while
            self._dialogue.flush(hungry=True, ahead=True)
            self._meter.enter(account)

    def _execute_assigned(self, future: Assigned) -> None:
        spark = future.spark
        task = spark.task
        if spark.crashes:
            self._mail.settle()
        if spark.pieces:
            future.reuse = Reuse(spark, self._exporter.check, self._meter.credit, self._exporter.fill)
        if task.timeout_s:
            self._tell([local.BEGUN, list(spark.ref), spark.replica])
        account = self._meter.open(future)
        if self._strands is not None:
            self._strands.begin(account)
        self._turn.enter(future, None)  # it is not the work of this task to load what others need too
        at_s = None
        self._imports.begin()
        try:
            if task.code:
                self._shelf.function(task.name, task.code)
            began_s = perf_counter()
            before = self._line.unpickle(ARGUMENTS)
            try:
                function, args, kwargs = self._shelf.decode(task.name, task.code, task.payload)
                if self._shelf.context:
                    future._context = notice.received(self._shelf.context)
            finally:
                self._line.unpickle(before)
        except CannotTravelError as refusal:
            packed = pack_outcome(dump_error(task.name, refusal))
        else:
            took_s = perf_counter() - began_s
            self._imports.end()
            if future.careful:
                self._tell([local.ABOUT, future.serial, summary(args, kwargs)])
            self._meter.enter(account, perf_counter() - (took_s if took_s > LIGHT_S else 0.0))
            error, value = self._call(future, function, args, kwargs)
            if spark.crashes:
                self._mail.settle()
            ended_s, ran = perf_counter(), fast.here.ran
            packed = pack_result(task.name, value) if error is None else pack_outcome(dump_error(task.name, error))
            at_s = perf_counter()
            if at_s - ended_s <= LIGHT_S and fast.here.ran == ran:  # to pickle may be to get, and then a child has run
                at_s = ended_s
        self._turn.enter(None, None, at_s)
        self._meter.close(future)
        if future.reuse is not None:
            self._tell([local.REUSED, future.reuse.used, future.reuse.mismatched])
        span_s = 0.0 if self._strands is None else self._strands.end(account, task.name)
        packed[COST:] = account.cost_s, span_s
        self._answers.add([list(spark.ref), spark.replica, packed, account.own_s, account.here_s])

    def _ask_ahead(self, following: Task) -> bool:
        """If there will be room here when this task has run, say so, and send what has gathered; whether it was."""
        if not self._may_ask_ahead or not self._habits.is_soon_over(following, len(fast.sparks)):
            return False
        self._dialogue.flush(hungry=True, ahead=True)
        return True

    @property
    def _may_ask_ahead(self) -> bool:
        """Whether it may be said that there will be room here, though something runs yet."""
        if self._keeper.nodes > 1:  # the node would fish, and more would be on its way when somebody dies
            return False
        if self._dialogue.is_hungry or self._stacks.ready:
            return False
        return not (self._line.wanted and self._somebody_idles())  # for who asks last is fed first

    def _pass_on(self, following: Task) -> None:
        """Results have gathered, and this task is to run next: send them, if that may take long, or the node is to know
        that there will soon be room here."""
        if self._ask_ahead(following):
            return
        nobody_waits = self._keeper.nodes <= 1 and not self._line.wanted
        if self._answers.are_due(self._habits.took_s(following), nobody_waits=nobody_waits):
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
            if fast.isolates:
                return None, fast.isolation.run(future, function, args, kwargs)
            return None, function(*args, **kwargs)
        except BaseException as error:  # whatever a task raises is its outcome, SystemExit too
            return error, None
        finally:
            if fast.isolates and not hasattr(future, "_context"):
                fast.isolation.renew()
            fast.here.task = None

    # ---- the node --------------------------------------------------------------------------------------------

    def _starve(self) -> None:
        """Nothing to run: say so, once, and wait for the node."""
        if self._turn.root is not None:
            self._turn.enter(None, None)
        # A task that waits in other code has only lent the core, and wants it back soon.
        self._dialogue.flush(hungry=not self._interrupter.is_lent or self._completer.is_pressing)
        if self._waiting.calls:
            self._exporter.finish()  # what the helper thread could not export is full now
            self._waiting.wake_all()
            if self._stacks.ready:
                return
        patience_s = self._imports.patience_s
        if self._completer.is_active:  # what other threads run, or spawn, wakes nobody here
            patience_s = THREADS_S if patience_s is None else min(patience_s, THREADS_S)
        elif self._threads_have_left_something():
            return
        if self._dialogue.receive(block=True, for_s=patience_s) or self._timers.left_s() == 0.0:
            self._imports.rest()
        elif self._imports:
            self._imports.go_on()

    def _threads_have_left_something(self) -> bool:
        """Whether something can go on here that other threads have completed, or spawned, since the loop looked.

        To be asked after they were found to have ended: what they leave is there before that.
        """
        if self._waiting.in_place:
            self._waiting.look()
        return bool(self._stacks.ready or fast.sparks)

    def _somebody_idles(self) -> bool:
        """Whether another scheduler of the node runs nothing."""
        return any(one.running == 0 and one.since_s == 0.0 for one in self._others)

    @property
    def _has_nothing(self) -> bool:
        """Whether the loop is sure to starve next."""
        busy = fast.sparks or self._stacks.ready or self._waiting.in_place or self._timers.calls
        return not (busy or self._stopper.stopping or self._dialogue.is_due)
