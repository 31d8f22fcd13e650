"""The calls beside spawn and get: placing tasks, asking for nodes, starting a program's main task."""

from __future__ import annotations

from collections.abc import Callable
from typing import ParamSpec, TypeVar

from hdphrs.api import future as fast
from hdphrs.api.future import Future, Keywords, SupervisedFuture, state
from hdphrs.errors import UsageError
from hdphrs.protocol.tasks import NODE_IDS_MAX, NodeId

T = TypeVar("T")
P = ParamSpec("P")


def spawn_at(node: NodeId, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
    """Make a task of `function(*args, **kwargs)` and place it on `node`, where it starts without being stolen
    (section 3.1).

    If that node dies before the task is done, the task goes on as a spark that any node may run.

    Raises:
        UsageError: `node` is not a node id.
        TaskLostError: (from `get`) there has never been such a node.
        CannotTravelError: function or arguments do not pickle; always raised here, at once.
    """
    return _place(node, Keywords(function, **kwargs) if kwargs else function, args, None)


def supervised_spawn(function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
    """`spawn` for skeletons whose name ends in FT: supervised even in an --unreliable run."""
    if fast.current is None:
        return state.port.spawn(function, args, kwargs, True)
    future: Future[T] = SupervisedFuture()
    future._function = Keywords(function, **kwargs) if kwargs else function
    future._content = args
    future._parent = fast.current
    future._index = fast.spawned
    fast.spawned += 1
    fast.sparks.append(future)
    if fast.demand[0]:
        state.port.export()
    return future


def supervised_spawn_at(node: NodeId, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
    """`spawn_at` for skeletons whose name ends in FT: supervised even in an --unreliable run."""
    return _place(node, Keywords(function, **kwargs) if kwargs else function, args, True)


def _place(node: object, function: Callable[..., T], args: tuple[object, ...], supervised: bool | None) -> Future[T]:
    if not isinstance(node, int) or not 0 <= node < NODE_IDS_MAX:
        raise UsageError(f"spawn_at: the first argument is a node id as in all_nodes(), not {node!r}")
    return state.port.place(NodeId(node), function, args, supervised)


def all_nodes() -> list[NodeId]:
    """The ids of all live nodes, the caller's own first (section 3.1)."""
    return list(state.port.nodes())


def my_node() -> NodeId:
    """The id of the node that runs the caller; a program belongs to the root node, 0 (section 3.1)."""
    return state.port.nodes()[0]


def run(main: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
    """Run `main(*args, **kwargs)` as the first task of the program, on the root node, and return its value.

    Inside `main`, spawn and get take the fast path: this is the form to prefer for nested work.  The task itself is
    supervised like any other.  Called inside a task, or in sequential mode, it simply calls `main`.

    Raises:
        BaseException: what `main` raised, with the remote traceback as its cause.
    """
    return state.port.run(Keywords(main, **kwargs) if kwargs else main, args)
