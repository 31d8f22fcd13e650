"""Theorem 1 (section 3.5): failure and recovery cannot be observed in a program's result.

One program text, `programs.Program`, is read three ways: by the oracle `hdphrs.sequential` of the shipped API; by the
rules of Figure 5, with nodes that are dead from the start or die on the way; and by shipped cores in one process, under
random interleavings, deaths and false suspicions, where its tasks are user code that calls the public API.
"""

from __future__ import annotations

import random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.paper.machine import Thread
from tests.paper.programs import Child, Fail, Program, Read, programs, sequential_outcome, term_of
from tests.paper.reduction import all_normal_forms, initial, normal_form, reduce
from tests.paper.terms import Lit, Return

NODES = (0, 1, 2)
REPRODUCIBLE = settings(derandomize=True, deadline=None, database=None, suppress_health_check=[HealthCheck.too_slow])

LEAF = Program(5)
NESTED = Program(1, (Child(Program(2, (Child(LEAF), Read(0)))), Read(0)))


def expected(program: Program) -> Thread:
    return Thread(Return(Lit(sequential_outcome(program))), 0)


@settings(REPRODUCIBLE, max_examples=150)
@given(programs(6), st.sets(st.sampled_from([1, 2])), st.sets(st.sampled_from([1, 2])), st.integers(0, 2**32))
def test_every_reduction_of_figure_5_ends_in_what_the_sequential_program_gives(
    program: Program, failing: set[int], may_die: set[int], seed: int
) -> None:
    main = Thread(term_of(program), 0)
    last, _ = reduce(
        initial(main, sorted(failing)), NODES, random.Random(seed).randrange, wanders=40, may_die=sorted(may_die)
    )
    assert normal_form(last) == expected(program)


def test_random_reductions_take_every_rule() -> None:
    """Else the property above would say less than it seems to."""
    taken: dict[str, int] = {}
    for seed in range(10):
        draw = random.Random(seed)
        program = Program(0, (Child(NESTED), Child(NESTED, seed), Child(LEAF, seed + 1), Read(0), Read(1), Read(2)))
        _, rules = reduce(initial(Thread(term_of(program), 0)), NODES, draw.randrange, wanders=60, may_die=[1, 2])
        for name in rules:
            taken[name] = taken.get(name, 0) + 1
    assert len(taken) == 22, sorted(taken)


@pytest.mark.parametrize(
    ("program", "nodes", "atoms_max"),
    [
        (Program(1, (Child(LEAF), Read(0))), (0, 1, 2), 5),
        (Program(1, (Child(LEAF, 1), Read(0))), (0, 1, 2), 5),
        (Program(1, (Child(Program(2, (Fail(),))), Read(0, catches=True))), (0, 1, 2), 5),
        (NESTED, (0, 1), 6),
    ],
    ids=["spark", "thread", "failing task", "nested spark"],
)
@pytest.mark.parametrize("failing", [(), (1,)])
def test_all_reductions_of_a_small_program_end_and_in_the_same_normal_form(
    program: Program, nodes: tuple[int, ...], atoms_max: int, failing: tuple[int, ...]
) -> None:
    """Exhaustively, but for a bound on what exists at a time, that is on the number of copies.  No state on the way is
    stuck (the observation that opens section 3.5)."""
    main = Thread(term_of(program), 0)
    found = all_normal_forms(initial(main, failing), nodes, atoms_max=atoms_max)
    assert found == [expected(program)]
