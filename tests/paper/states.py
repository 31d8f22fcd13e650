"""The states of section 3.4 (Figure 3), and what of their algebra (Figure 4) is more than the order of a tuple.

What lives here: atoms, states, and the IVars in them.  A state is a multiset of atoms; names of IVars are drawn fresh
for a whole state, so name restriction need not be written down.  What does not: the rules (`machine.py`).
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from tests.paper.terms import Term, free_names

Node = int


@dataclass(frozen=True, slots=True)
class Thread:
    """⟨M⟩p: executes on p, and stays there."""

    term: Term
    node: Node


@dataclass(frozen=True, slots=True)
class Spark:
    """⟪M⟫p: on p, not yet executing, free to move."""

    term: Term
    node: Node


@dataclass(frozen=True, slots=True)
class Full:
    """i{M}p."""

    ivar: str
    term: Term
    node: Node


@dataclass(frozen=True, slots=True)
class OverThread:
    """i{⟨M⟩q}p: empty, on `node`; supervises a thread on `at`."""

    ivar: str
    term: Term
    at: Node
    node: Node


@dataclass(frozen=True, slots=True)
class OverSpark:
    """i{⟪M⟫Q}p: empty, on `node`; supervises a spark on one of `tracked`."""

    ivar: str
    term: Term
    tracked: frozenset[Node]
    node: Node


@dataclass(frozen=True, slots=True)
class Zombie:
    """i{⊥}p: p is dead, and writes to i have no effect."""

    ivar: str
    node: Node


@dataclass(frozen=True, slots=True)
class Dead:
    """dead p."""

    node: Node


IVar = Full | OverThread | OverSpark | Zombie
Atom = Thread | Spark | IVar | Dead
State = tuple[Atom, ...]
"""A parallel composition; its order means nothing."""


def same(one: State, other: State) -> bool:
    """S ≡ T."""
    return Counter(one) == Counter(other)


def names_of(state: State) -> frozenset[str]:
    """The IVars that a state has, or mentions."""
    inner: list[frozenset[str]] = []
    for atom in state:
        if isinstance(atom, IVar):
            inner.append(frozenset([atom.ivar]))
        if not isinstance(atom, Zombie | Dead):
            inner.append(free_names(atom.term))
    return frozenset().union(*inner)


def mentions(atom: Atom, ivar: str) -> bool:
    """Whether an IVar occurs free in an atom."""
    if isinstance(atom, IVar) and atom.ivar == ivar:
        return True
    return not isinstance(atom, Zombie | Dead) and ivar in free_names(atom.term)
