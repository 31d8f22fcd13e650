"""The calls beside spawn and get: placing tasks, asking for nodes, starting a program's main task."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from hdphrs.api import future as fast
from hdphrs.api.future import Future, Keywords, SupervisedFuture, state
from hdphrs.api.places import NodeInfo, Where, is_where
from hdphrs.errors import UsageError
from hdphrs.protocol.tasks import NodeId

T = TypeVar("T")
P = ParamSpec("P")


def spawn_at(where: Where, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
    """Make a task of `function(*args, **kwargs)` and place it on a node, where it starts without being stolen
    (section 3.1).

    If that node dies before the task is done, the task goes on as a spark that any node may run.

    Args:
        where: a node, the name of a host, or a predicate that gets the `NodeInfo` of each live node and says whether it
            will do.  When several will, they take turns, each as often as it has slots: the task goes to the node that
            has got the fewest from the calling process in this way, for each of its slots; among equals to the next one
            after the caller's own, in the order of ids.  None is ever owed more than one task for each of its slots.

    Raises:
        UsageError: `where` is none of these; no live node is on that host, or will do; the predicate raises.
        TaskLostError: (from `get`) there has never been such a node.
        CannotTravelError: function or arguments do not pickle; always raised here, at once.
    """
    return _place(where, Keywords(function, **kwargs) if kwargs else function, args, None)


def supervised_spawn(function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
    """`spawn` for skeletons whose name ends in FT: supervised even in an --unreliable run."""
    parent = fast.here.task
    if parent is None:
        return state.port.spawn(function, args, kwargs, True)
    future: Future[T] = SupervisedFuture()
    future._function = Keywords(function, **kwargs) if kwargs else function
    future._content = args
    future._parent = parent
    future._index = parent._spawned
    parent._spawned += 1
    if fast.isolates:
        future._context = fast.isolation.snapshot()
    fast.sparks.append(future)
    if fast.demand:
        state.port.export()
    return future


def supervised_spawn_at(where: Where, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
    """`spawn_at` for skeletons whose name ends in FT: supervised even in an --unreliable run."""
    return _place(where, Keywords(function, **kwargs) if kwargs else function, args, True)


def _place(where: Where, function: Callable[..., T], args: tuple[object, ...], supervised: bool | None) -> Future[T]:
    if not is_where(where) or not callable(function):
        raise UsageError(
            "spawn_at: the first argument is a node id as in all_nodes(), the name of a host, or a predicate over "
            f"NodeInfo, and the second one the function; not {where!r} and {function!r}"
        )
    return state.port.place(state.port.roster.choose(where, "spawn_at"), function, args, supervised)


def all_nodes() -> list[NodeId]:
    """The ids of all live nodes, the caller's own first (section 3.1)."""
    return list(state.port.roster.ids)


def node_infos() -> list[NodeInfo]:
    """What is known of all live nodes, the caller's own first: id, host, slots.

    A node that has just joined is in `all_nodes` perhaps a moment earlier than here.
    """
    return list(state.port.roster.infos)


def my_node() -> NodeId:
    """The id of the node that runs the caller; a program belongs to the root node, 0 (section 3.1)."""
    return state.port.roster.ids[0]


def run(main: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
    """Run `main(*args, **kwargs)` as the first task of the program, on the root node, and return its value.

    Inside `main`, spawn and get take the fast path: this is the form to prefer for nested work.  The task itself is
    supervised like any other.  Called inside a task, or in sequential mode, it simply calls `main`.

    Raises:
        UsageError: `main` is no function.
        BaseException: what `main` raised, with the remote traceback as its cause.
    """
    if not callable(main):
        raise UsageError(f"run: the first argument is the function, as in run(main, x); {main!r} is none")
    return state.port.run(Keywords(main, **kwargs) if kwargs else main, args)


def shutdown() -> None:
    """End the run of this program: its node, all schedulers, and the executors that use them; return when they have
    ended.

    What has not come back is cancelled: its futures raise `Cancelled`, those of executors
    `concurrent.futures.CancelledError`, in whatever thread waits for them.  Values that have come back stay.  The next
    call starts another node, but under `hdphrs run`, where each start of a program has one run.  Without effect in a
    program that has made no call, and in sequential mode.

    Raises:
        UsageError: inside a task, which the program alone can end.
    """
    if fast.here.task is not None or state.port.is_scheduler:
        raise UsageError("shutdown(): not inside a task; only the program can end its run")
    attach = sys.modules.get("hdphrs.program.attach")  # a layer above, which a program has loaded with its first call
    if attach is not None:
        attach.shutdown()
