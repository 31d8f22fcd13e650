"""Waiting for several futures: `wait`, `as_completed`, `get_any`, and `scope`, which leaves no task behind.

What lives here: what these mean, in terms of spawn, get, cancel and the port.  A future that nobody has taken is run in
place by whoever waits for it, as `get` does; the others ring a bell when they are full.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from functools import partial
from time import monotonic, perf_counter
from types import TracebackType
from typing import Any, Final, NoReturn, ParamSpec, TypeVar

from hdphrs.api.failures import distinct
from hdphrs.api.future import DONE, FAILED, Future, get, is_outcome, name_of, sparks, spawn, state
from hdphrs.api.mistakes import futures_of
from hdphrs.errors import Cancelled, UsageError, WaitTimeoutError

T = TypeVar("T")
P = ParamSpec("P")

TIMEOUT_S_MAX: Final = 1e6
"""Eleven days."""

SHORT_S: Final = 0.2e-3
"""Who waits for the first of several runs a task in place if the last one of the same function took less."""

FUNCTIONS_MAX: Final = 256
"""Of which that is remembered."""


class Limit:
    """How long somebody waits."""

    def __init__(self, who: str, timeout: object) -> None:
        """`who` is the function that was called, for errors.

        Raises:
            UsageError: `timeout` is no number of seconds.
        """
        if isinstance(timeout, bool) or not isinstance(timeout, int | float) or not 0 <= timeout <= TIMEOUT_S_MAX:
            raise UsageError(f"{who}: timeout is a number of seconds, or None for no limit, not {timeout!r}")
        self._who = who
        self._timeout = timeout
        self._until_s = monotonic() + timeout

    def left_s(self) -> float:
        """For how long still."""
        return max(0.0, self._until_s - monotonic())

    def error(self, which: str) -> WaitTimeoutError:
        """What to raise when it is over; `which` tasks have not ended."""
        return WaitTimeoutError(
            f"{self._who}: {which} not ended within {self._timeout} s; to end a task, cancel its future"
        )


class _Arrivals:
    """Futures as they become full."""

    def __init__(self, limit: Limit | None) -> None:
        self.full: deque[Future[Any]] = deque()
        self._limit = limit
        self._bell = state.port.bell()
        self._calls: dict[Future[Any], Callable[[], object]] = {}

    def __len__(self) -> int:
        """How many are watched and have not been taken."""
        return len(self._calls)

    def watch(self, future: Future[Any]) -> None:
        """This one too; whoever has taken it fills it, or the scheduler's loop while the caller waits."""
        self._calls[future] = call = partial(self._arrive, future)
        state.port.watch(future, call)

    def take(self) -> Future[Any]:
        """The next one; waits for it.

        Raises:
            WaitTimeoutError: too long.
        """
        while not self.full:
            if self._limit is None:
                self._bell.wait()
            elif not self._bell.wait(self._limit.left_s()):
                count = len(self)
                raise self._limit.error("the task has" if count == 1 else f"{count} tasks have")
        future = self.full.popleft()
        del self._calls[future]
        return future

    def forget(self, future: Future[Any]) -> None:
        """This one is watched no more."""
        state.port.unwatch(future, self._calls.pop(future))

    def close(self) -> None:
        """Nobody waits for the others any more; this keeps none of them, whose results may be large."""
        for future, call in self._calls.items():
            state.port.unwatch(future, call)
        self._calls.clear()  # they refer to this, and this to them
        self.full.clear()

    def _arrive(self, future: Future[Any]) -> None:
        self.full.append(future)
        self._bell.ring()


def as_completed(futures: Iterable[Future[T]], *, timeout: float | None = None) -> Iterator[Future[T]]:
    """The futures, each when it is full; full ones come first, and what has been yielded is not kept.

    Args:
        timeout: seconds from now within which all must be full (decision 19).

    Raises:
        WaitTimeoutError: (from the iterator) they are not.  Their tasks go on.
        UsageError: `timeout` is no number of seconds.
        Cancelled: the calling task is about to end.
    """
    return _completed(futures, None if timeout is None else Limit("as_completed", timeout), "as_completed")


def wait(futures: Iterable[Future[Any]], *, timeout: float | None = None) -> None:
    """Until all are full, however they end.

    Raises:
        WaitTimeoutError: that takes longer than `timeout` seconds.  Their tasks go on.
        UsageError: `timeout` is no number of seconds.
        Cancelled: the calling task is about to end.
    """
    limit = None if timeout is None else Limit("wait", timeout)
    for _ in _completed(futures, limit, "wait", all_of_them=timeout is None):
        pass


def get_any(futures: Iterable[Future[T]], *, timeout: float | None = None) -> T:
    """The value of the first that is full, or what its task has raised; the others go on, unless they are cancelled.

    Raises:
        WaitTimeoutError: that takes longer than `timeout` seconds.  Their tasks go on.
        UsageError: there are no futures, or `timeout` is no number of seconds.
        Cancelled: the calling task is about to end.
    """
    future = first_full(futures, None if timeout is None else Limit("get_any", timeout))
    if future is None:
        raise UsageError("get_any: there is no future to wait for")
    return get(future)


def first_full(futures: Iterable[Future[T]], limit: Limit | None = None) -> Future[T] | None:
    """The first that is full, after a wait if need be; None if there are no futures."""
    completed = _completed(futures, limit, "get_any")
    try:
        return next(completed, None)
    finally:
        completed.close()  # not when it is dropped: what a signal handler raises then is lost


def await_one(future: Future[Any], timeout: float) -> None:
    """Until it is full, for so many seconds at most; see `Future.get`."""
    limit = Limit("get", timeout)
    function = future._function
    try:
        for _ in _completed([future], limit, "get"):
            pass
    except WaitTimeoutError as error:
        raise (error if function is None else limit.error(f"task {name_of(function)} has")) from None


def _completed(
    futures: Iterable[Future[T]], limit: Limit | None, call: str, *, all_of_them: bool = False
) -> Generator[Future[T], None, None]:
    """The futures, each when it is full.

    What runs in place cannot be left.  So it is only run in place by who waits for `all_of_them`; for others the
    scheduler's loop runs it, the first one first, and comes back to the caller as soon as one is full.
    """
    untaken: list[Future[T]] = []
    taken: deque[Future[T]] = deque()
    for future in futures_of(futures, call):
        (taken if future._function is None else untaken).append(future)
    waiting: deque[Future[T]] = deque()
    while taken:
        if taken[0].done():
            yield taken.popleft()
        else:
            waiting.append(taken.popleft())
    if not waiting and not untaken:
        return
    arrivals = _Arrivals(limit)
    try:
        while waiting:
            arrivals.watch(waiting.popleft())
        if all_of_them:
            while untaken:
                future = untaken.pop()
                if _run(future):
                    yield future
                else:
                    arrivals.watch(future)
                while arrivals.full:
                    yield arrivals.take()
            while len(arrivals):
                yield arrivals.take()
        else:
            yield from _as_the_loop_runs_them(deque(untaken), arrivals, may_stay=limit is None)
    finally:
        arrivals.close()


def _as_the_loop_runs_them(
    untaken: deque[Future[T]], arrivals: _Arrivals, *, may_stay: bool
) -> Generator[Future[T], None, None]:
    """Futures that nobody has taken, run by the scheduler's loop in their order, and others that arrive.

    Args:
        may_stay: whether one that probably takes no longer than the way to the loop and back is run in place.
    """
    sparks.extend(reversed(untaken))
    are_watched = False
    while True:
        while arrivals.full:
            yield arrivals.take()
        while untaken and untaken[0]._function is None:
            future = untaken.popleft()
            if not are_watched:
                arrivals.watch(future)
        key = _key(untaken[0]._function) if untaken else None
        if may_stay and _took_s.get(key, SHORT_S) < SHORT_S:
            future = untaken.popleft()
            if are_watched:
                arrivals.forget(future)
            began_s = perf_counter()
            if _run(future):
                _took_s[key] = perf_counter() - began_s
                yield future
            else:
                arrivals.watch(future)
            continue
        if not are_watched:
            are_watched = True
            for future in untaken:
                arrivals.watch(future)
        if not len(arrivals):
            return
        began_s = perf_counter()
        future = arrivals.take()
        if key is not None:
            if len(_took_s) >= FUNCTIONS_MAX:
                _took_s.clear()
            _took_s[key] = perf_counter() - began_s
        yield future


_took_s: Final[dict[object, float]] = {}
"""How long the last task of a function has taken, by the function's code."""


def _key(function: Any) -> object:
    while isinstance(function, partial):
        function = function.func
    return getattr(function, "__code__", None if function is None else type(function))


class _Called(type):
    """The type of `scope`: says what is missing in `with hdphrs.scope:`."""

    def __enter__(cls) -> NoReturn:
        raise UsageError(f"{cls.__name__}: it must be called, as in `with hdphrs.{cls.__name__}() as tasks:`")

    def __exit__(cls, *_: object) -> None:
        """Never entered."""


class scope(metaclass=_Called):  # noqa: N801 - it is used like a function
    """A block that no task outlives which it has spawned (structured fork/join).

        with hdphrs.scope() as tasks:
            left = tasks.spawn(f, x)
            right = tasks.spawn(g, y)
        print(hdphrs.get(left) + hdphrs.get(right))

    Leaving waits for all.  If the block raises, all tasks are cancelled; if a task does, those that were spawned after
    it, so that it is always the same one whose exception comes first, however long they take.  Tasks that were
    cancelled, by the scope or by somebody else, count as ended, whatever they have raised then.

    A failure counts once.  If the block gets it and lets it go on, raises another exception while it handles it, or
    raises a group that holds it, that is all that comes out of the scope.

    Args:
        timeout: seconds from the beginning of the block within which all must have ended; those that have not are
            cancelled then.  The block itself is not interrupted.

    Raises:
        WaitTimeoutError: the time was over, and nothing had failed until then.
        UsageError: `timeout` is no number of seconds.
        BaseException: what the block or the only failing task has raised, the very exception.  `KeyboardInterrupt`,
            `SystemExit`, `Cancelled` and whatever else of the block's is no `Exception` goes on alone, too.
        ExceptionGroup: several have failed: what the block has raised, and then the tasks in the order of their spawns.
            How many tasks after the first had failed before they were cancelled depends on time; `except*` takes one
            exception and a group alike.
    """

    def __init__(self, *, timeout: float | None = None) -> None:
        self._futures: list[Future[Any]] = []
        self._cancelled: set[Future[Any]] = set()
        """In time: what becomes of these is no failure."""
        self._limit = None if timeout is None else Limit("scope", timeout)

    def spawn(self, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """`hdphrs.spawn`, of a task of this scope."""
        future = spawn(function, *args, **kwargs)
        self._futures.append(future)
        return future

    def __enter__(self) -> scope:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        late: WaitTimeoutError | None = None
        raised = error
        if error is None:
            try:
                self._wait()
            except WaitTimeoutError as limit:
                late = limit
            except BaseException as interruption:  # this task is to end, or a signal handler has raised
                raised = interruption
        if raised is not None or late is not None:
            self._give_up(raised)
        if raised is not None and not isinstance(raised, Exception):
            failures = [raised]
        else:
            failures = distinct(raised, self._failures())
        if len(failures) > 1:
            group = BaseExceptionGroup("several tasks of a scope have failed", failures)
            try:
                raise group
            finally:
                group.__context__ = None  # it holds what the block has raised, and that is not to be found twice
        if failures:
            if failures[0] is not error:
                raise failures[0]
        elif late is not None:
            raise late from None

    def _give_up(self, why: BaseException | None) -> None:
        """Cancel all tasks, and wait until those that run here have seen it."""
        try:
            self._cancel(self._futures)
            wait(self._futures)
        except BaseException as error:
            self._cancel(self._futures)  # a signal handler may have raised just before one of them
            if not (isinstance(error, Cancelled) and isinstance(why, Cancelled)):  # else this task is to end
                raise

    def _failures(self) -> Iterator[BaseException]:
        for future in self._futures:
            if future not in self._cancelled and (failure := _failure(future)) is not None:
                yield failure

    def _wait(self) -> None:
        """Until all have ended; those after the first that fails need not come to their end."""
        place = {future: index for index, future in enumerate(self._futures)}
        wanted = len(self._futures)
        for future in _completed(self._futures, self._limit, "scope"):
            if place[future] < wanted and _failure(future) is not None:
                after, wanted = wanted, place[future]
                self._cancel(self._futures[wanted + 1 : after])

    def _cancel(self, futures: list[Future[Any]]) -> None:
        for future in reversed(futures):
            if future.cancel():
                self._cancelled.add(future)


def _run(future: Future[Any]) -> bool:
    """Run it in place, if nobody has taken it; whether it was run."""
    if future._function is None:
        return False
    _settle(future)
    return True


def _settle(future: Future[Any]) -> None:
    """Get it, whatever becomes of it; what is raised here and is not its outcome goes on."""
    try:
        get(future)
    except BaseException as error:
        if not is_outcome(error, future):
            raise


def _failure(future: Future[Any]) -> BaseException | None:
    """What its task has raised, if it is full; None for a value, and for a cancelled one."""
    if not future.done():
        return None
    if future._status is not DONE and future._status is not FAILED:
        _settle(future)
    if future._status is DONE or isinstance(future._content, Cancelled):
        return None
    error: BaseException = future._content
    return error
