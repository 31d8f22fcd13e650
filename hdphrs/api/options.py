"""What can be said of the tasks of a function: `task` (decision 20).

What lives here: the decorator, what it leaves on a function, and how that is found again.  Options are read when a task
is encoded.  A spawn does not look at its function, so a process in which functions have options asks the scheduler at
each spawn (`use`); the others pay nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from itertools import islice
from typing import Any, Final, ParamSpec, TypeVar, overload

from hdphrs.api.memo import Wish, mark_memo, mark_of
from hdphrs.api.places import Roster, Where, is_where
from hdphrs.config import PRIORITY_MAX
from hdphrs.errors import UsageError
from hdphrs.protocol.tasks import NodeId
from hdphrs.records import dataclass

F = TypeVar("F", bound=Callable[..., Any])
P = ParamSpec("P")
T = TypeVar("T")

MARK: Final = "__hdphrs_options__"

ATTEMPTS_MAX: Final = 1000
TIMEOUT_S_MAX: Final = 1e6
PINS_MAX: Final = 1000
"""Nodes that one task may be pinned to."""

HERE: Final[tuple[Where, ...]] = ()
"""A pin to the node that spawns the task."""


class Use:
    """Whether functions of this process have options."""

    def __init__(self) -> None:
        self.begun: bool = False
        self.on_begin: Callable[[], object] = bool
        """Called when it begins."""

    def begin(self) -> None:
        """From now on."""
        if not self.begun:
            self.begun = True
            self.on_begin()


use: Final = Use()


@dataclass(frozen=True, slots=True)
class Options:
    """Those of one function."""

    attempts: int = 0
    """0: as many as the run allows."""
    timeout_s: float = 0.0
    """0: as long as it takes."""
    pin: tuple[Where, ...] | None = None
    """None: anywhere."""
    stealable: bool = True
    priority: int | None = None
    """None: that of the task that spawns it; of the program's 0."""

    def __post_init__(self) -> None:
        use.begin()

    def __reduce__(self) -> tuple[Any, ...]:
        return Options, (self.attempts, self.timeout_s, self.pin, self.stealable, self.priority)


@overload
def task(
    *,
    memo: bool | None = None,
    pin: bool | Where | Iterable[Where] = False,
    stealable: bool = True,
    attempts: int | None = None,
    timeout: float | None = None,
    priority: int | None = None,
) -> Callable[[F], F]: ...
@overload
def task(
    function: Callable[P, T],
    /,
    *,
    memo: bool | None = None,
    pin: bool | Where | Iterable[Where] = False,
    stealable: bool = True,
    attempts: int | None = None,
    timeout: float | None = None,
    priority: int | None = None,
) -> Callable[P, T]: ...
def task(
    function: Callable[..., Any] | None = None,
    /,
    *,
    memo: bool | None = None,
    pin: bool | Where | Iterable[Where] = False,
    stealable: bool = True,
    attempts: int | None = None,
    timeout: float | None = None,
    priority: int | None = None,
) -> Callable[..., Any]:
    """Say something about the tasks of a function: `@hdphrs.task(attempts=1)`, or for one call
    `spawn(hdphrs.task(f, timeout=5), x)`.

    A decorated function itself stays what it is; whoever calls it directly makes no task, and no option means anything.
    `task(f, ...)` returns another callable, and leaves `f` alone.

    A task with `pin`, `attempts`, `timeout` or `priority` always leaves its parent's process: it is pickled when it is
    spawned.

    Args:
        memo: True: the results go to the ledger, whatever they have cost; False: they never do, as befits what is
            random, looks at the clock or has effects.  None: those that have cost enough do.  Without --ledger, it
            means nothing.  A task that is found in the ledger is not run, nor are those that it would have spawned: to
            have a task run each time, mark those above it too.
        pin: True: it runs on the node that has spawned it; a node, the name of a host, a predicate over `NodeInfo`, or
            several of these: on one of the nodes that are meant, as they are when it is spawned.  If its node dies it
            is run again on another one of them; if there is none left, its future fails with `TaskLostError`.  If no
            node is meant, or a predicate raises, there is a `UsageError`: from `spawn` in the program, from `get`
            inside a task.
        stealable: False: it never leaves the process of the task that has spawned it, so that its arguments need not
            pickle, and shares its fate.  (Spawned by the program, which runs no task, it runs on the root node.)
        attempts: after so many crashes of its process its future fails with `TaskCrashedError`; None: after as many as
            the run allows (`--attempts`).
        priority: of tasks that wait at a node, those with the highest number are handed out first, whatever they cost
            the others; from -100 to 100.  None: as the task that spawns it; 0 in the program.  Between tasks of one
            priority, those of different calls of the program's take turns.
        timeout: for how many seconds it may run, from its beginning, before it is ended with all that it has spawned
            (as by `Future.cancel`), and its future fails with `TaskTimeoutError`.  Whoever waits meanwhile is counted
            too.  A task that is run again after a death has all of this time again.

    Raises:
        UsageError: an option is none of these, or goes with no other, or what is decorated takes no mark.
    """
    if memo is not None and not isinstance(memo, bool):
        raise UsageError(f"task: memo is True, False or None, not {memo!r}")
    given = _checked(pin, stealable, attempts, timeout, priority)
    if function is not None:
        if not callable(function):
            raise UsageError(f"task: options are given by name, and {function!r} is no function")
        return _marked(partial(function), memo, given)
    return lambda decorated: _marked(decorated, memo, given)


def options_of(function: object) -> Options | None:
    """What was said of the tasks of a callable."""
    found = mark_of(function, MARK) if use.begun else None
    return found if isinstance(found, Options) else None


def options_of_task(
    function: object, roster: Roster, inherited: int = 0, *, is_placed: bool = False
) -> tuple[int, float, tuple[NodeId, ...], int]:
    """The last fields of a `Task` that leaves its process: attempts, timeout_s, pin, priority; if it is placed, no pin
    counts.

    Args:
        inherited: the priority of the task that spawns it.

    Raises:
        UsageError: no node is what it is pinned to.
    """
    options = options_of(function)
    if options is None:
        return 0, 0.0, (), inherited
    priority = inherited if options.priority is None else options.priority
    return options.attempts, options.timeout_s, () if is_placed else _pinned_to(options, roster), priority


def _pinned_to(options: Options, roster: Roster) -> tuple[NodeId, ...]:
    if options.pin == HERE or not options.stealable:
        return (roster.ids[0],)
    pins: dict[NodeId, None] = {}
    for where in options.pin or ():
        pins.update(dict.fromkeys(roster.meant(where, "pin")))
    return tuple(islice(pins, PINS_MAX))


def _marked(function: F, memo: bool | None, given: dict[str, Any]) -> F:
    try:
        if memo is not None or not given:
            mark_memo(function, {True: Wish.ALWAYS, False: Wish.NEVER, None: Wish.FAIR}[memo])
        if given:
            options = replace(options_of(function) or Options(), **given)
            _check_together(options)
            setattr(function, MARK, options)
    except AttributeError as error:
        raise UsageError(f"task: {function!r} takes no mark; decorate a function") from error
    return function


def _checked(pin: object, stealable: object, attempts: object, timeout: object, priority: object) -> dict[str, Any]:
    """Those that were given, as fields of `Options`."""
    given: dict[str, Any] = {}
    if not isinstance(stealable, bool):
        raise UsageError(f"task: stealable is True or False, not {stealable!r}")
    if not stealable:
        given["stealable"] = False
    if attempts is not None:
        if isinstance(attempts, bool) or not isinstance(attempts, int) or not 1 <= attempts <= ATTEMPTS_MAX:
            raise UsageError(f"task: attempts is a number from 1 to {ATTEMPTS_MAX}, or None, not {attempts!r}")
        given["attempts"] = attempts
    if timeout is not None:
        is_number = isinstance(timeout, int | float) and not isinstance(timeout, bool)
        if not is_number or not 0 < timeout <= TIMEOUT_S_MAX:  # type: ignore[operator]
            raise UsageError(f"task: timeout is a number of seconds above 0, or None for no limit, not {timeout!r}")
        given["timeout_s"] = float(timeout)  # type: ignore[arg-type]
    if priority is not None:
        is_number = isinstance(priority, int) and not isinstance(priority, bool)
        if not is_number or not -PRIORITY_MAX <= priority <= PRIORITY_MAX:  # type: ignore[operator]
            raise UsageError(
                f"task: priority is a number from {-PRIORITY_MAX} to {PRIORITY_MAX}, or None, not {priority!r}"
            )
        given["priority"] = priority
    if pin is not False:
        given["pin"] = _places(pin)
    return given


def _places(pin: object) -> tuple[Where, ...]:
    if pin is True:
        return HERE
    places: tuple[Any, ...] = (pin,)
    if isinstance(pin, Iterable) and not isinstance(pin, str | bytes):
        places = tuple(dict.fromkeys(pin))
    if not 1 <= len(places) <= PINS_MAX or not all(map(is_where, places)):
        raise UsageError(
            "task: pin is True, a node as in all_nodes(), the name of a host, a predicate over NodeInfo, or several of "
            f"these, not {pin!r}"
        )
    return places


def _check_together(options: Options) -> None:
    if not options.stealable and options != Options(stealable=False):
        raise UsageError(
            "task: stealable=False keeps a task in its parent's process, whose fate it shares; "
            "so it has no pin, attempts, timeout or priority of its own"
        )
