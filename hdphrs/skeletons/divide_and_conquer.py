"""Divide and conquer: a problem is split until it is trivial, the solutions are combined on the way back.

What lives here: the pattern, its variants, and the task that all of them run.  The paper uses them for Queens and
Mandelbrot (sections 3.2 and 7); the order of the arguments is HdpH's: is it trivial, how to decompose, how to combine,
how to solve what is trivial, the problem.

Every problem but the first is a task of its own and splits where it runs; a parent `get`s its children in order and
combines there.  The first one is split and combined by the caller: inside `hdphrs.run` that is a task too.

The eager variants place each level of the tree of problems on all nodes in turn.  (HdpH-RS draws the nodes at random,
and of all nodes but the caller's, which halves the capacity of two nodes.)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import Generic, TypeVar

import hdphrs.skeletons.strategy as strategy  # not from the package, which loads all of them
from hdphrs.api.memo import mark_skeleton
from hdphrs.skeletons.arguments import check_callable
from hdphrs.skeletons.collect import collect
from hdphrs.skeletons.skeleton import Skeleton
from hdphrs.skeletons.strategy import Strategy
from hdphrs.wire.constant import Constant

P = TypeVar("P")
"""A problem."""
S = TypeVar("S")
"""A solution."""


class DivideAndConquer(Skeleton):
    """A problem, its parts, the parts of those, each in a task of its own."""

    def __call__(
        self,
        trivial: Callable[[P], bool],
        decompose: Callable[[P], Iterable[P]],
        combine: Callable[[P, list[S]], S],
        solve: Callable[[P], S],
        problem: P,
    ) -> S:
        """Solve `problem` by divide and conquer (HdpH's `parDivideAndConquer`).

        The four functions must be idempotent.  They travel to each process once, not with every task; problems and
        solutions travel with theirs, so keep those small.

        Args:
            trivial: whether a problem is to be solved without splitting it further; sets the grain of the tasks.
            decompose: the parts of a problem that is not trivial, in order; the same ones whenever it is asked.
            combine: the solution of a problem, from that problem and the solutions of its parts, in their order.
            solve: the solution of a trivial problem.
            problem: what to solve.

        Returns:
            What this computes, without tasks::

                def answer(problem):
                    if trivial(problem):
                        return solve(problem)
                    return combine(problem, [answer(part) for part in decompose(problem)])

        Raises:
            UsageError: one of the four is not callable.
            Exception: what one of them raised.
        """
        check_callable(self.name, trivial=trivial, decompose=decompose, combine=combine, solve=solve)
        return conquer(Plan(self.schedule, trivial, decompose, combine, solve), problem)


@dataclass(eq=False, slots=True)
class Plan(Constant, Generic[P, S]):
    """What all tasks of one skeleton call have in common."""

    schedule: Strategy
    trivial: Callable[[P], bool]
    decompose: Callable[[P], Iterable[P]]
    combine: Callable[[P, list[S]], S]
    solve: Callable[[P], S]
    task: partial[S] = field(init=False)
    """`conquer`, bound to this plan: one object for all spawns of a process, since code is pickled once for each
    object."""

    def __post_init__(self) -> None:
        self.task = partial(conquer, self)
        mark_skeleton(self.task, self.trivial, self.decompose, self.combine, self.solve)


def conquer(plan: Plan[P, S], problem: P) -> S:
    """The task: solve one problem, with the help of more tasks unless it is trivial."""
    if plan.trivial(problem):
        return plan.solve(problem)
    return plan.combine(problem, collect(plan.schedule(plan.task, plan.decompose(problem))))


par_divide_and_conquer: DivideAndConquer = DivideAndConquer("par_divide_and_conquer", strategy.lazy)
push_divide_and_conquer: DivideAndConquer = DivideAndConquer("push_divide_and_conquer", strategy.eager_nested)
par_divide_and_conquer_ft: DivideAndConquer = DivideAndConquer("par_divide_and_conquer_ft", strategy.lazy_supervised)
push_divide_and_conquer_ft: DivideAndConquer = DivideAndConquer(
    "push_divide_and_conquer_ft", strategy.eager_nested_supervised
)
fork_divide_and_conquer: DivideAndConquer = DivideAndConquer("fork_divide_and_conquer", strategy.local)
