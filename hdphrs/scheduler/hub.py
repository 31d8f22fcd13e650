"""The scheduler: runs tasks on greenlets, one at a time, until its node ends it.

What lives here: the loop, the waiting, and the way of tasks and results between the private deque and the node.

Theory of operation
-------------------

Every greenlet of this process runs `_loop`: take a task, run it, again.  A task that must wait switches from the
middle of its stack to an idle greenlet (or a new one), which goes on with the loop: resumed tasks first, then the
deque, newest spark first, then the node.  So waiting holds neither the core nor anybody else's stack.

Results gather in `_results` and leave in one frame when the next task may take long, or there is none.

The helper thread answers the node's requests for sparks while a long task neither spawns nor gets; it only exports
(`export.py`).
"""

from __future__ import annotations

import os
import socket
import sys
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import fields, replace
from time import perf_counter
from typing import Any, NoReturn, TypeVar

from greenlet import getcurrent, greenlet

from hdphrs.api import future as fast
from hdphrs.api.future import AWAY, DONE, FAILED, Future, Status, take
from hdphrs.api.port import Bell
from hdphrs.errors import CannotTravelError, UsageError
from hdphrs.protocol.tasks import NodeId, Outcome, Task
from hdphrs.scheduler.assigned import Assigned, path_of, root_of
from hdphrs.scheduler.export import Exporter
from hdphrs.scheduler.finds import Finds
from hdphrs.scheduler.keep import GATHER_BEATS, Keeper
from hdphrs.scheduler.meter import Account, Meter, Share
from hdphrs.scheduler.note import Noter, plain
from hdphrs.scheduler.reuse import Reuse, fill
from hdphrs.scheduler.stop import Stopper
from hdphrs.wire import local
from hdphrs.wire.code import CodeBook, CodeShelf
from hdphrs.wire.codec import pack_outcome, unpack_outcome, unpack_spark
from hdphrs.wire.page import BEAT, LOOK, SPEAK, Line
from hdphrs.wire.paths import child_path
from hdphrs.wire.values import dump_error, dump_result, load_outcome, summary

T = TypeVar("T")

RUNNING = Status("running")
"""Runs in a greenlet of its own; whoever waits for it is woken.  (A task that runs in place has no status.)"""

ROOM = 16
"""Tasks that a hungry scheduler takes at a time."""

RESULTS_MAX = 16
"""Results that wait for each other."""

QUICK_S = 100e-6
"""A task that is expected to take less may run before the results of the last ones leave."""

RESULT_DATA = [field.name for field in fields(Outcome)].index("data")
"""Where a packed outcome has its bytes."""

POLL_S = 1e-3
"""How long a busy scheduler leaves what the node has sent unread."""

IDLE_MAX = 64
"""Greenlets that are kept for reuse; making one costs some 8 µs, keeping one some 20 kB."""


INTERNAL_ERROR_STATUS = 70


class _Bell:
    """For one task, in the main thread."""

    def __init__(
        self, resume: Callable[[greenlet], None], suspend: Callable[[], None], check: Callable[[], None]
    ) -> None:
        """`check` raises if the running task is to end."""
        self._resume = resume
        self._suspend = suspend
        self._check = check
        self._rung = False
        self._waiter: greenlet | None = None

    def ring(self) -> None:
        self._rung = True
        if self._waiter is not None:
            waiter, self._waiter = self._waiter, None
            self._resume(waiter)

    def wait(self) -> None:
        self._check()
        if not self._rung:
            self._waiter = getcurrent()
            self._suspend()
        self._rung = False
        self._check()


class Hub:
    """One scheduler process; also the port of the tasks that it runs."""

    def __init__(
        self, link: local.Link, control: socket.socket, line: Line, *, reliable: bool, ledger: bool = False
    ) -> None:
        self._link = link
        self._control = control
        self._line = line
        book = CodeBook(lambda digest, data: self._tell([local.CODE, digest, data]))
        self._shelf = CodeShelf(book)
        self._exporter = Exporter(self._tell, line, book, reliable=reliable, ledger=ledger)
        self._meter = Meter(line)
        self._keeper = Keeper(self._tell, self._exporter.check, self._meter, ledger=ledger)
        self._noter = Noter(self._meter.ran_s, self._keeper.keep_timed) if ledger else None
        self._thread = threading.get_ident()
        self._main = getcurrent()
        self._factory = greenlet(self._make_greenlets)
        self._idle: list[greenlet] = []
        self._ready: deque[greenlet] = deque()
        self._waiters: dict[Future[Any], list[greenlet]] = {}
        self._watched: list[tuple[Future[Any], greenlet]] = []
        self._calls: dict[Future[Any], list[Callable[[], object]]] = {}
        """To be made when these futures are full."""
        self._results: deque[list[Any]] = deque()
        self._fetching = threading.Lock()
        """Held by whoever reads the link."""
        self._mail: list[list[Any]] = []
        """What the helper thread has read of it."""
        self._stopper = Stopper(self._exporter, self._meter, line, self._results.append)
        self._costs: dict[tuple[bytes, str], float] = {}
        self._root: Assigned | None = None
        self._hungry = False
        self._polled_s = 0.0
        self._reported = 0
        self._nodes: list[NodeId] = []
        self._finds = Finds(self._tell)

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
        parent = fast.current
        if parent is None:
            raise UsageError("spawn_at: this code runs in a scheduler process but belongs to no task")
        self._stopper.check()
        path = child_path(path_of(parent), fast.spawned)
        future = self._finished_before(path, function, args)
        if future is None:
            future = self._exporter.place(node, function, args, path, supervised)
            future._parent = parent
        fast.spawned += 1
        return future

    def bell(self) -> Bell:
        return _Bell(self._ready.append, self._suspend, self._stopper.check)

    def watch(self, future: Future[Any], call: Callable[[], object]) -> None:
        if not hasattr(future, "_status"):
            self._exporter.finish()  # as in `wait`
        status = getattr(future, "_status", None)
        if status is AWAY or status is RUNNING:
            self._calls.setdefault(future, []).append(call)
        else:
            call()

    def unwatch(self, future: Future[Any], call: Callable[[], object]) -> None:
        with suppress(ValueError):
            self._calls.get(future, []).remove(call)

    def cancel(self, future: Future[Any]) -> bool:
        if threading.get_ident() != self._thread:
            raise UsageError("cancel: inside a task, cancel only in the task's own thread")
        if not hasattr(future, "_status"):
            self._exporter.finish()  # as in `wait`
        if getattr(future, "_status", None) is AWAY:
            self._receive(block=False)
        status = getattr(future, "_status", None)
        if status is DONE or status is FAILED:
            return False
        if status is not AWAY:
            self._stopper.stop(future)
        elif not self._exporter.cancel(future):
            return False
        self._wake_all()
        return True

    def wait(self, future: Future[T]) -> T:
        if threading.get_ident() != self._thread:
            raise UsageError("get: inside a task, wait only in the task's own thread")
        self._stopper.check()
        if not hasattr(future, "_status"):
            self._exporter.finish()  # the helper thread may have taken it a moment ago
        if getattr(future, "_status", None) is AWAY:
            self._receive(block=False)
        status = getattr(future, "_status", None)
        if status is None:
            self._watched.append((future, getcurrent()))
            self._suspend()
        elif status is AWAY or status is RUNNING:
            self._waiters.setdefault(future, []).append(getcurrent())
            self._suspend()
        self._stopper.check()
        return fast.get(future)

    def poll(self, future: Future[Any]) -> bool:
        if threading.get_ident() == self._thread:
            self._receive(block=False)
        return future._status is DONE or future._status is FAILED

    def topic(self) -> bytes:
        parent = fast.current
        assert parent is not None, "only tasks search"
        return child_path(path_of(parent), fast.spawned)

    def tell(self, topic: bytes, rank: float, find: object) -> None:
        self._finds.tell(topic, rank, find)

    def best(self, topic: bytes) -> tuple[float, Any] | None:
        self._receive(block=False)
        return self._finds.best(topic)

    def nodes(self) -> Sequence[NodeId]:
        return self._nodes

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
        if self._noter is not None and self._noter.on:
            with suppress(IndexError):
                self._noter.time(fast.sparks[-1])
        if self._line.demand or root.careful:
            self._exporter.export(careful=root.careful)

    # ---- the loop --------------------------------------------------------------------------------------------

    def serve(self) -> NoReturn:
        """Tell the node that this scheduler is ready, and run what it gets until the process is ended."""
        threading.Thread(target=self._help, name="hdphrs-helper", daemon=True).start()
        self._factory.switch()
        self._tell([local.READY])
        self._serve_loop()
        raise AssertionError("the loop of the main greenlet never ends")

    def _serve_loop(self) -> None:
        """The body of every greenlet; an error in here is ours, and must not surface in somebody's task."""
        try:
            self._loop()
        except BaseException:
            _fail()

    def _help(self) -> None:
        """The body of the helper thread: speak for a task that does not come to it."""
        beats = 0
        try:
            while asked := self._control.recv(64):
                if BEAT in asked:
                    self._keeper.watcher.look()
                    beats += 1
                    if self._noter is not None and self._noter.look():
                        self._line.again()
                    if beats % GATHER_BEATS == 0 and (messages := self._keeper.gathered()):
                        self._tell(*messages)
                if LOOK in asked:
                    self._look_at_mail()
                if SPEAK in asked:
                    if self._line.demand:
                        self._exporter.export(careful=False)
                    self._flush()
        except ConnectionError:
            pass
        except BaseException:
            _fail()
        _leave()

    def _loop(self) -> None:
        """Run tasks; returns only to hand over to a resumed task when enough greenlets are idle."""
        me = getcurrent()
        while True:
            if self._watched:
                self._check_watched()
            if self._ready:
                self._flush()
                waiter = self._ready.popleft()
                if len(self._idle) >= IDLE_MAX and me is not self._main:
                    me.parent = waiter  # where a greenlet goes when it ends
                    return
                self._idle.append(me)
                waiter.switch()
                continue
            try:
                future = fast.sparks.pop()
            except IndexError:
                self._starve()
                continue
            function = take(future)
            if function is not None:
                self._execute(future, plain(function))

    def _make_greenlets(self) -> NoReturn:
        """Make a greenlet whenever this one is switched to.

        A new greenlet counts its recursion from where it is started: were it started by a task that suspends itself,
        each would begin deeper than the last.
        """
        self._main.switch()
        while True:
            greenlet(self._serve_loop, self._main).switch()

    def _suspend(self) -> None:
        """Leave the running task where it is until somebody puts its greenlet on `_ready`."""
        task = fast.current, fast.spawned, self._root, self._meter.account, self._keeper.watcher.suspend()
        self._enter(None, None)
        target = self._idle.pop() if self._idle else self._factory
        target.switch()
        fast.current, fast.spawned, root, account, sample = task
        self._enter(root, account)
        self._keeper.watcher.resume(sample)

    def _enter(self, root: Assigned | None, account: Account | None) -> None:
        self._root = root
        self._meter.enter(account)
        line = self._line
        if root is None:
            line.running = 0
            line.run(careful=False, again=False)
        else:
            line.running = root.serial
            asked = (self._noter is not None and self._noter.on) or bool(self._stopper.stopping)
            line.run(careful=root.careful, again=asked or root.reuse is not None)

    def _execute(self, future: Future[Any], function: Callable[..., Any]) -> None:
        started_s = perf_counter()
        if isinstance(future, Assigned):
            self._execute_assigned(future)
        else:
            future._status = RUNNING
            self._flush()
            account = self._meter.open(future)
            self._enter(root_of(future), account)
            error, value = self._call(future, function, future._content, {})
            if error is None:
                self._meter.enter(account)
                self._keeper.keep(future, function, value, account.cost_s, account.ran_s, account)
            self._enter(None, None)
            self._meter.close(future)
            self._meter.credit(future, account.cost_s, Share(account.own_s, account.here_s))
            future._content = value if error is None else error
            future._status = DONE if error is None else FAILED
            self._wake(future)
            fast.ran += 1
        if self._stopper.stopping:
            self._stopper.ended(future)
            self._wake_all()
        now_s = perf_counter()
        if isinstance(future, Assigned):
            self._costs[_kind(future.spark.task)] = now_s - started_s
        if now_s - self._polled_s > POLL_S:
            self._receive(block=False)

    def _execute_assigned(self, future: Assigned) -> None:
        spark = future.spark
        task = spark.task
        if self._results and (len(self._results) >= RESULTS_MAX or self._costs.get(_kind(task), QUICK_S) >= QUICK_S):
            self._flush()
        if spark.pieces:
            future.reuse = Reuse(spark, self._exporter.check, self._meter.credit)
        account = self._meter.open(future)
        self._enter(future, account)
        try:
            function, args, kwargs = self._shelf.decode(task.name, task.code, task.payload)
        except CannotTravelError as refusal:
            outcome = dump_error(task.name, refusal)
        else:
            if future.careful:
                self._tell([local.ABOUT, future.serial, summary(args, kwargs)])
            error, value = self._call(future, function, args, kwargs)
            outcome = dump_result(task.name, value) if error is None else dump_error(task.name, error)
        self._enter(None, None)
        self._meter.close(future)
        if future.reuse is not None:
            self._tell([local.REUSED, future.reuse.used, future.reuse.mismatched])
        packed = pack_outcome(replace(outcome, cost_s=account.cost_s))
        self._results.append([list(spark.ref), spark.replica, packed, account.own_s, account.here_s])

    def _call(
        self,
        future: Future[Any],
        function: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
    ) -> tuple[BaseException | None, Any]:
        fast.current = future
        fast.spawned = 0
        try:
            return None, function(*args, **kwargs)
        except BaseException as error:  # whatever a task raises is its outcome, SystemExit too
            return error, None
        finally:
            fast.current = None

    # ---- pieces ----------------------------------------------------------------------------------------------

    def _finished_before(self, path: bytes, function: Callable[..., T], args: tuple[Any, ...]) -> Future[T] | None:
        """The future of a task that was to be placed, if it is among the pieces of the running one."""
        root = self._root
        piece = None if root is None or root.reuse is None else root.reuse.find(path)
        if piece is None or self._exporter.check(function, args) != piece.check:
            return None
        future: Future[T] = Future()
        future._function = None
        future._parent = fast.current
        fill(future, piece.outcome)
        self._meter.credit(future, piece.outcome.cost_s)
        return future

    def _wake(self, future: Future[Any]) -> None:
        waiters = self._waiters.pop(future, None)
        if waiters is not None:
            self._ready.extend(waiters)
        if self._calls:
            for call in self._calls.pop(future, ()):
                call()

    def _wake_all(self) -> None:
        """Wake those who wait for futures that were filled by a cancellation."""
        awaited = (*self._waiters, *self._calls)
        for future in [one for one in awaited if one._status is DONE or one._status is FAILED]:
            self._wake(future)

    def _check_watched(self) -> None:
        """Look after waiters of tasks that ran in place in some other stack: nothing wakes them but this."""
        watched, self._watched = self._watched, []
        for future, waiter in watched:
            status = getattr(future, "_status", None)
            if status is None:
                self._watched.append((future, waiter))
            elif status is AWAY or status is RUNNING:
                self._waiters.setdefault(future, []).append(waiter)
            else:
                self._ready.append(waiter)

    # ---- the node --------------------------------------------------------------------------------------------

    def _starve(self) -> None:
        """Nothing to run: say so, once, and wait for the node."""
        if not self._hungry:
            self._hungry = True
            ran, self._reported = fast.ran - self._reported, fast.ran
            self._flush([local.HUNGRY, ROOM, ran])
        else:
            self._flush()
        self._receive(block=True)

    def _tell(self, *messages: list[Any]) -> None:
        try:
            self._link.send(*messages)
        except OSError:
            _leave()  # the node is gone

    def _flush(self, *more: list[Any]) -> None:
        """Send the results that have gathered, and more; the helper thread may do the same at the same time."""
        results = []
        with suppress(IndexError):
            while True:
                results.append(self._results.popleft())
        messages = self._keeper.gathered()
        messages += [[local.RESULTS, chunk] for chunk in local.chunks(results, _result_bytes)]
        messages += more
        if messages:
            self._tell(*messages)
        if results:
            _flush_streams()

    def _receive(self, *, block: bool) -> None:
        with self._fetching:
            messages, self._mail = self._mail, []
            fetched = messages or self._link.receive(block=block)
        if fetched is None:
            _leave()
        self._polled_s = perf_counter()
        for message in fetched:
            match message:
                case [local.DELIVER, slot, outcome, own_s, here_s]:
                    self._hungry = False  # the node takes it back
                    future = self._exporter.arrived(slot)
                    if future is not None:
                        self._deliver(future, unpack_outcome(outcome), Share(own_s, here_s))
                case [local.START, sparks]:
                    self._hungry = False
                    assigned = [Assigned(serial, unpack_spark(spark)) for serial, spark in sparks]
                    fast.sparks.extend(reversed(assigned))
                case [local.STOP, copies]:
                    self._hungry = False  # as with DELIVER
                    self._stopper.stop_copies(copies)
                    self._wake_all()
                case [local.CODE, digest, data]:
                    self._shelf.teach(digest, data)
                case [local.NODES, nodes]:
                    self._nodes = nodes
                    self._keeper.nodes = len(nodes)
                case [local.FOUND, topic, rank, find]:
                    self._finds.hear(topic, rank, find)
                case [local.QUIT]:
                    _leave()
                case _:
                    raise AssertionError(f"not a message for a scheduler: {message!r}")

    def _look_at_mail(self) -> None:
        """In the helper thread: stop what has been cancelled, and leave the mail to the main thread."""
        if not self._fetching.acquire(blocking=False):
            return  # it reads the mail itself
        try:
            messages = self._link.receive(block=False)
            if messages is None:
                _leave()
            self._mail += messages
        finally:
            self._fetching.release()
        for message in messages:
            if message[0] == local.STOP:
                self._stopper.stop_copies(message[1])
        self._flush()

    def _deliver(self, future: Future[Any], outcome: Outcome, share: Share) -> None:
        self._meter.credit(future, outcome.cost_s, share)
        succeeded, content = load_outcome(outcome)
        future._content = content
        future._status = DONE if succeeded else FAILED
        self._wake(future)


def _kind(task: Task) -> tuple[bytes, str]:
    """Tasks of one kind are expected to take equally long."""
    return task.code, task.name


def _result_bytes(result: list[Any]) -> int:
    return len(result[2][RESULT_DATA])


def _flush_streams() -> None:
    """Show what tasks have printed; where it goes may be closed, full or broken, which is no fault of theirs."""
    for stream in (sys.stdout, sys.stderr):
        try:
            if stream is not None:
                stream.flush()
        except (OSError, ValueError, AttributeError):
            with suppress(OSError, ValueError, AttributeError):
                os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _fail() -> NoReturn:
    """An error of ours: say so, and end the process."""
    sys.excepthook(*sys.exc_info())
    os._exit(INTERNAL_ERROR_STATUS)


def _leave() -> NoReturn:
    """End this process at once, whatever tasks are suspended on its stacks."""
    _flush_streams()
    os._exit(0)
