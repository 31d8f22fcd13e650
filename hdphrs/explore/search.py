"""The search: breadth first, so that the first violation found is one of the shortest.

What lives here: `search`, which visits every state of a scope, and what it reports.  A state in which nothing is left
to do is not followed further.  When all states are known, each must have a way to such an end in which nothing fails
any more: a state without one is stuck, or in a circle that it cannot leave.  If every message, timer, scheduler and
choice that stays possible happens at last (strong fairness), then this is just what it takes for every run to end.
"""

from __future__ import annotations

import time
from array import array
from collections.abc import Iterator
from dataclasses import dataclass

from hdphrs.audit.violation import Violation
from hdphrs.errors import InternalError
from hdphrs.explore.moves import Move
from hdphrs.explore.names import State
from hdphrs.explore.scope import Scope
from hdphrs.explore.space import Space

LIVENESS = 5
"""The number of the invariant that everything ends."""


@dataclass(frozen=True, slots=True)
class Found:
    """A violation, and one of the shortest ways to it."""

    invariant: int | None
    """Its number; None if the core raised, or did what no interleaving can produce."""
    told: str
    moves: tuple[Move, ...]


@dataclass(frozen=True, slots=True)
class Report:
    """What a search has seen."""

    scope: Scope
    states: int
    transitions: int
    depth: int
    """The length of the longest of the shortest ways to a state."""
    ends: int
    """States in which nothing is left to do."""
    took_s: float
    """Processor time: what else runs on the machine does not count."""
    met: dict[str, int]
    """What has happened, and in how many transitions."""
    violation: Found | None
    complete: bool
    """Whether all states were visited."""

    @property
    def vacuous(self) -> tuple[str, ...]:
        """What should have happened, and has not."""
        return tuple(name for name in self.scope.must if not self.met.get(name))


def search(scope: Scope, *, symmetric: bool = True, states_max: int | None = None) -> Report:
    """Visit every state of a scope, up to the first violation.

    Args:
        symmetric: one state stands for all that differ from it in the nodes' names.
        states_max: give up when there are more.
    """
    return _Search(scope, symmetric, states_max).report()


class _Search:
    def __init__(self, scope: Scope, symmetric: bool, states_max: int | None) -> None:
        self._scope = scope
        self._space = Space(scope, symmetric=symmetric)
        self._states_max = states_max
        first = self._space.names.canonical(self._space.initial)
        self._states: list[State] = [first]
        self._index: dict[State, int] = {first: 0}
        self._parents = array("I", [0])
        self._transitions = 0
        self._depth = 0
        self._ends = bytearray()
        """By state, whether it is an end."""
        self._next = array("I")
        """The states after each state, faults left out."""
        self._next_from = array("Q", [0])
        self._complete = False

    def report(self) -> Report:
        start_s = time.process_time()
        found = self._walk()
        if found is None and self._complete:
            found = self._endless()
        met: dict[str, int] = {}
        for outcome in self._space.outcomes:
            for label in outcome.labels if outcome.met else ():
                met[label] = met.get(label, 0) + outcome.met
        return Report(
            scope=self._scope,
            states=len(self._states),
            transitions=self._transitions,
            depth=self._depth,
            ends=sum(self._ends),
            took_s=time.process_time() - start_s,
            met=met,
            violation=found,
            complete=self._complete,
        )

    # ---- safety ----------------------------------------------------------------------------------------------

    def _walk(self) -> Found | None:
        space, states, known = self._space, self._states, self._index
        level_ends = 1
        at = 0
        while at < len(states):
            if at == level_ends:
                self._depth += 1
                level_ends = len(states)
            state = states[at]
            is_end = space.is_quiet(state)
            self._ends.append(is_end)
            for move, outcome, raw, free in () if is_end else space.expand(state):
                self._transitions += 1
                if outcome is not None:
                    outcome.met += 1
                    if outcome.broken is not None:
                        return self._broken(at, move, outcome.broken)
                after = space.names.canonical(raw)
                index = known.get(after)
                if index is None:
                    index = known[after] = len(states)
                    states.append(after)
                    self._parents.append(at)
                    violation = space.verdict(after)
                    if violation is not None:
                        return self._wrong(index)
                if free:
                    self._next.append(index)
            self._next_from.append(len(self._next))
            at += 1
            if self._states_max is not None and len(states) > self._states_max:
                return None
        self._complete = True
        return None

    def _wrong(self, index: int) -> Found:
        way, state = self._concrete(index)
        violation = self._space.verdict(state)
        if violation is None:
            raise InternalError("a state is wrong, but not under other names")
        return Found(violation.invariant, str(violation), way)

    def _broken(self, at: int, move: Move, error: Exception) -> Found:
        way, last = self._concrete(at)
        for again, outcome, _, _ in self._space.expand(last):
            broken = outcome and outcome.broken
            if broken is not None and type(broken) is type(error) and again.word == move.word:
                invariant = broken.invariant if isinstance(broken, Violation) else None
                return Found(invariant, _tell(broken), (*way, again))
        raise InternalError(f"{move} breaks the core, but not again under other names")

    # ---- liveness --------------------------------------------------------------------------------------------

    def _endless(self) -> Found | None:
        """The first state, if any, from which nothing leads to an end although nothing fails any more."""
        ending = bytearray(self._ends)
        starts, following = self._next_from, self._next
        changed = True
        while changed:  # backwards, since ends come late: few rounds
            changed = False
            for at in range(len(ending) - 1, -1, -1):
                if not ending[at]:
                    for index in following[starts[at] : starts[at + 1]]:
                        if ending[index]:
                            ending[at] = changed = True
                            break
        at = ending.find(0)
        if at < 0:
            return None
        stuck = starts[at] == starts[at + 1]
        told = "nothing can move, and tasks are left" if stuck else "whatever happens, some tasks are left for ever"
        return Found(LIVENESS, f"invariant {LIVENESS}: {told}", self._way(at))

    # ---- the way to a state ----------------------------------------------------------------------------------

    def _way(self, index: int) -> tuple[Move, ...]:
        return self._concrete(index)[0]

    def _concrete(self, index: int) -> tuple[tuple[Move, ...], State]:
        """The moves to a state, under the names that the nodes have on this way, and the state in these names."""
        canonical: list[State] = []
        while index:
            canonical.append(self._states[index])
            index = self._parents[index]
        state = self._space.names.numbered(self._space.initial)
        moves: list[Move] = []
        for wanted in reversed(canonical):
            move, state = next(self._leading(state, wanted))
            moves.append(move)
        return tuple(moves), state

    def _leading(self, state: State, wanted: State) -> Iterator[tuple[Move, State]]:
        for move, outcome, raw, _ in self._space.expand(state):
            if (outcome is None or outcome.broken is None) and self._space.names.canonical(raw) == wanted:
                yield move, self._space.names.numbered(raw)


def _tell(error: Exception) -> str:
    return str(error) if isinstance(error, Violation) else f"the core raised {type(error).__name__}: {error}"
