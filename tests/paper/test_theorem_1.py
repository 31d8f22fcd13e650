"""Theorem 1 (section 3.5): failure and recovery cannot be observed in a program's result.

One program text, `programs.Program`, is read three ways: by the oracle `hdphrs.sequential` of the shipped API; by the
rules of Figure 5, with nodes that are dead from the start or die on the way; and by shipped cores in one process, under
random interleavings, deaths and false suspicions, where its tasks are user code that calls the public API.
"""

from __future__ import annotations

import pickle
import random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hdphrs.protocol.supervisor import Supervisor
from hdphrs.protocol.tasks import NodeId, Outcome, Parting, Spark, TaskRef, Verdict
from tests.paper.machine import RULES
from tests.paper.programs import Child, Fail, Failed, Program, Read, perform, programs, sequential_outcome, term_of
from tests.paper.reduction import all_normal_forms, initial, normal_form, reduce
from tests.paper.running import ProgramPlay
from tests.paper.states import Thread
from tests.paper.terms import AllNodes, Bind, Eval, Get, Lam, Lit, Prim, Return, Spawn, SpawnAt, Term, Var, literal
from tests.protocol.play import Faults

NODES = (0, 1, 2)
REPRODUCIBLE = settings(derandomize=True, deadline=None, database=None, suppress_health_check=[HealthCheck.too_slow])

LEAF = Program(5)
NESTED = Program(1, (Child(Program(2, (Child(LEAF), Read(0)))), Read(0)))


TREE = Program(0, (Child(NESTED), Child(NESTED, 1), Child(LEAF, 2), Read(0), Read(2), Read(1)))


def expected(program: Program) -> Thread:
    return Thread(Return(Lit(sequential_outcome(program))), 0)


@settings(REPRODUCIBLE, max_examples=100)
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
        _, rules = reduce(initial(Thread(term_of(TREE), 0)), NODES, draw.randrange, wanders=60, may_die=[1, 2])
        for name in rules:
            taken[name] = taken.get(name, 0) + 1
    assert list(RULES) == [name for name in RULES if name in taken]


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


@pytest.mark.parametrize(("rule", "child"), [("recover_spark", Child(LEAF)), ("recover_thread", Child(LEAF, 1))])
def test_without_recovery_some_reduction_is_stuck(monkeypatch: pytest.MonkeyPatch, rule: str, child: Child) -> None:
    """The two rules are needed, and the search finds what lacks."""
    monkeypatch.delitem(RULES, rule)
    main = Thread(term_of(Program(1, (child, Read(0)))), 0)
    with pytest.raises(AssertionError, match="stuck"):
        all_normal_forms(initial(main, (1,)), (0, 1), atoms_max=5)


def told(outcome: Outcome) -> tuple[str, int]:
    """What the program on the cluster has come to, as the oracle puts it."""
    end = pickle.loads(outcome.data)
    if outcome.verdict is Verdict.VALUE:
        return "value", end
    assert isinstance(end, Failed)
    return "failed", end.number


FAULTS = st.builds(
    Faults,
    deaths=st.integers(0, 3),
    false_suspicions=st.integers(0, 2),
    crashes=st.integers(0, 2),
    blameless=st.integers(0, 1),
    joins=st.integers(0, 1),
    leaves=st.integers(0, 1),
)


@settings(REPRODUCIBLE, max_examples=150)
@given(
    program=programs(10),
    nodes=st.integers(2, 5),
    faults=FAULTS,
    seed=st.integers(0, 2**32),
    moves=st.integers(0, 250),
)
def test_program_on_failing_cores_ends_as_the_sequential_one(
    program: Program, nodes: int, faults: Faults, seed: int, moves: int
) -> None:
    draw = random.Random(seed)
    play = ProgramPlay(faults, nodes, perform, program)
    assert told(play.end(draw.randrange(10_000) for _ in range(moves))) == sequential_outcome(program)


def play_the_tree(seeds: int) -> dict[str, int]:
    """Random plays of one program with all kinds of faults; the sum of all counters."""
    reached: dict[str, int] = {}
    for seed in range(seeds):
        draw = random.Random(seed)
        play = ProgramPlay(Faults(2, 1, 0, 1, 1, 1, leaves=seed % 2), 4, perform, TREE)
        assert told(play.end(draw.randrange(10_000) for _ in range(300))) == sequential_outcome(TREE)
        for host in play.program.hosts.values():
            for name, value in host.core.counters.items():
                reached[name] = reached.get(name, 0) + value
    return reached


def test_plays_of_a_program_reach_what_they_are_meant_to_check() -> None:
    reached = play_the_tree(90)
    assert reached.pop("cancelled") == reached.pop("timed_out") == 0  # the paper's programs give no future up
    assert all(reached.values()), reached


def nothing_is_recreated(
    self: Supervisor, dead: NodeId, parting: Parting
) -> tuple[list[Spark], list[tuple[TaskRef, Outcome]]]:
    return [], []


def test_cluster_that_recovers_nothing_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Supervisor, "on_death", nothing_is_recreated)
    with pytest.raises(AssertionError):
        play_the_tree(40)


# ---- the premise ---------------------------------------------------------------------------------------------

TELLS_WHERE = Bind(AllNodes(), Lam("nodes", Eval(Prim(lambda nodes: nodes[0], (Var("nodes"),)))))
"""A task that returns the node on which it runs: not location invariant."""


def where_it_ran(task: Term, failing: tuple[int, ...]) -> list[Any]:
    """What the main thread can end with, if it spawns this task and returns its value."""
    main = Thread(Bind(task, Lam("f", Get(Var("f")))), 0)
    found = all_normal_forms(initial(main, failing), (0, 1), atoms_max=5)
    return sorted(literal(thread.term.term) for thread in found if isinstance(thread.term, Return))


def test_failure_is_observable_if_a_task_tells_where_it_ran() -> None:
    """Location invariance is needed: a placed task that tells its node gives something new when it is recovered.  With
    sparks there are several results even without failures, since the scheduling is free (the last of the section's
    observations)."""
    placed = SpawnAt(Lit(1), TELLS_WHERE)
    assert where_it_ran(placed, ()) == [1]
    assert where_it_ran(placed, (1,)) == [0, 1]
    assert where_it_ran(Spawn(TELLS_WHERE), ()) == [0, 1]
