"""Futures that are completed though no task of this scheduler waits for them in our code (decision 50).

What lives here: who waits outside the loop (threads of tasks, callbacks, event loops that have the main thread), and
the threads that work for them.  What does not: which task a thread belongs to (`threads.py`), and tasks that wait
(`waiting.py`).

Theory of operation
-------------------

Somebody wants a future, and the main thread may be anywhere: in an event loop, in `Event.wait`, in `join` of the very
thread that waits here.  So the future is *wanted* until it is full, and as long as one is, a thread looks after them:

- What has left for other schedulers arrives over the link, and if the main thread does not read, this thread does.
- A spark that nobody takes, though others had time to ask for it, is run by a worker, a thread of this process.  There
  is one worker, and another one whenever all that there are seem to be blocked: their processor time stands still.

Workers also make the calls that somebody has left for a future, since these are the user's code and may block.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from functools import partial
from math import inf
from time import monotonic
from typing import Any, TypeVar

from hdphrs.api import future as fast
from hdphrs.api.future import FAILED, Future, is_outcome
from hdphrs.api.port import Bell
from hdphrs.errors import StartError, UsageError
from hdphrs.room import lacks_room
from hdphrs.scheduler.assigned import is_below
from hdphrs.scheduler.clocks import ThreadClock
from hdphrs.scheduler.dialogue import Dialogue
from hdphrs.scheduler.interrupting import Interrupter
from hdphrs.scheduler.links import Links
from hdphrs.scheduler.stop import Stopper
from hdphrs.scheduler.threads import Threads
from hdphrs.scheduler.waiting import Waiting, is_full

T = TypeVar("T")

GRACE_S = 2e-3
"""How long a wanted spark waits for another scheduler to ask for it, if the main thread rests."""

PATIENCE_S = 50e-3
"""The same, if the main thread computes: it may soon want the spark itself."""

LOOK_S = 2e-3
"""How often it is looked what has become of wanted futures that run here, or wait to."""

BLOCKED_S = 20e-3
"""A worker that has used no processor time for so long is blocked."""

AWAY_S = 50e-3
"""How often a thread that waits looks whether its task is to end."""

SLICE_PAUSE_S = 30e-3
SLICE_PAUSE_S_MAX = 0.5
"""How long the main thread is left alone before a task that waits there gives way to others, and between two of these
times, if nothing comes of it: the first and the longest."""

PRESSING_S = 0.3
"""When a future is wanted for so long, other schedulers may be in the same state: then this one asks for tasks too,
though that may hold up the event loop which waits here."""

IDLE_S = 1.0
"""After so long without work a worker ends."""

WORKERS_MAX = 1000
"""Workers, nearly all of them blocked.  If that is not enough, calls wait for each other without an end."""


class _Worker:
    def __init__(self) -> None:
        self.clock: ThreadClock | None = None
        self.is_busy = True


class Completer:
    """That of one scheduler."""

    def __init__(
        self,
        dialogue: Dialogue,
        waiting: Waiting,
        threads: Threads,
        stopper: Stopper,
        links: Links,
        interrupter: Interrupter,
    ) -> None:
        self._dialogue = dialogue
        self._waiting = waiting
        self._threads = threads
        self._stopper = stopper
        self._links = links
        self._interrupter = interrupter
        self._pause_s = SLICE_PAUSE_S
        self._sliced_s = 0.0
        """When the main thread was interrupted last, and how long it is left alone then."""
        self._main = ThreadClock()
        self._wanted: dict[Future[Any], float] = {}
        """Those that somebody outside the loop waits for; since when."""
        self._jobs: deque[Callable[[], object]] = deque()
        """What workers are to do: calls first, and then sparks that are due."""
        self._due: deque[Future[Any]] = deque()
        self._workers: list[_Worker] = []
        self._change = threading.Condition()
        """Guards all of this, and is notified when there is something for a worker."""
        self.is_pressing: bool = False
        """Whether something has been wanted for long that is not here."""
        self._serving = False
        self._stir = threading.Event()

    @property
    def is_active(self) -> bool:
        """Whether other threads may soon have something for the main one.

        If not, all that they have left is there: each of them is seen here until it has left what it has.
        """
        begun = self._threads.begun
        if self._threads.live:
            return True
        with self._change:
            if self._wanted or self._jobs or any(worker.is_busy for worker in self._workers):
                return True
        return self._threads.begun != begun

    # ---- for those who wait ----------------------------------------------------------------------------------

    def attend(self, future: Future[Any], call: Callable[[], object]) -> None:
        """Have a future completed, and then `call()` made in a thread, which it may block."""
        job = partial(self._call, call, self._threads.of_callbacks(future))
        self._waiting.watch(future, partial(self._post, job))
        self.want(future)

    def want(self, future: Future[Any]) -> None:
        """Have a future completed by somebody."""
        with self._change:
            if not is_full(future):
                self._wanted.setdefault(future, monotonic())
            self._serve()

    def wait(self, future: Future[T]) -> T:
        """In a thread of a task: the value of a future that somebody has taken.

        Raises:
            UsageError: it would wait for ever: the future is that of a task which the thread belongs to.
            Cancelled: the task of the thread is to end.
        """
        self._stopper.check()
        task = fast.here.task
        if task is not None and is_below(task, future):
            raise UsageError("get: a thread cannot wait for the task that it belongs to")
        full = threading.Event()
        self._waiting.watch(future, full.set)
        try:
            self.want(future)
            while not is_full(future):
                full.wait(AWAY_S if getattr(future, "_status", None) is not None else LOOK_S)
                self._stopper.check()
        finally:
            self._waiting.unwatch(future, full.set)
        return fast.get(future)

    def bell(self) -> Bell:
        """For a thread of a task."""
        return ThreadBell(self._stopper.check)

    # ---- the thread that looks after them --------------------------------------------------------------------

    def _serve(self) -> None:
        """Under the lock: have the thread look, and start it if it is not there."""
        if not self._serving and (self._wanted or self._jobs):
            self._serving = True
            try:
                threading.Thread(target=self._run, name="hdphrs-completer", daemon=True).start()
            except BaseException:
                self._serving = False
                raise
        self._stir.set()

    def _run(self) -> None:
        try:
            while self._look():
                self._stir.clear()
        except BaseException as error:
            self._links.fail(error)

    def _look(self) -> bool:
        """Do what can be done; whether somebody still waits."""
        self._dialogue.receive_wanted(self._wanted.__contains__)
        for future in list(self._wanted):
            if is_full(future):
                self._waiting.wake(future)  # it may have run in place, where nobody wakes
                self._wanted.pop(future, None)  # in this order, see `is_active`
                self._pause_s = SLICE_PAUSE_S
        rests = self._main.rests_s() > GRACE_S
        before_s = monotonic() - (GRACE_S if rests else PATIENCE_S)
        if rests:
            self._interrupt()
        with self._change:
            self._due = deque(
                future
                for future, since_s in list(self._wanted.items())
                if future._function is not None and since_s <= before_s
            )
            if self._jobs or self._due:
                self._change.notify()
                self._reinforce()
            waits = bool(self._wanted or self._jobs)
        if self._stir.wait(LOOK_S if waits else IDLE_S):
            return True
        with self._change:
            self._serving = bool(self._wanted or self._jobs)
            return self._serving

    def _interrupt(self) -> None:
        """If wanted futures wait for something that only the main thread can do, and a task waits there: have it do
        that."""
        now_s = monotonic()
        since_s = min((since_s for one, since_s in list(self._wanted.items()) if one._function is None), default=now_s)
        self.is_pressing = now_s - since_s > PRESSING_S
        if now_s - max(since_s, self._sliced_s) > self._pause_s and self._interrupter.interrupt():
            self._sliced_s = monotonic()
            self._pause_s = min(2 * self._pause_s, SLICE_PAUSE_S_MAX)

    def _reinforce(self) -> None:
        """Under the lock: another worker, if those that there are do not get on."""
        if not all(worker.is_busy and worker.clock and worker.clock.rests_s() > BLOCKED_S for worker in self._workers):
            return
        if len(self._workers) >= WORKERS_MAX:
            self._refuse(f"{WORKERS_MAX} calls of this scheduler wait already, perhaps for each other")
            return
        worker = _Worker()
        try:
            threading.Thread(target=self._work, args=(worker,), name="hdphrs-worker", daemon=True).start()
        except (RuntimeError, MemoryError) as error:
            if not lacks_room(error):
                raise
            if not self._workers:
                self._refuse(f"a task waits for calls that nobody can run, there is no room for a thread: {error}")
            return
        self._workers.append(worker)

    def _refuse(self, why: str) -> None:
        """What nobody can run fails."""
        for future in self._due:
            if fast.take(future) is not None:
                future._content = StartError(why)
                future._status = FAILED

    # ---- workers ---------------------------------------------------------------------------------------------

    def _work(self, worker: _Worker) -> None:
        """The body of a worker."""
        worker.clock = ThreadClock()
        try:
            while (job := self._next(worker)) is not None:
                with self._threads.joined(None):
                    job()
        except BaseException as error:
            self._links.fail(error)

    def _next(self, worker: _Worker) -> Callable[[], object] | None:
        """What to do next; None if there has been nothing for long."""
        with self._change:
            worker.is_busy = False
            while not (self._jobs or self._due):
                if not self._change.wait(IDLE_S) and not (self._jobs or self._due):
                    self._workers.remove(worker)
                    return None
            worker.is_busy = True
            return self._jobs.popleft() if self._jobs else partial(self._complete, self._due.popleft())

    def _complete(self, future: Future[Any]) -> None:
        if future._function is None:
            return
        try:
            fast.get(future)
        except BaseException as error:
            if not is_outcome(error, future):
                raise
        self._waiting.wake(future)
        self._stir.set()

    def _post(self, job: Callable[[], object]) -> None:
        with self._change:
            self._jobs.append(job)
            self._change.notify()
            self._serve()

    def _call(self, call: Callable[[], object], identity: Future[Any] | None) -> None:
        fast.here.task = identity
        try:
            call()
        finally:
            fast.here.task = None


class ThreadBell:
    """For one thread of a task."""

    def __init__(self, check: Callable[[], None]) -> None:
        """`check` raises if the task of the thread is to end."""
        self._check = check
        self._rung = threading.Event()

    def ring(self) -> None:
        """See `Bell.ring`."""
        self._rung.set()

    def wait(self, for_s: float | None = None) -> bool:
        """See `Bell.wait`."""
        until_s = inf if for_s is None else monotonic() + for_s
        self._check()
        while not self._rung.wait(min(AWAY_S, max(0.0, until_s - monotonic()))):
            self._check()
            if monotonic() >= until_s:
                return False
        self._rung.clear()
        return True
