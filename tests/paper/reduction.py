"""Strategies over the rules of Figure 5: random reductions, and all of them.

What lives here: reductions with a set F of failing nodes, as section 3.5 defines them: they are dead from the start,
and rule (dead) is not used; or it is, which the section says makes no difference.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from itertools import islice

from tests.paper.machine import RULES, successors
from tests.paper.states import Dead, Node, State, Thread

WANDERING = ("migrate", "track", "dead")
"""Rules that need never end; a reduction takes a bounded number of them."""

PROGRESS = tuple(name for name in RULES if name not in WANDERING)


def initial(main: Thread, failing: Iterable[Node] = ()) -> State:
    """S | dead p1 | … | dead pn, where S is a single thread."""
    return (main, *(Dead(node) for node in failing))


def normal_form(state: State) -> Thread | None:
    """The thread that is left, if nothing else is and no rule applies to it."""
    left = [atom for atom in state if not isinstance(atom, Dead)]
    return left[0] if len(left) == 1 and isinstance(left[0], Thread) else None


def reduce(
    state: State,
    nodes: tuple[Node, ...],
    choose: Callable[[int], int],
    *,
    wanders: int,
    may_die: Iterable[Node] = (),
    steps_max: int = 5000,
) -> tuple[State, list[str]]:
    """Take random rules while any applies.

    Args:
        choose: `choose(n)` is a number from 0 to n - 1.
        wanders: how many steps may be of rules that need never end.
        may_die: nodes that rule (dead) may strike.

    Returns:
        The last state, and the names of the rules taken.
    """
    mortal = frozenset(may_die)
    taken: list[str] = []
    while len(taken) < steps_max:
        names = [*PROGRESS, *(WANDERING * 4 if wanders else ())]
        nexts: list[State] = []
        name = ""
        while names and not nexts:
            name = names.pop(choose(len(names)))
            nexts = [after for after in islice(successors(state, name, nodes), 64) if _may(name, after, mortal)]
        if not nexts:
            return state, taken
        state = nexts[choose(len(nexts))]
        wanders -= name in WANDERING
        taken.append(name)
    raise AssertionError(f"no end after {steps_max} steps: {state}")


def _may(name: str, after: State, mortal: frozenset[Node]) -> bool:
    return name != "dead" or after[-1].node in mortal


def all_normal_forms(state: State, nodes: tuple[Node, ...], *, atoms_max: int) -> list[Thread]:
    """Every normal form, by every reduction whose states never have more than `atoms_max` atoms.

    Raises:
        AssertionError: some state is stuck.
    """
    names = [name for name in RULES if name != "dead"]
    seen = {_key(state): None}
    frontier = [state]
    found: dict[Thread, None] = {}
    while frontier:
        state = frontier.pop()
        nexts = [after for name in names for after in successors(state, name, nodes)]
        if not nexts:
            last = normal_form(state)
            assert last is not None, f"stuck: {state}"
            found[last] = None
        for after in nexts:
            if len(after) <= atoms_max and _key(after) not in seen:
                seen[_key(after)] = None
                frontier.append(after)
    return list(found)


def _key(state: State) -> frozenset[tuple[object, int]]:
    return frozenset(Counter(state).items())
