"""The desk of an executor in a program: calls wait here until there is room for them in the cluster.

What lives here: one thread per executor, which hands calls to the port and fills their futures, and the end of it all.

Theory of operation
-------------------

A call that waits at the desk is pending, and can be cancelled.  It is handed over, and counts as running, when there is
room in the cluster: for as many calls as there may be workers, if those are fewer than the cores, else for some more
than there are cores, so that one which has finished a call finds another.  How many more depends on how soon they come
back.

Submitting threads append to `_pending`, and ring if nothing has been there; the port's receiver rings with what is
done; everything else, user code like pickling, unpickling and callbacks included, happens in the desk's own thread.  It
is a daemon, so that it lives until `at_exit`: what has been submitted is done before the interpreter ends, and before
the program parts with its node, since it attached earlier.  Neither it nor what it holds refers to the executor, which
can go when nobody needs it.
"""

from __future__ import annotations

import atexit
import os
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, CancelledError, Future
from concurrent.futures._base import LOGGER
from contextlib import suppress
from contextvars import Context, copy_context
from queue import SimpleQueue
from time import monotonic
from typing import Any, NamedTuple

from hdphrs.api.future import Future as TaskFuture
from hdphrs.errors import Cancelled, HdphrsError, RootLostError, StartError
from hdphrs.executor.calls import Call, Initializer, InitializerFailed
from hdphrs.program.attach import Lease, has_room, lease
from hdphrs.room import start_thread

CALLS_PER_CORE_MIN = 2
CALLS_PER_CORE_MAX = 32
"""Calls that are under way for each core of the cluster."""

SOON_S = 0.01
"""A call that is back so soon makes room for another one more, one that takes twice as long takes that away."""


class _Pending(NamedTuple):
    future: Future[Any]
    call: Call
    lease: Lease
    """Of the run that it is for."""
    number: int
    """The index of its task: when a call is handed over must not matter to what it draws."""
    context: Context
    """Of its submission: nor to what it sees."""


class _UnderWay(NamedTuple):
    future: Future[Any]
    task: TaskFuture[Any]
    lease: Lease
    since_s: float


class Desk:
    """What an executor has in a program."""

    def __init__(self, workers_max: int | None, initializer: Initializer | None) -> None:
        """Take part in the run of this program, or have one apart that has another number of schedulers.

        Args:
            workers_max: calls that may run at a time; None for as many as there are cores.

        Raises:
            StartError: there is no room for a process or thread that it needs.
            UsageError: this program has shut down the run that it was started for.
        """
        self._workers_max = workers_max
        self._initializer = initializer
        self._lease = lease(workers_max, self._revoke)
        """For the calls that are submitted now."""
        self._left: list[Lease] = []
        """For those that were submitted before."""
        self._pid = os.getpid()
        self._pending: deque[_Pending] = deque()
        self._bell: SimpleQueue[_UnderWay | None] = SimpleQueue()
        self._under_way: dict[TaskFuture[Any], Lease] = {}
        self._more = 0
        """Calls that may be under way beyond the least that there is room for."""
        self._submitting = threading.Lock()
        """Guards `_closed` and `broken` against a submission."""
        self._closed = False
        self._abandoned = False
        self.broken: BrokenExecutor | None = None
        self._thread = threading.Thread(target=self._serve, name="hdphrs-executor", daemon=True)
        try:
            start_thread(self._thread)
        except RuntimeError as error:
            self._lease.kill()
            raise StartError(f"an executor cannot start the thread that it needs: {error}") from error
        atexit.register(self.at_exit)

    @property
    def workers(self) -> int:
        """How many calls can run at a time."""
        cores = self._lease.cores
        return min(self._workers_max or cores, cores)

    # ---- for the executor ------------------------------------------------------------------------------------

    def submit(self, call: Call) -> Future[Any]:
        """The future of a call.

        Raises:
            BrokenExecutor: the root node is gone, or the initializer has failed.
            RuntimeError: nothing may be submitted any more.
        """
        if self._pid != os.getpid():
            raise BrokenExecutor("this executor belongs to another process, of which this one is a fork")
        future: Future[Any] = Future()
        with self._submitting:
            if self.broken:
                raise BrokenExecutor(str(self.broken)) from self.broken.__cause__
            if self._closed:
                raise RuntimeError("cannot schedule new futures after shutdown")
            self._move()
            item = _Pending(future, call, self._lease, self._lease.port.take_index(), copy_context())
            try:
                self._pending.append(item)
                if len(self._pending) <= 1:  # else the desk is busy, or full
                    self._bell.put(None)
            except BaseException:  # a signal handler has raised, perhaps before the desk was told
                self._bell.put(None)
                raise
        return future

    def close(self, *, wait: bool = False, cancel_pending: bool = False, abandon: bool = False) -> None:
        """Take no more calls, and end when those that there are have been done.

        Args:
            cancel_pending: those for which there is no worker now are not wanted any more.
            abandon: nor are those that run: they are cancelled, or ended with a node that nobody else needs.
        """
        if self._pid != os.getpid():
            return
        with self._submitting:
            self._closed = True
            self._abandoned = self._abandoned or abandon
        raised: list[BaseException] = []
        if cancel_pending or abandon:
            kept = 0 if abandon else max(self.workers - len(self._under_way), 0)
            raised = [error for future in self._drain(kept) if (error := _cancel(future)) is not None]
        if abandon:
            for taken in (self._lease, *self._left):
                if not taken.kill():
                    self._cancel(taken)
        self._bell.put(None)
        if raised:  # a callback, or a signal handler meanwhile; nobody waits for the others in vain
            raise raised[0]
        if wait and threading.current_thread() is not self._thread:
            self._thread.join()

    def at_exit(self) -> None:
        """The interpreter ends: nothing can be submitted any more."""
        self.close(wait=True)

    def _revoke(self) -> None:
        """All runs end: cancel what there is."""
        with self._submitting:
            self._closed = self._abandoned = True
        for future in self._drain():
            _cancel(future)
        self._bell.put(None)

    def _cancel(self, taken: Lease) -> None:
        for task, whose in list(self._under_way.items()):
            if whose is taken:
                taken.port.cancel(task)

    def _move(self) -> None:
        """While something is submitted: share the program's run if it has one by now, and have another one if the last
        was lost when nothing was under way."""
        taken = self._lease
        if taken.port.is_lost:
            if self._under_way or self._pending:
                return
        elif not (taken.is_apart and has_room(self._workers_max)):
            return
        self._lease = lease(self._workers_max, self._revoke)
        self._left.append(taken)

    def _drain(self, kept: int = 0) -> list[Future[Any]]:
        """Take the futures of all pending calls away, but for so many of the oldest."""
        drained = []
        with suppress(IndexError):
            while len(self._pending) > kept:
                drained.append(self._pending.pop().future)
        return drained[::-1]

    # ---- the thread ------------------------------------------------------------------------------------------

    def _serve(self) -> None:
        """The body of the thread."""
        try:
            self._work()
        except HdphrsError as error:  # the node has not started
            self._break(str(error), error)
        for taken in (self._lease, *self._left):
            taken.end()
        atexit.unregister(self.at_exit)

    def _work(self) -> None:
        while True:
            self._lease.start()
            self._leave()
            while self._pending and len(self._under_way) < self._room():
                self._hand_over()
            if self._closed and not self._under_way and not self._pending:
                return
            self._hear(self._bell.get())
            for _ in range(self._bell.qsize()):
                self._hear(self._bell.get())

    def _leave(self) -> None:
        """End the runs that this executor has left, when none of its calls is there."""
        with self._submitting:
            left = self._left and [
                taken
                for taken in self._left
                if taken not in self._under_way.values() and all(one.lease is not taken for one in self._pending)
            ]
            self._left = [taken for taken in self._left if taken not in left]
        for taken in left:
            taken.end()

    def _room(self) -> int:
        cores = self._lease.port.cores
        if self._workers_max is not None and self._workers_max < cores:
            return self._workers_max
        return min(CALLS_PER_CORE_MIN * cores + self._more, CALLS_PER_CORE_MAX * cores)

    def _hear(self, done: _UnderWay | None) -> None:
        if done is None:
            return
        took_s = monotonic() - done.since_s
        if took_s < SOON_S:
            self._more = min(self._more + 1, CALLS_PER_CORE_MAX * self._lease.port.cores)
        elif took_s > 2 * SOON_S and self._more > 0:
            self._more -= 1
        del self._under_way[done.task]
        self._fill(done)

    def _hand_over(self) -> None:
        try:
            future, call, taken, index, context = self._pending.popleft()
        except IndexError:
            return  # cancelled a moment ago
        if not future.set_running_or_notify_cancel():
            return
        if self.broken:
            _settle(future, future.set_exception, self.broken)
            return
        try:
            taken.start()
            taken.port.check()
            function, args, kwargs = call if self._initializer is None else self._initializer.before(call)
            task = context.run(taken.port.spawn, function, args, kwargs, None, index=index)
        except BaseException as error:
            self._fail(future, error, taken)
            return
        self._under_way[task] = taken
        if self._abandoned:
            taken.port.cancel(task)
        under_way = _UnderWay(future, task, taken, monotonic())
        taken.port.watch(task, lambda: self._bell.put(under_way))

    def _fill(self, done: _UnderWay) -> None:
        try:
            value = done.lease.port.wait(done.task)
        except BaseException as error:
            self._fail(done.future, error, done.lease)
        else:
            _settle(done.future, done.future.set_result, value)

    def _fail(self, future: Future[Any], error: BaseException, taken: Lease) -> None:
        if isinstance(error, RootLostError) and taken.port.is_lost and self._abandoned:
            error = CancelledError("the executor was abandoned")  # and its node was ended for that
        elif isinstance(error, RootLostError) and taken.port.is_lost:
            self._break(str(error), error)
        elif isinstance(error, Cancelled):
            error = CancelledError(str(error))
        elif isinstance(error, InitializerFailed):
            if not self.broken:
                LOGGER.critical("Exception in initializer:", exc_info=error)
            self._break(f"the initializer has failed with {error}", error)
        _settle(future, future.set_exception, self.broken or error.with_traceback(None))

    def _break(self, sentence: str, cause: BaseException) -> None:
        """From now on every call fails, the pending ones included."""
        with self._submitting:
            if self.broken is None:
                self.broken = BrokenExecutor(sentence)
                self.broken.__cause__ = cause
        for future in self._drain():
            if future.set_running_or_notify_cancel():
                _settle(future, future.set_exception, self.broken)


def _settle(future: Future[Any], complete: Callable[[Any], None], outcome: Any) -> None:
    """Give a future its outcome, whatever its callbacks raise: the thread has other calls to serve.

    A future logs what is an `Exception` itself, and lets the rest through, like the `SystemExit` of an `exit()`.
    """
    try:
        complete(outcome)
    except BaseException:
        LOGGER.exception("exception calling callback for %r", future)


def _cancel(future: Future[Any]) -> BaseException | None:
    """Cancel a future that has not begun; what that has raised."""
    try:
        if future.cancel():
            future.set_running_or_notify_cancel()
    except BaseException as error:
        return error
    return None
