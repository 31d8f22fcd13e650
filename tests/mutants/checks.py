"""The checks that may catch a planted bug, and what is known of which does.

What lives here: `Check`, one line of a table says which check catches which bug fastest, and `catch`, which tries that
one first and then all general ones.  The general checks know nothing of the bug: a search of a scope, a random play.
A scenario is a named regression, and written for one rule; where only that catches a bug, `SCENARIOS` says why.
"""

from __future__ import annotations

import importlib
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from hdphrs.explore.moves import Move
from hdphrs.explore.scenario import write
from hdphrs.explore.scope import RETAINED, SCOPES, Job, Scope
from hdphrs.explore.search import search
from hdphrs.protocol.events import Event, Received
from hdphrs.protocol.node import Node
from hdphrs.protocol.tasks import NodeId
from tests.mutants.expected import KNOWN, SCENARIOS
from tests.mutants.patching import Mutant
from tests.mutants.skirmish import skirmish
from tests.protocol.test_interleavings import play

STATES_MAX = 50_000
"""Of each scope; the searches of `hdphrs explore` have no such bound."""

SEARCHED: dict[str, Scope] = {
    **{
        name: SCOPES[name]
        for name in ("guards", "orphans", "placed", "one", "newcomer", "joining", "leaving", "cancelling")
    },
    "host": Scope("host", "a child that is stolen from the root too", (Job(1),), root_works=True, deaths=1, gives=True),
    "lost": Scope(
        "lost", "a task that nobody supervises is lost", (Job(supervised=False),), nodes=2, root_works=True, leaves=1
    ),
    "adopting": Scope("adopting", "an orphan is waited for", (Job(1),), root_works=True, deaths=1, config=RETAINED),
    "gone": Scope("gone", "an orphan is given back", (Job(1),), root_works=True, deaths=1, gives=True, config=RETAINED),
    "third": Scope("third", "supervisor, victim and thief are three mortals", (Job(1),), nodes=4, deaths=1, gives=True),
}
"""Small ones first."""

SEEDS = 100
"""Tried of each kind of play when what is known no longer holds."""

TRACE_MAX = 15


@dataclass(frozen=True, slots=True)
class Caught:
    """How a planted bug was found out."""

    check: str
    told: str
    depth: int | None = None
    """Moves of the shortest counterexample; None where the check knows no shortest one."""
    trace: tuple[str, ...] = ()
    why: str = ""
    """Why a scenario is evidence enough."""


def explored(scope: str) -> Caught | None:
    """The first violation that breadth-first search finds, so one of the shortest."""
    report = search(SEARCHED[scope], states_max=STATES_MAX)
    if report.violation is None:
        return None
    moves = report.violation.moves
    return Caught(f"explore {scope}", report.violation.told, len(moves), _moves(scope, moves))


def played(name: str, seed: int) -> Caught | None:
    """A random play of one kind; any exception counts."""
    last: deque[str] = deque(maxlen=TRACE_MAX)
    plays: dict[str, Callable[[int], object]] = {"play": play, "skirmish": skirmish}
    with _overheard(last):
        try:
            plays[name](seed)
        except Exception as error:
            return Caught(f"{name} {seed}", _tell(error), trace=tuple(last))
    return None


def scenario(mutant: str) -> Caught | None:
    """The regression that is known to fail."""
    where, why = SCENARIOS[mutant]
    module, name = where.split("::")
    last: deque[str] = deque(maxlen=TRACE_MAX)
    test = getattr(importlib.import_module(f"tests.protocol.{module}"), name)
    with _overheard(last):
        try:
            test()
        except Exception as error:
            return Caught(name, _tell(error), trace=tuple(last), why=why)
    return None


def known(mutant: Mutant) -> Caught | None:
    """The check that is known to catch this bug, by itself."""
    if mutant.name in SCENARIOS:
        return scenario(mutant.name)
    if mutant.name not in KNOWN:
        return None
    check, _, about = KNOWN[mutant.name].partition(" ")
    return explored(about) if check == "explore" else played(check, int(about))


def catch(mutant: Mutant) -> Caught | None:
    """What catches the bug that is planted now: what is known to, or else the first general check that does."""
    return known(mutant) or next(filter(None, _general()), None)


def control() -> Caught | None:
    """All that catches some bug, against whatever is planted now; meant for the core as it is."""
    for about in dict.fromkeys(KNOWN.values()):
        check, _, what = about.partition(" ")
        caught = explored(what) if check == "explore" else played(check, int(what))
        if caught is not None:
            return caught
    return next(filter(None, map(scenario, SCENARIOS)), None)


def _general() -> Iterator[Caught | None]:
    for scope in SEARCHED:
        yield explored(scope)
    for seed in range(SEEDS):
        yield played("skirmish", seed)
        yield played("play", seed)


@contextmanager
def _overheard(last: deque[str]) -> Iterator[None]:
    """Each event of each node is noted."""
    right = Node.handle

    def handle(self: Node, event: Event, now: float) -> list[object]:
        last.append(_event(self.me, event))
        return right(self, event, now)  # type: ignore[return-value]

    Node.handle = handle  # type: ignore[method-assign, assignment]
    try:
        yield
    finally:
        Node.handle = right  # type: ignore[method-assign]


def _event(node: NodeId | None, event: Event) -> str:
    told = f"{event.sender} -> {node}: {event.message}" if isinstance(event, Received) else f"{node}: {event}"
    return told if len(told) <= 160 else told[:157] + "..."


def _moves(scope: str, moves: tuple[Move, ...]) -> tuple[str, ...]:
    lines = write(SEARCHED[scope], "", moves).splitlines()
    return tuple(line for line in lines if line and not line.startswith(("#", "scope ")))


def _tell(error: Exception) -> str:
    return str(error) if isinstance(error, AssertionError) else f"{type(error).__name__}: {error}"
