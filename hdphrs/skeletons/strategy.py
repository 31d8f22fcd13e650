"""How a skeleton's tasks are distributed: the scheduling parameter that all skeletons share (Listing 3).

What lives here: the strategies.  A strategy starts one task for each of some arguments and yields the futures in the
same order; a skeleton is written once and takes its strategy as a parameter.

    lazy    `spawn`                  the tasks stay until somebody idle steals them: balances by itself, and recovers
                                     cheaply
    eager   `spawn_at`               the tasks are placed on the nodes in turn, the caller's own included, and do not
                                     move
    local   `spawn_at(my_node())`    the tasks are shared by the cores of the caller's node (HdpH's `fork`)

The strategies are module-level functions, so that a nested skeleton can take its strategy along to other nodes by name.
They are generators: a task is started when its future is asked for, so that a stream may start them one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Protocol, TypeVar

from hdphrs.api.calls import all_nodes, my_node, spawn_at, supervised_spawn, supervised_spawn_at
from hdphrs.api.future import Future, spawn
from hdphrs.protocol.tasks import NodeId

A = TypeVar("A")
R = TypeVar("R")


class Strategy(Protocol):
    """Starts `task(argument)` for each argument; the futures come in the order of the arguments."""

    def __call__(self, task: Callable[[A], R], arguments: Iterable[A], /) -> Iterator[Future[R]]: ...


def lazy(task: Callable[[A], R], arguments: Iterable[A], /) -> Iterator[Future[R]]:
    """Spawn each; idle cores steal them (`mapM spawn`)."""
    for argument in arguments:
        yield spawn(task, argument)


def lazy_supervised(task: Callable[[A], R], arguments: Iterable[A], /) -> Iterator[Future[R]]:
    """As `lazy`, and re-created after a death even in a run with `--unreliable`."""
    for argument in arguments:
        yield supervised_spawn(task, argument)


def eager(task: Callable[[A], R], arguments: Iterable[A], /) -> Iterator[Future[R]]:
    """Place them on all nodes in turn, the caller's first (`zipWithM spawnAt (cycle nodes)`)."""
    for node, argument in zip(_rounds(), arguments, strict=False):
        yield spawn_at(node, task, argument)


def eager_supervised(task: Callable[[A], R], arguments: Iterable[A], /) -> Iterator[Future[R]]:
    """As `eager`, and re-created after a death even in a run with `--unreliable`."""
    for node, argument in zip(_rounds(), arguments, strict=False):
        yield supervised_spawn_at(node, task, argument)


def eager_nested(task: Callable[[A], R], arguments: Iterable[A], /) -> Iterator[Future[R]]:
    """Place the children of a task in a tree such that each *level* goes round all nodes in turn."""
    children = list(arguments)
    for node, argument in zip(_next_level(len(children)), children, strict=True):
        yield spawn_at(node, task, argument)


def eager_nested_supervised(task: Callable[[A], R], arguments: Iterable[A], /) -> Iterator[Future[R]]:
    """As `eager_nested`, and re-created after a death even in a run with `--unreliable`."""
    children = list(arguments)
    for node, argument in zip(_next_level(len(children)), children, strict=True):
        yield supervised_spawn_at(node, task, argument)


def local(task: Callable[[A], R], arguments: Iterable[A], /) -> Iterator[Future[R]]:
    """Place them on the caller's own node, whose cores share them; after its death they may go anywhere."""
    for argument in arguments:
        yield spawn_at(my_node(), task, argument)


def _rounds() -> Iterator[NodeId]:
    """All nodes, again and again; a round has those that live when it begins."""
    while True:
        yield from all_nodes()


def _next_level(arity: int) -> list[NodeId]:
    """The nodes for `arity` children of the running task, in order.

    Were each parent to start with its own node, the left half of a binary tree would never leave it, and most of many
    nodes would get nothing.  Instead child j of the i-th task of a level is the (arity * i + j)-th of the next one and
    goes to the node of that number, modulo their count.  There i is only needed modulo that count too, and so is the
    position of the node where the parent was placed: nothing has to travel along.
    """
    here, *others = all_nodes()
    nodes = sorted([here, *others])
    first = arity * nodes.index(here)
    return [nodes[(first + child) % len(nodes)] for child in range(arity)]
