"""The operational semantics of section 3.4, executable: the rules of Figure 5.

What lives here: one function for each rule, named as the paper names it.  A rule takes the atoms on its left side and
yields each right side that it allows, none if its side condition does not hold.  `successors` finds the left sides in a
state, which is how Figure 4 lets a part of a state take a step.

What does not: strategies, that is who picks among the successors (`reduction.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import combinations, permutations, product
from typing import Any

from tests.paper.states import (
    Atom,
    Dead,
    Full,
    IVar,
    Node,
    OverSpark,
    OverThread,
    Spark,
    State,
    Thread,
    Zombie,
    mentions,
    names_of,
)
from tests.paper.terms import (
    UNIT,
    AllNodes,
    App,
    Bind,
    Eval,
    Get,
    Lit,
    Name,
    Return,
    RPut,
    Spawn,
    SpawnAt,
    Term,
    evaluate,
    free_names,
    root,
)

Right = tuple[Atom, ...]


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a rule may look at beside its left side."""

    nodes: tuple[Node, ...]
    rest: State
    proposed: str | None

    def fresh(self, term: Term) -> str:
        """A name that occurs nowhere: the proposed one, if there is one."""
        used = names_of(self.rest) | free_names(term)
        names = [self.proposed] if self.proposed is not None else [f"i{number}" for number in range(len(used) + 1)]
        return next(name for name in names if name not in used)


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule of Figure 5."""

    name: str
    left: tuple[Any, ...]
    rights: Callable[..., Iterator[Right]]


RULES: dict[str, Rule] = {}
"""In the order of the figure."""


def rule(*left: Any) -> Callable[[Callable[..., Iterator[Right]]], Callable[..., Iterator[Right]]]:
    """Declare a rule by the kinds of atoms on its left side."""

    def declare(rights: Callable[..., Iterator[Right]]) -> Callable[..., Iterator[Right]]:
        RULES[rights.__name__] = Rule(rights.__name__, left, rights)
        return rights

    return declare


def successors(state: State, name: str, nodes: tuple[Node, ...], fresh: str | None = None) -> Iterator[State]:
    """Every state that the rule of this name leads to in one step.

    Args:
        fresh: how to call an IVar that the rule makes; all names that occur nowhere do as well (α-equivalence).
    """
    one = RULES[name]
    kinds = [[at for at, atom in enumerate(state) if isinstance(atom, kind)] for kind in one.left]
    for chosen in product(*kinds):
        if len(set(chosen)) == len(chosen):
            rest = tuple(atom for at, atom in enumerate(state) if at not in chosen)
            for right in one.rights(Surroundings(nodes, rest, fresh), *(state[at] for at in chosen)):
                yield rest + right


# ---- evaluation contexts -------------------------------------------------------------------------------------


def split(term: Term) -> tuple[Term, tuple[Term, ...]]:
    """M as E[N]: the first action N, and what the context E still binds, inner first."""
    bound: list[Term] = []
    while isinstance(term, Bind):
        bound.append(term.then)
        term = term.first
    return term, tuple(reversed(bound))


def plug(term: Term, bound: tuple[Term, ...]) -> Term:
    """E[M]."""
    for then in bound:
        term = Bind(term, then)
    return term


# ---- threads -------------------------------------------------------------------------------------------------


@rule(Thread)
def normalize(_: Surroundings, thread: Thread) -> Iterator[Right]:
    """The first action is evaluated, unless it is a value already."""
    action, bound = split(thread.term)
    value = evaluate(action)
    if value != action:
        yield (Thread(plug(value, bound), thread.node),)


@rule(Thread)
def bind(_: Surroundings, thread: Thread) -> Iterator[Right]:
    """What the first action returns goes to the next."""
    action, bound = split(thread.term)
    if isinstance(action, Return) and bound:
        yield (Thread(plug(App(bound[0], action.term), bound[1:]), thread.node),)


@rule(Thread)
def eval(_: Surroundings, thread: Thread) -> Iterator[Right]:  # noqa: A001 - the paper's name
    """A strict return."""
    action, bound = split(thread.term)
    if isinstance(action, Eval):
        yield (Thread(plug(Return(evaluate(action.term)), bound), thread.node),)


@rule(Thread)
def allNodes(around: Surroundings, thread: Thread) -> Iterator[Right]:  # noqa: N802 - the paper's name
    """All nodes, the thread's own first, the others in any order."""
    action, bound = split(thread.term)
    if isinstance(action, AllNodes):
        for others in permutations(node for node in around.nodes if node != thread.node):
            yield (Thread(plug(Return(Lit((thread.node, *others))), bound), thread.node),)


@rule(Thread)
def spawn(around: Surroundings, thread: Thread) -> Iterator[Right]:
    """A new IVar here, and a spark here that is to fill it, with its backup in the IVar."""
    action, bound = split(thread.term)
    if isinstance(action, Spawn) and not free_names(action.task):
        here, ivar = thread.node, around.fresh(thread.term)
        task = root(action.task, ivar)
        ready = Thread(plug(Return(Name(ivar)), bound), here)
        yield ready, OverSpark(ivar, task, frozenset([here]), here), Spark(task, here)


@rule(Thread)
def spawnAt(around: Surroundings, thread: Thread) -> Iterator[Right]:  # noqa: N802 - the paper's name
    """A new IVar here, and a thread on the node asked for, with its backup in the IVar."""
    action, bound = split(thread.term)
    if isinstance(action, SpawnAt) and isinstance(action.node, Lit) and not free_names(action.task):
        there = action.node.value
        assert isinstance(there, int)
        ivar = around.fresh(thread.term)
        task = root(action.task, ivar)
        ready = Thread(plug(Return(Name(ivar)), bound), thread.node)
        yield ready, OverThread(ivar, task, there, thread.node), Thread(task, there)


def _writes(thread: Thread, ivar: IVar) -> tuple[Thread, Term] | None:
    """The thread after its write to this IVar, and what it writes; None if that is not its first action."""
    action, bound = split(thread.term)
    if isinstance(action, RPut) and action.future == Name(ivar.ivar) and not free_names(action.term):
        return Thread(plug(Return(UNIT), bound), thread.node), action.term
    return None


@rule(Thread, OverThread)
def rput_empty_thread(_: Surroundings, thread: Thread, ivar: OverThread) -> Iterator[Right]:
    """The first write fills the IVar and ends the supervision of a thread; from its node only, as printed."""
    written = _writes(thread, ivar)
    if written and ivar.at == thread.node:
        yield written[0], Full(ivar.ivar, written[1], ivar.node)


@rule(Thread, OverSpark)
def rput_empty_spark(_: Surroundings, thread: Thread, ivar: OverSpark) -> Iterator[Right]:
    """The first write fills the IVar and ends the supervision of a spark; it may come from anywhere."""
    written = _writes(thread, ivar)
    if written:
        yield written[0], Full(ivar.ivar, written[1], ivar.node)


@rule(Thread, Full)
def rput_full(_: Surroundings, thread: Thread, ivar: Full) -> Iterator[Right]:
    """Later writes have no effect."""
    written = _writes(thread, ivar)
    if written:
        yield written[0], ivar


@rule(Thread, Zombie)
def rput_zombie(_: Surroundings, thread: Thread, ivar: Zombie) -> Iterator[Right]:
    """Nor have writes to the dead."""
    written = _writes(thread, ivar)
    if written:
        yield written[0], ivar


@rule(Thread, Full)
def get(_: Surroundings, thread: Thread, ivar: Full) -> Iterator[Right]:
    """An IVar is read where it lives, and stays full."""
    action, bound = split(thread.term)
    if action == Get(Name(ivar.ivar)) and ivar.node == thread.node:
        yield Thread(plug(Return(ivar.term), bound), thread.node), ivar


# ---- sparks --------------------------------------------------------------------------------------------------


@rule(Spark, OverSpark)
def migrate(_: Surroundings, spark: Spark, ivar: OverSpark) -> Iterator[Right]:
    """A spark moves between nodes that are both tracked."""
    if spark.term == ivar.term and spark.node in ivar.tracked:
        for to in sorted(ivar.tracked - {spark.node}):
            yield Spark(spark.term, to), ivar


@rule(Spark, OverSpark)
def track(around: Surroundings, spark: Spark, ivar: OverSpark) -> Iterator[Right]:
    """What is tracked changes at will, but the spark stays within."""
    if spark.term == ivar.term and spark.node in ivar.tracked:
        others = [node for node in around.nodes if node != spark.node]
        for size in range(len(others) + 1):
            for some in combinations(others, size):
                tracked = frozenset([spark.node, *some])
                if tracked != ivar.tracked:
                    yield spark, OverSpark(ivar.ivar, ivar.term, tracked, ivar.node)


@rule(Spark)
def convert(_: Surroundings, spark: Spark) -> Iterator[Right]:
    """A spark begins to execute, and moves no more."""
    yield (Thread(spark.term, spark.node),)


# ---- faults --------------------------------------------------------------------------------------------------


@rule(OverThread, Dead)
def recover_thread(_: Surroundings, ivar: OverThread, dead: Dead) -> Iterator[Right]:
    """The thread may be lost: it executes here, on the IVar's node."""
    if ivar.at == dead.node != ivar.node:
        here = ivar.node
        yield OverThread(ivar.ivar, ivar.term, here, here), Thread(ivar.term, here), dead


@rule(OverSpark, Dead)
def recover_spark(_: Surroundings, ivar: OverSpark, dead: Dead) -> Iterator[Right]:
    """The spark may be lost: another one is made here, and this one is tracked."""
    if dead.node in ivar.tracked and dead.node != ivar.node:
        here = ivar.node
        yield OverSpark(ivar.ivar, ivar.term, frozenset([here]), here), Spark(ivar.term, here), dead


@rule(Dead, Spark)
def kill_spark(_: Surroundings, dead: Dead, spark: Spark) -> Iterator[Right]:
    """Gone with its node."""
    if spark.node == dead.node:
        yield (dead,)


@rule(Dead, Thread)
def kill_thread(_: Surroundings, dead: Dead, thread: Thread) -> Iterator[Right]:
    """Gone with its node."""
    if thread.node == dead.node:
        yield (dead,)


@rule(Thread)
def gc_thread(_: Surroundings, thread: Thread) -> Iterator[Right]:
    """A thread that has ended."""
    if thread.term == Return(UNIT):
        yield ()


@rule(IVar)
def gc_ivar(around: Surroundings, ivar: IVar) -> Iterator[Right]:
    """An IVar that nobody can reach any more."""
    if not any(mentions(atom, ivar.ivar) for atom in around.rest):
        yield ()


@rule(Dead, Full | OverThread | OverSpark)
def kill_ivar(_: Surroundings, dead: Dead, ivar: Full | OverThread | OverSpark) -> Iterator[Right]:
    """It stays as a zombie, else writes to it would be stuck."""
    if ivar.node == dead.node:
        yield dead, Zombie(ivar.ivar, ivar.node)


@rule()
def dead(around: Surroundings) -> Iterator[Right]:
    """Any node may die at any time, for ever."""
    for node in around.nodes:
        if Dead(node) not in around.rest:
            yield (Dead(node),)
