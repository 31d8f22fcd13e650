"""`spawn`, `get` and `Future`: the fast path, which is the product.

What lives here: everything that a spawn and a get of an un-stolen task execute.  What needs another process (waiting,
exporting, placing) goes through the `Port` of `port.py`, which a scheduler and a program each implement.

Theory of operation
-------------------

Inside a task, `spawn` makes a future and pushes it on the scheduler's private deque `sparks`; nothing is pickled,
hashed or registered.  `get` on a future that nobody has taken runs it in place, on the caller's stack.

A future is *taken* by whoever reads `_function` and then sets it to None.  The two steps are atomic: under the GIL the
interpreter switches threads only at calls, function starts and backward jumps, and there is none between them
(`tests/api/test_future.py` disassembles the code to check that).  Hence three parties may compete for a spark without a
lock: `get`, the scheduler's loop, and the helper thread that exports on behalf of a long task.  A taken future may stay
in the deque for a while, as a tombstone: `get` removes it if it is the newest, the one below that, or the oldest.

While `_function` is set, `_content` holds the arguments; afterwards it holds the value (`_status` DONE), the exception
(FAILED), or the slot by which the node knows the future (AWAY).  `_status` is not set at all while a task runs in
place, so that the fast path stores it only once.

`_parent` and `_index` are the task's path: they name it across re-execution, and are digested only on export.
`_spawned` is how many children it has spawned; it is there once the task runs.

As long as nothing has been set in this process that a task is to have for itself, a context variable or an event loop
for instance, `isolates` is False, and a child in place simply runs in its parent's context.  From then on each spawn
keeps the caller's context in `_context`, and each task runs in its own (`isolation.py`, decision 49).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Generic, NoReturn, ParamSpec, TypeVar

from hdphrs.errors import Cancelled, CannotTravelError

if TYPE_CHECKING:
    from hdphrs.api.isolation import Isolation
    from hdphrs.api.port import Port

T = TypeVar("T")
P = ParamSpec("P")
W = TypeVar("W", bound=Callable[..., Any])


class Status:
    """What has become of a taken future; compared by identity."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name: str = name

    def __repr__(self) -> str:
        return self.name


DONE: Final = Status("done")
FAILED: Final = Status("failed")
AWAY: Final = Status("away")
"""Exported or placed: its outcome will come from the node."""

TOMBSTONES_MAX: Final = 64
"""Taken futures that may pile up in the deque before it is swept."""

NAME_CHARS_MAX: Final = 256
"""Of a task's name."""

_NAMED_AFTER_FIRST: Final = "__hdphrs_named_after_first__"


class Future(Generic[T]):
    """The write-once result of a task (the paper's IVar, section 3.1).

    A future is read with `hdphrs.get` on the node that made it, any number of times.  It cannot travel to another
    task.
    """

    __slots__ = ("_content", "_context", "_function", "_index", "_parent", "_spawned", "_status")

    _function: Callable[..., T] | None
    _content: Any
    _context: Any
    _parent: Any
    _index: int
    _spawned: int
    _status: Status

    supervised: bool | None = None
    """Whether the task is re-created after a death; None leaves it to the mode of the run."""

    def done(self) -> bool:
        """Whether `get` would return, or raise, at once without running anything.

        Who asks again and again is answered with yes in the end: a task that nobody has taken by then is run.
        """
        if self._function is not None:
            state.port.want(self)
            return False
        status = getattr(self, "_status", None)
        return status is DONE or status is FAILED or (status is not None and state.port.poll(self))

    def get(self, timeout: float | None = None) -> T:
        """As `hdphrs.get`, but wait no longer than so many seconds (decision 19).

        A task that nobody has taken is started on a stack of its own, so that it can be left.  The caller goes on when
        its scheduler comes back to it: at once if that is idle, else when what runs there spawns, waits or ends.

        Raises:
            WaitTimeoutError: it took longer.  The task goes on, unless it is cancelled.
            UsageError: `timeout` is no number of seconds.
            BaseException: as `hdphrs.get`.
        """
        if timeout is not None:
            from hdphrs.api.waiting import await_one

            await_one(self, timeout)
        return get(self)

    def cancel(self) -> bool:
        """Give this future up: `get` raises `hdphrs.Cancelled` from now on, and its task with all that it has spawned
        ends wherever it is.

        What has not started vanishes.  What runs gets `Cancelled` at its next `spawn` or `get`; a scheduler whose task
        comes to none within a second is replaced.  A task of this scheduler that has started ends in that way, so its
        future is not empty until then.

        Returns:
            Whether it came in time; False if the future was full already.
        """
        if take(self) is not None:
            self._content = Cancelled("the task was cancelled before it had started")
            self._status = FAILED
            _count_tombstone()
            state.port.filled(self)
            return True
        status = getattr(self, "_status", None)
        return status is not DONE and status is not FAILED and state.port.cancel(self)

    def __await__(self) -> Generator[Any, Any, T]:
        """`await future`, under asyncio or trio, in a program and in tasks: as `get`, while the event loop goes on.

        A cancelled `await` cancels the future, as it does with asyncio's own futures and tasks; `asyncio.shield`
        prevents that.

        Raises:
            UsageError: under another event loop.
            BaseException: as `hdphrs.get`.
        """
        from hdphrs.api.awaiting import wait_for

        return wait_for(self).__await__()

    def __reduce__(self) -> NoReturn:
        raise CannotTravelError(
            "a Future cannot travel: it can only be read where it was made; "
            "get() it first and pass the value to the task"
        )

    def __repr__(self) -> str:
        if self._function is not None:
            return f"<Future of {name_of(self._function)}: waiting>"
        return f"<Future: {getattr(self, '_status', 'running')}>"


class SupervisedFuture(Future[T]):
    """The future of an FT skeleton's task: supervised whatever the mode of the run."""

    __slots__ = ()
    supervised: bool | None = True


class _Nobody:
    """In the place of the port of a process that has made no call yet; an attribute of the instance comes before it."""

    def __get__(self, state: State, owner: type[State]) -> Port:
        from hdphrs.api.port import unattached

        state.port = unattached()
        return state.port


class State:
    """Which port serves this process; replaced when it attaches, or becomes a scheduler, or goes sequential."""

    if TYPE_CHECKING:
        port: Port
    else:
        port = _Nobody()


state: Final = State()

sparks: deque[Future[Any]] = deque()
"""The private deque: oldest spark left, newest right."""


class Here:
    """What this process does; attributes of an object, since to store a global takes ten times as long."""

    __slots__ = ("ran", "task")

    def __init__(self) -> None:
        self.task: Future[Any] | None = None
        """The one whose code is running; None in a program, which has no deque and runs no task."""
        self.ran: int = 0
        """Sparks of this process that have been run by it."""


here: Final = Here()

NO_LIMIT: Any = here
"""The timeout of a `get` without one: it holds `here`, so that whoever gives another is found out without a test."""

_ODD: Final = Status("odd")

_tombstones = 0

watched: Future[Any] | None = None
"""The innermost running task that is known to run for long: its value may be worth keeping."""


def keep_nothing(future: Future[Any], function: Callable[..., Any], value: Any) -> None:
    """Where nobody watches."""


keep = keep_nothing
"""Called with a watched task, its function and its value when it has been run in place, and before anybody sees the
value; set by whoever sets `watched`."""

demand: object = False
"""True when somebody is hungry, or the task runs carefully or a second time: a number that a scheduler shares with its
node."""


isolates: bool = False
"""Whether each task of this process is run in a context of its own, since something may have been set that it must not
share; never False again."""

isolation: Isolation = None  # type: ignore[assignment]
"""Does that; set by whoever sets `isolates`, before."""


class Keywords(partial[T]):
    """A call's function together with its keyword arguments; taken apart again when it travels."""


def unfold(function: Any) -> tuple[Callable[..., Any], dict[str, Any]]:
    """The function of a call, and its keyword arguments."""
    if isinstance(function, Keywords):
        # A partial given to Keywords has been dissolved into it: its arguments are here, its function too.
        return (partial(function.func, *function.args) if function.args else function.func), function.keywords
    return function, {}


def named_after_first(work: W) -> W:
    """Decorates a function of ours that tasks run for one of the user's, its first argument: `name_of` names that."""
    setattr(work, _NAMED_AFTER_FIRST, True)
    return work


def name_of(function: Callable[..., object]) -> str:
    """The name under which a person knows this function: of bounded length, and such that it becomes UTF-8."""
    while isinstance(function, partial):
        inner = function.func
        function = function.args[0] if function.args and getattr(inner, _NAMED_AFTER_FIRST, False) else inner
    name = str(getattr(function, "__qualname__", None) or type(function).__qualname__)
    return name[:NAME_CHARS_MAX].encode("utf-8", "backslashreplace").decode()


def spawn(function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
    """Make a task of `function(*args, **kwargs)` that any idle core may run, and return its future (section 3.1).

    Args:
        function: any callable that pickles: plain functions, lambdas, closures, methods, `functools.partial`, also
            those of `__main__`.  It must be idempotent, since it may run again after a failure.
        args: its arguments; they must pickle, and must hold no `Future`.

    Raises:
        CannotTravelError: in a program, at once, when function or arguments do not pickle.  Inside a task the same
            error is the result of the task, and only when the task really has to travel.
    """
    parent = here.task
    if parent is None:
        return state.port.spawn(function, args, kwargs, None)
    if kwargs:
        function = Keywords(function, **kwargs)
    future: Future[T] = Future()
    future._function = function
    future._content = args
    future._parent = parent
    future._index = index = parent._spawned
    parent._spawned = index + 1
    if isolates:  # as `isolation.snapshot`
        context = isolation.copy_context()
        future._context = isolation.handed_on(context) if context else context
    sparks.append(future)
    if demand:
        state.port.export()
    return future


def get(future: Future[T], timeout: float | None = NO_LIMIT) -> T:
    """The value of a future: run its task in place if nobody has taken it, else wait for it (section 3.1).

    Waiting suspends the calling task, never its scheduler; in a program it blocks the calling thread.

    Args:
        future: one that `spawn` or `spawn_at` has returned.
        timeout: as for `Future.get`: seconds; without one, and with None, there is no limit.

    Raises:
        UsageError: `future` is none, or `timeout` no number of seconds.
        BaseException: what the task raised, with the remote traceback as its cause.
        Cancelled: the future was cancelled, or the task that calls this is about to end because its own was.
        TaskCrashedError: the task took down as many scheduler processes as it has attempts.
        RootLostError: the root node is gone.
    """
    caller: Any
    # No test for what is unusual: it has not these attributes.  In one line, since another one costs a bytecode.
    # fmt: off
    try: function, caller = future._function, timeout.task  # type: ignore[union-attr]  # noqa: E701
    # fmt: on
    except AttributeError:
        function, caller = None, _ODD
    if function is not None:
        future._function = None  # GIL: taking a future
        try:
            try:
                top = sparks.pop()
                if top is not future:
                    try:  # the first of a pair is below; in the order of the spawns each is the oldest
                        below = sparks.pop()
                        if below is not future:
                            sparks.append(below)
                            oldest = sparks.popleft()
                            if oldest is not future:
                                sparks.appendleft(oldest)
                                _count_tombstone()
                    finally:
                        sparks.append(top)
            except IndexError:
                pass  # the helper thread has just removed it, and will see that it is taken
            future._spawned = 0
            here.task = future
            args = future._content
            if isolates:
                value = isolation.run(future, function, args)
            else:
                value = function(args[0]) if len(args) == 1 else function(*args)
        except BaseException as error:
            future._content = error
            future._status = FAILED
            raise
        else:
            if future is watched:
                keep(future, function, value)
            future._content = value
            future._status = DONE
            return value
        finally:
            if isolates:
                try:  # which costs nothing, unlike `hasattr`
                    args = future._context
                except AttributeError:
                    isolation.renew()
            here.ran += 1
            here.task = caller
    if caller is _ODD:
        return _get_otherwise(future, timeout)  # type: ignore[no-any-return]
    status = getattr(future, "_status", None)
    if status is DONE:
        return future._content  # type: ignore[no-any-return]
    if status is FAILED:
        raise future._content
    return state.port.wait(future)


def _get_otherwise(future: Any, timeout: float | None) -> Any:
    """`get` with a timeout, or of what is no future."""
    if not (isinstance(future, Future) and hasattr(future, "_function")):
        from hdphrs.api.mistakes import no_future

        raise no_future(future)
    return get(future) if timeout is NO_LIMIT else future.get(timeout)


def context_of(future: Future[Any]) -> bytes:
    """The context of a task's spawn, as it travels; empty if there is nothing in it."""
    context = getattr(future, "_context", None) if isolates else None
    return b"" if context is None else isolation.pack(context)


def take(future: Future[Any]) -> Callable[..., Any] | None:
    """Claim a future found in the deque: its function, or None if it is only a tombstone."""
    function = future._function
    if function is not None:
        future._function = None  # GIL: taking a future
    return function


def is_outcome(error: BaseException, future: Future[Any]) -> bool:
    """Whether `get` has raised this because it is what has become of the future; else something has come between, as
    the exception of a signal handler, or the calling task is to end."""
    return getattr(future, "_status", None) is FAILED and future._content is error


def _count_tombstone() -> None:
    """Sweep the deque when most of it is tombstones: the cost is amortised over the gets that left them."""
    global _tombstones
    _tombstones += 1
    if _tombstones > TOMBSTONES_MAX and 2 * _tombstones > len(sparks):
        _tombstones = 0
        try:  # GIL: sweeping the deque
            for _ in range(len(sparks)):  # one by one: other threads may add and take some meanwhile
                future = sparks.popleft()
                if future._function is not None:
                    sparks.append(future)
        except IndexError:
            pass
