"""Searches of trees that are made as they are searched: enumeration, decision, optimisation (branch and bound).

What lives here: the three kinds, after the skeletons of YewPar.  The walk that they share is in `walk.py`.

The tasks of a decision or an optimisation let each other know what they have found, over the board of each process
(`hdphrs/api/board.py`), which knows it late, or never.  What is heard comes with the node that proves it, and a task
that has left something out because of it returns it as its own.  So each result holds something as good as the best
below its node, however much was left out, and whoever died: knowledge that is lost, or that outlives the task that had
it, changes no answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from typing import Any, Generic, TypeVar

import hdphrs.skeletons.strategy as strategy  # not from the package, which loads all of them
from hdphrs.api.future import state
from hdphrs.api.memo import mark_skeleton
from hdphrs.api.options import task
from hdphrs.skeletons.arguments import check_callable, check_count, check_flag
from hdphrs.skeletons.skeleton import Skeleton
from hdphrs.skeletons.walk import Plan, Step, search

N = TypeVar("N")
"""A node of the tree."""
B = TypeVar("B")


# ---- enumeration ---------------------------------------------------------------------------------------------


class Enumerate(Skeleton):
    """Something of each node of a tree, combined."""

    def __call__(
        self,
        children: Callable[[N], Iterable[N]],
        value: Callable[[N], B],
        combine: Callable[[B, B], B],
        root: N,
        initial: B,
        *,
        depth: int | None = None,
    ) -> B:
        """Combine the values of all nodes of a tree, in depth-first order.

        Gives `functools.reduce(combine, map(value, nodes), initial)`, where `nodes` are `root`, and then the same for
        each of its children.

        Args:
            children: those of a node, in order; the same ones whenever it is asked; lazily, if it likes.
            value: what a node counts.
            combine: associative.
            root: the root of the tree; nodes travel as arguments of tasks, so keep them small.
            initial: what comes first.
            depth: tasks are made of all nodes down to this level, at least 1.  None: of what is there after some
                milliseconds, again and again.

        Raises:
            UsageError: a function is not callable, or `depth` is neither a positive int nor None.
            Exception: what one of the functions raised.
        """
        check_callable(self.name, children=children, value=value, combine=combine)
        _check_depth(self.name, depth)
        plan: Plan[N, list[B]] = Plan(self.schedule, partial(Enumerator, value, combine), children, depth)
        mark_skeleton(plan.task, children, value, combine)
        return combine(initial, search(plan, root)[0])


class Enumerator(Generic[N, B]):
    """The walker of an enumeration; its result is one value in a list."""

    done: bool = False

    def __init__(self, value: Callable[[N], B], combine: Callable[[B, B], B]) -> None:
        self._value = value
        self._combine = combine
        self._total: list[B] = []

    def visit(self, node: N) -> Step:
        self.add([self._value(node)])
        return Step.BELOW

    def listen(self) -> None:
        """Nothing that others find matters here."""

    def add(self, result: list[B]) -> None:
        self._total = [self._combine(self._total[0], result[0])] if self._total else result

    def result(self) -> list[B]:
        return self._total


# ---- decision and optimisation -------------------------------------------------------------------------------


class Decide(Skeleton):
    """A node of a tree that has some property."""

    def __call__(
        self,
        children: Callable[[N], Iterable[N]],
        found: Callable[[N], bool],
        root: N,
        *,
        depth: int | None = None,
    ) -> N | None:
        """Find a node for which `found` holds, and stop at the first.

        Whether there is one does not depend on anything; which one it is, if there are several, may be another one each
        time.

        Args:
            children: those of a node, the most promising ones first; it may leave out those below which there is none.
            found: whether a node is an answer.
            root: the root of the tree; nodes travel as arguments of tasks, so keep them small.
            depth: as for `par_enumerate`.

        Returns:
            The node; None if there is none.

        Raises:
            UsageError: a function is not callable, or `depth` is neither a positive int nor None.
            Exception: what one of the functions raised, if no answer was found before.
        """
        check_callable(self.name, children=children, found=found)
        _check_depth(self.name, depth)
        plan: Plan[N, Find[N]] = Plan(self.schedule, partial(Decider, state.port.topic(), found), children, depth)
        answer = search(unkept(plan), root)
        return None if answer is None else answer[1]


class Maximise(Skeleton):
    """The best node of a tree, by branch and bound."""

    def __call__(
        self,
        children: Callable[[N], Iterable[N]],
        objective: Callable[[N], float | None],
        bound: Callable[[N], float] | None,
        root: N,
        *,
        descending: bool = False,
        depth: int | None = None,
    ) -> tuple[float, N] | None:
        """Find a node with the largest `objective`; below a node whose `bound` is no better than what is known, nothing
        is searched.

        The value does not depend on anything; which node it is, if several are as good, may be another one each time.
        To minimise, negate both.

        Args:
            children: those of a node, the most promising ones first.
            objective: the value of a node, an int or a float; None if it is no solution.
            bound: at least as large as the objective of the node and of all below it.  None: everything is searched.
            root: the root of the tree; nodes travel as arguments of tasks, so keep them small.
            descending: whether no child has a larger bound than the one before it, so that none need be looked at after
                one that cannot be better.
            depth: as for `par_enumerate`.

        Returns:
            The value and the node; None if there is no solution.

        Raises:
            UsageError: a function is not callable, `descending` is no bool, or `depth` is neither a positive int nor
                None.
            Exception: what one of the functions raised; not necessarily for a node that is searched each time.
        """
        check_callable(self.name, children=children, objective=objective, **({} if bound is None else {"bound": bound}))
        _check_depth(self.name, depth)
        check_flag(self.name, "descending", descending)
        walker = partial(Maximiser, state.port.topic(), objective, bound, descending)
        plan: Plan[N, Find[N]] = Plan(self.schedule, walker, children, depth)
        return search(unkept(plan), root)


Find = tuple[float, N] | None
"""What a task has found, or heard of; its result."""


def unkept(plan: Plan[N, Find[N]]) -> Plan[N, Find[N]]:
    """The same, and no ledger keeps its results: what is heard is of this search only."""
    task(memo=False)(plan.task)
    return plan


class Seeker(Generic[N]):
    """What the walkers of decision and optimisation have in common: the best find, and the board."""

    done: bool = False

    def __init__(self, topic: bytes) -> None:
        self._topic = topic
        self._best: Find[N] = None
        self._heard: object = None

    def listen(self) -> None:
        heard = state.port.best(self._topic)
        if heard is not None and heard is not self._heard:
            self._heard = heard
            self.add(heard[1])

    def add(self, result: Find[N]) -> None:
        if result is not None and (self._best is None or result[0] > self._best[0]):
            self._best = result

    def result(self) -> Find[N]:
        return self._best

    def stop(self) -> None:
        """Nothing more need be known."""
        self.done = True

    def tell(self, value: float, node: N) -> None:
        """This has been found here."""
        self._best = value, node
        with suppress(OverflowError):  # too large a number to be told
            state.port.tell(self._topic, float(value), self._best)


class Decider(Seeker[N]):
    """The walker of a decision; an answer has the value 1."""

    def __init__(self, topic: bytes, found: Callable[[N], bool]) -> None:
        super().__init__(topic)
        self._found = found

    def visit(self, node: N) -> Step:
        if self._found(node):
            self.tell(1.0, node)
            self.stop()
        return Step.BELOW

    def add(self, result: Find[N]) -> None:
        super().add(result)
        if self._best is not None:
            self.stop()


class Maximiser(Seeker[N]):
    """The walker of an optimisation."""

    def __init__(
        self,
        topic: bytes,
        objective: Callable[[N], float | None],
        bound: Callable[[N], float] | None,
        descending: bool,
    ) -> None:
        super().__init__(topic)
        self._objective = objective
        self._bound = bound
        self._bounded = Step.UP if descending else Step.NEXT

    def visit(self, node: N) -> Step:
        best = self._best
        if best is not None and self._bound is not None and self._bound(node) <= best[0]:
            return self._bounded
        value = self._objective(node)
        if value is not None and (best is None or value > best[0]):
            self.tell(value, node)
        return Step.BELOW


def _check_depth(name: str, depth: Any) -> None:
    if depth is not None:
        check_count(name, "depth", depth)


par_enumerate: Enumerate = Enumerate("par_enumerate", strategy.lazy)
push_enumerate: Enumerate = Enumerate("push_enumerate", strategy.eager)
fork_enumerate: Enumerate = Enumerate("fork_enumerate", strategy.local)

par_decide: Decide = Decide("par_decide", strategy.lazy)
push_decide: Decide = Decide("push_decide", strategy.eager)
fork_decide: Decide = Decide("fork_decide", strategy.local)

par_maximise: Maximise = Maximise("par_maximise", strategy.lazy)
push_maximise: Maximise = Maximise("push_maximise", strategy.eager)
fork_maximise: Maximise = Maximise("fork_maximise", strategy.local)
