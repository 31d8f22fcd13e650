"""The terms of Figure 3, and big-step evaluation of the host language (section 3.4).

What lives here: the syntax, and what a term evaluates to.  A closed term is substituted for a variable, so nothing can
be captured.  Two forms stand for the data constructors that the figure leaves out: `Prim`, a strict function over
literals, and `If`.  What does not: states and their transitions (`machine.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, fields, replace
from functools import cache
from typing import Any


@dataclass(frozen=True, slots=True)
class Lit:
    """A constant: (), a number, a node, a list of those."""

    value: Hashable


@dataclass(frozen=True, slots=True)
class Name:
    """An IVar: i."""

    ivar: str


@dataclass(frozen=True, slots=True)
class Var:
    """x."""

    name: str


@dataclass(frozen=True, slots=True)
class Lam:
    """λx.M."""

    variable: str
    body: Term


@dataclass(frozen=True, slots=True)
class Fix:
    """fix M."""

    body: Term


@dataclass(frozen=True, slots=True)
class App:
    """M N."""

    function: Term
    argument: Term


@dataclass(frozen=True, slots=True)
class Prim:
    """A function over literals."""

    function: Callable[..., Hashable]
    arguments: tuple[Term, ...]


@dataclass(frozen=True, slots=True)
class If:
    """Choice by a literal."""

    condition: Term
    then: Term
    otherwise: Term


@dataclass(frozen=True, slots=True)
class Bind:
    """M >>= N."""

    first: Term
    then: Term


@dataclass(frozen=True, slots=True)
class Return:
    """return M."""

    term: Term


@dataclass(frozen=True, slots=True)
class Eval:
    """eval M."""

    term: Term


@dataclass(frozen=True, slots=True)
class AllNodes:
    """allNodes."""


@dataclass(frozen=True, slots=True)
class Spawn:
    """spawn M."""

    task: Term


@dataclass(frozen=True, slots=True)
class SpawnAt:
    """spawnAt p M; strict in the node."""

    node: Term
    task: Term


@dataclass(frozen=True, slots=True)
class Get:
    """get i; strict in the IVar."""

    future: Term


@dataclass(frozen=True, slots=True)
class RPut:
    """rput i M; strict in the IVar."""

    future: Term
    term: Term


Term = Lit | Name | Var | Lam | Fix | App | Prim | If | Bind | Return | Eval | AllNodes | Spawn | SpawnAt | Get | RPut

UNIT = Lit(())


def rput_to(ivar: str) -> Term:
    """`rput i`, waiting for what to write."""
    return Lam("result", RPut(Name(ivar), Var("result")))


def root(task: Term, ivar: str) -> Term:
    """`M >>= rput i`: what the thread of a spawned task executes."""
    return Bind(task, rput_to(ivar))


def evaluate(term: Term) -> Term:
    """M ⇓ V: the value V of a closed term M, which may not end, as in any lambda calculus."""
    match term:
        case App(function, argument):
            return _apply(evaluate(function), argument)
        case Prim(function, arguments):
            return Lit(function(*map(literal, arguments)))
        case If(condition, then, otherwise):
            return evaluate(then if literal(condition) else otherwise)
        case SpawnAt(node, _):
            return replace(term, node=evaluate(node))
        case Get(future) | RPut(future, _):
            return replace(term, future=evaluate(future))
        case _:
            return term


def _apply(function: Term, argument: Term) -> Term:
    match function:
        case Lam(variable, body):
            return evaluate(substitute(body, variable, argument))
        case Fix(body):
            return evaluate(App(App(body, function), argument))
        case _:
            raise TypeError(f"{function} is applied to {argument}")


def literal(term: Term) -> Any:
    """The constant that a term evaluates to."""
    value = evaluate(term)
    if not isinstance(value, Lit):
        raise TypeError(f"{value} is no constant")
    return value.value


def substitute(term: Term, variable: str, closed: Term) -> Term:
    """M[N/x], for a closed N."""
    match term:
        case Var(name):
            return closed if name == variable else term
        case Lam(bound, _) if bound == variable:
            return term
        case Prim(function, arguments):
            return Prim(function, tuple(substitute(argument, variable, closed) for argument in arguments))
        case _:
            parts = {name: substitute(part, variable, closed) for name, part in _parts(term)}
            return replace(term, **parts) if parts else term  # type: ignore[arg-type]


@cache
def free_names(term: Term) -> frozenset[str]:
    """fn(M): the IVars that occur in a term."""
    if isinstance(term, Name):
        return frozenset([term.ivar])
    inner = term.arguments if isinstance(term, Prim) else tuple(part for _, part in _parts(term))
    return frozenset().union(*map(free_names, inner))


def _parts(term: Term) -> Iterator[tuple[str, Term]]:
    for field in fields(term):
        part = getattr(term, field.name)
        if isinstance(part, Term):
            yield field.name, part
