"""The walk that all searches share: a tree that is made as it is searched, depth first, in tasks.

What lives here: what a task does with the nodes below its own, and how it has others help.  What it looks for is the
business of `search.py`.

Theory of operation
-------------------

A task walks the tree below its node in depth-first order.  Given a `depth`, tasks are made of all nodes down to it.
Otherwise a task that has walked for some milliseconds gives away what is left next to the path from its node to where
it is, as near to its node as there is something: what is likely to be most.  So there are as many tasks as the work
needs, however irregular the tree; and what nobody steals is walked in place, later.

What a task gives away comes after all that it still walks, and before all that it has given away earlier.  So results
are combined in depth-first order, whoever walked what.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from enum import Enum
from functools import partial
from itertools import chain
from time import perf_counter
from typing import Generic, Protocol, TypeVar

from hdphrs.api.future import Future, get
from hdphrs.skeletons.collect import collect, give_up
from hdphrs.skeletons.strategy import Strategy
from hdphrs.wire.constant import Constant

N = TypeVar("N")
"""A node of the tree."""
M = TypeVar("M", contravariant=True)
R = TypeVar("R")

SPLIT_S = 10e-3
"""A task that has walked for so long gives something away."""

LISTEN_S = 1e-3
"""How long a task walks without a look at the board."""


class Step(Enum):
    """Where the walk goes from a node."""

    BELOW = "to its children"
    NEXT = "to its next sibling"
    UP = "past all its siblings that are still to come"


class Walker(Protocol[M, R]):
    """What a task of one kind of search does on its way."""

    done: bool
    """Nothing that could still be met would change the result."""

    def visit(self, node: M) -> Step:
        """Meet a node; where to go from it."""

    def listen(self) -> None:
        """Look at the board."""

    def add(self, result: R) -> None:
        """Combine with the result of a task, which comes after all that was met or added before."""

    def result(self) -> R:
        """What has been found."""


@dataclass(eq=False, slots=True)
class Plan(Constant, Generic[N, R]):
    """What all tasks of one search have in common."""

    schedule: Strategy
    walker: Callable[[], Walker[N, R]]
    children: Callable[[N], Iterable[N]]
    depth: int | None
    task: partial[R] = field(init=False)
    """`walk`, bound to this plan: one object for all spawns of a process."""

    def __post_init__(self) -> None:
        self.task = partial(walk, self)


def search(plan: Plan[N, R], root: N) -> R:
    """Walk the whole tree, in tasks, the first of which has all of it."""
    (whole,) = collect(plan.schedule(plan.task, [(0, root)]))
    return whole


def walk(plan: Plan[N, R], start: tuple[int, N]) -> R:
    """The task: walk the tree below a node of this level, or have others do it."""
    walker = plan.walker()
    given: list[list[Future[R]]] = []
    """What others do, the latest first in depth-first order."""
    try:
        _go(plan, start, walker, given)
        for future in chain.from_iterable(reversed(given)):
            if walker.done:
                break
            walker.add(get(future))
        return walker.result()
    finally:
        give_up(chain.from_iterable(given))


def _go(plan: Plan[N, R], start: tuple[int, N], walker: Walker[N, R], given: list[list[Future[R]]]) -> None:
    """Walk, and add what is given away to `given`."""
    level, node = start
    path: list[Iterator[N]] = []
    """Of each node from `node` to where the walk is, the children that are still to be met."""
    walker.listen()
    if not walker.done and walker.visit(node) is Step.BELOW:
        path.append(iter(plan.children(node)))
    if plan.depth is not None and level < plan.depth and path and not walker.done:
        given.append(list(plan.schedule(plan.task, [(level + 1, child) for child in path.pop()])))
    split_s = listen_s = perf_counter()
    while path and not walker.done:
        for child in path[-1]:
            step = walker.visit(child)
            if step is Step.BELOW:
                path.append(iter(plan.children(child)))
            elif step is Step.UP:
                path.pop()
            break
        else:
            path.pop()
            continue
        now_s = perf_counter()
        if now_s - listen_s >= LISTEN_S:
            listen_s = now_s
            walker.listen()
        if plan.depth is None and now_s - split_s >= SPLIT_S:
            split_s = now_s
            given.append(list(plan.schedule(plan.task, [(0, other) for other in _nearest(path)])))


def _nearest(path: list[Iterator[N]]) -> list[N]:
    """Nodes that are still to be met, all of the same parent, which is as near to the beginning as possible."""
    return next((rest for children in path if (rest := list(children))), [])
