"""Each rule of Figure 5 by itself: when it applies, what it does, and when it does not apply."""

from __future__ import annotations

from itertools import permutations

import pytest

from tests.paper.machine import RULES, successors
from tests.paper.states import Atom, Dead, Full, OverSpark, OverThread, Spark, State, Thread, Zombie, same
from tests.paper.terms import (
    UNIT,
    AllNodes,
    App,
    Bind,
    Eval,
    Fix,
    Get,
    If,
    Lam,
    Lit,
    Name,
    Prim,
    Return,
    RPut,
    Spawn,
    SpawnAt,
    Term,
    Var,
    evaluate,
    root,
)

A, B, C = 0, 1, 2
NODES = (A, B, C)
ONE, TWO = Lit(1), Lit(2)
TASK = Return(ONE)
THEN = Lam("x", Return(Var("x")))
M = root(TASK, "i")
I = Name("i")  # noqa: E741 - the figure's name


def assert_leads(name: str, before: State, *afters: State) -> None:
    """The rule leads from this state to these, and to no others."""
    found = list(successors(before, name, NODES))
    assert len(found) == len(afters), found
    for after in afters:
        assert any(same(after, one) for one in found), found


def assert_stays(name: str, *before: Atom) -> None:
    assert_leads(name, before)


def over_spark(*tracked: int, node: int = A, term: Term = M) -> OverSpark:
    return OverSpark("i", term, frozenset(tracked), node)


def over_thread(at: int, node: int = A) -> OverThread:
    return OverThread("i", M, at, node)


def test_the_rules_are_those_of_the_figure() -> None:
    assert list(RULES) == [
        *("normalize", "bind", "eval", "allNodes", "spawn", "spawnAt"),
        *("rput_empty_thread", "rput_empty_spark", "rput_full", "rput_zombie", "get"),
        *("migrate", "track", "convert", "recover_thread", "recover_spark"),
        *("kill_spark", "kill_thread", "gc_thread", "gc_ivar", "kill_ivar", "dead"),
    ]


# ---- figures 3 and 4 -----------------------------------------------------------------------------------------


def factorial(n: int) -> Term:
    times_rest = Prim(lambda x, rest: x * rest, (Var("x"), App(Var("self"), Prim(lambda x: x - 1, (Var("x"),)))))
    return App(Fix(Lam("self", Lam("x", If(Var("x"), times_rest, ONE)))), Lit(n))


def test_host_language_has_functions_fixed_points_and_constants() -> None:
    assert evaluate(factorial(5)) == Lit(120)


def test_host_language_shadows_and_does_not_evaluate_what_nobody_asks_for() -> None:
    shadowed = App(App(Lam("x", Lam("x", Var("x"))), Fix(Lam("y", Var("y")))), TWO)
    assert evaluate(shadowed) == TWO


@pytest.mark.parametrize("term", [App(ONE, ONE), If(THEN, ONE, ONE)])
def test_ill_typed_term_has_no_value(term: Term) -> None:
    with pytest.raises(TypeError):
        evaluate(term)


def test_order_of_a_state_means_nothing() -> None:
    state: State = (Spark(M, A), over_spark(A, B), Dead(C))
    afters = [list(successors(order, "migrate", NODES)) for order in permutations(state)]
    assert all(len(one) == 1 and same(one[0], afters[0][0]) for one in afters)


def test_step_of_a_part_is_a_step_of_the_whole() -> None:
    assert_leads("convert", (Spark(M, A), Dead(B)), (Thread(M, A), Dead(B)))


# ---- threads -------------------------------------------------------------------------------------------------


def test_normalize_evaluates_the_first_action_only() -> None:
    redex = App(Lam("y", Return(Var("y"))), ONE)
    assert_leads("normalize", (Thread(Bind(redex, THEN), A),), (Thread(Bind(Return(ONE), THEN), A),))


@pytest.mark.parametrize("value", [Return(factorial(3)), AllNodes(), Spawn(TASK), Get(I), Bind(Return(ONE), THEN)])
def test_normalize_leaves_values_alone(value: Term) -> None:
    assert_stays("normalize", Thread(value, A))


def test_normalize_evaluates_a_node_or_ivar_in_its_place() -> None:
    there = App(Lam("n", Var("n")), Lit(B))
    assert_leads("normalize", (Thread(SpawnAt(there, TASK), A),), (Thread(SpawnAt(Lit(B), TASK), A),))
    it = App(Lam("n", Var("n")), I)
    assert_leads("normalize", (Thread(RPut(it, ONE), A),), (Thread(RPut(I, ONE), A),))


def test_bind_hands_the_first_result_on_unevaluated() -> None:
    lazy = factorial(3)
    assert_leads("bind", (Thread(Bind(Return(lazy), THEN), A),), (Thread(App(THEN, lazy), A),))


def test_bind_takes_the_innermost_of_nested_contexts() -> None:
    nested = Bind(Bind(Return(ONE), THEN), Lam("y", Return(UNIT)))
    assert_leads("bind", (Thread(nested, A),), (Thread(Bind(App(THEN, ONE), Lam("y", Return(UNIT))), A),))


def test_bind_needs_a_next_action() -> None:
    assert_stays("bind", Thread(Return(ONE), A))


def test_eval_is_a_strict_return() -> None:
    assert_leads("eval", (Thread(Eval(factorial(3)), A),), (Thread(Return(Lit(6)), A),))
    assert_stays("eval", Thread(Return(factorial(3)), A))


def test_all_nodes_lists_all_nodes_the_own_one_first() -> None:
    assert_leads(
        "allNodes",
        (Thread(AllNodes(), B), Dead(C)),
        (Thread(Return(Lit((B, A, C))), B), Dead(C)),
        (Thread(Return(Lit((B, C, A))), B), Dead(C)),
    )
    assert_stays("allNodes", Thread(Return(UNIT), B))


def test_spawn_makes_an_empty_ivar_and_a_spark_where_it_is_called() -> None:
    task = root(TASK, "i0")
    assert_leads(
        "spawn",
        (Thread(Bind(Spawn(TASK), THEN), B),),
        (
            Thread(Bind(Return(Name("i0")), THEN), B),
            OverSpark("i0", task, frozenset([B]), B),
            Spark(task, B),
        ),
    )


def test_spawn_draws_a_name_that_is_free_nowhere() -> None:
    taken = Full("i0", ONE, C), Thread(Get(Name("i1")), B)
    (after,) = successors((Thread(Bind(Spawn(TASK), Lam("x", Get(Name("i2")))), A), *taken), "spawn", NODES)
    assert [atom.ivar for atom in after if isinstance(atom, OverSpark)] == ["i3"]


@pytest.mark.parametrize("action", [Spawn(Get(I)), SpawnAt(Lit(B), Get(I))])
def test_task_that_captures_an_ivar_is_not_spawned(action: Term) -> None:
    """Section 3.4: the argument has no free names.  Ours: a Future cannot travel."""
    assert_stays("spawn", Thread(action, A))
    assert_stays("spawnAt", Thread(action, A))


def test_spawn_at_makes_an_empty_ivar_here_and_a_thread_there() -> None:
    task = root(TASK, "i0")
    assert_leads(
        "spawnAt",
        (Thread(SpawnAt(Lit(B), TASK), A),),
        (Thread(Return(Name("i0")), A), OverThread("i0", task, B, A), Thread(task, B)),
    )


def test_spawn_at_waits_until_its_node_is_evaluated() -> None:
    assert_stays("spawnAt", Thread(SpawnAt(App(Lam("n", Var("n")), Lit(B)), TASK), A))


# ---- IVars ---------------------------------------------------------------------------------------------------


def test_rput_empty_thread_fills_the_ivar_of_the_thread_that_it_supervises() -> None:
    writer = Thread(Bind(RPut(I, ONE), THEN), B)
    assert_leads(
        "rput_empty_thread", (writer, over_thread(B)), (Thread(Bind(Return(UNIT), THEN), B), Full("i", ONE, A))
    )


def test_rput_empty_thread_is_only_for_the_node_that_is_tracked() -> None:
    """A thread that was recovered, and had survived, is not heard as long as its IVar is empty.  Ours is: every copy's
    result is good (idempotence), so the first that arrives fills the future."""
    assert_stays("rput_empty_thread", Thread(RPut(I, ONE), B), over_thread(A))


@pytest.mark.parametrize("writer", [A, B, C])
def test_rput_empty_spark_fills_the_ivar_from_wherever_it_comes(writer: int) -> None:
    assert_leads(
        "rput_empty_spark",
        (Thread(RPut(I, ONE), writer), over_spark(B)),
        (Thread(Return(UNIT), writer), Full("i", ONE, A)),
    )


@pytest.mark.parametrize("name", ["rput_empty_thread", "rput_empty_spark", "rput_full", "rput_zombie"])
@pytest.mark.parametrize("action", [RPut(Name("j"), ONE), RPut(I, I), Get(I), Bind(Return(UNIT), THEN)])
def test_rput_is_a_write_of_a_closed_term_to_this_ivar(name: str, action: Term) -> None:
    for ivar in (over_spark(B), over_thread(B), Full("i", TWO, A), Zombie("i", A)):
        assert_stays(name, Thread(action, B), ivar)


def test_rput_full_changes_nothing() -> None:
    full = Full("i", TWO, A)
    assert_leads("rput_full", (Thread(RPut(I, ONE), B), full), (Thread(Return(UNIT), B), full))
    assert_stays("rput_full", Thread(RPut(I, ONE), B), over_spark(B))


def test_rput_zombie_changes_nothing() -> None:
    zombie = Zombie("i", A)
    assert_leads("rput_zombie", (Thread(RPut(I, ONE), B), zombie), (Thread(Return(UNIT), B), zombie))
    assert_stays("rput_zombie", Thread(RPut(I, ONE), B), Full("i", TWO, A))


def test_get_reads_a_full_ivar_which_stays_full() -> None:
    full = Full("i", TWO, A)
    assert_leads("get", (Thread(Bind(Get(I), THEN), A), full), (Thread(Bind(Return(TWO), THEN), A), full))


@pytest.mark.parametrize("ivar", [over_spark(B), over_thread(B), Zombie("i", A), Full("j", TWO, A), Full("i", TWO, B)])
def test_get_waits_for_an_empty_ivar_and_reads_neither_zombies_nor_other_nodes(ivar: Atom) -> None:
    assert_stays("get", Thread(Get(I), A), ivar)


# ---- sparks --------------------------------------------------------------------------------------------------


def test_migrate_goes_from_a_tracked_node_to_any_other() -> None:
    ivar = over_spark(A, B, C)
    assert_leads("migrate", (Spark(M, B), ivar), (Spark(M, A), ivar), (Spark(M, C), ivar))


@pytest.mark.parametrize(
    ("spark", "ivar"),
    [
        (Spark(M, B), over_spark(B)),
        (Spark(M, C), over_spark(A, B)),
        (Spark(root(TASK, "j"), B), over_spark(A, B)),
        (Thread(M, B), over_spark(A, B)),
        (Spark(M, B), over_thread(B)),
        (Spark(M, B), Full("i", ONE, A)),
    ],
)
def test_migrate_needs_a_spark_of_this_empty_ivar_and_two_tracked_nodes(spark: Atom, ivar: Atom) -> None:
    assert_stays("migrate", spark, ivar)


def test_track_changes_the_set_at_will_as_long_as_the_spark_is_within() -> None:
    spark = Spark(M, B)
    assert_leads(
        "track",
        (spark, over_spark(A, B)),
        *((spark, over_spark(*tracked)) for tracked in [(B,), (B, C), (A, B, C)]),
    )


@pytest.mark.parametrize("spark", [Spark(M, C), Spark(root(TASK, "j"), B), Thread(M, B)])
def test_track_needs_a_spark_of_this_ivar_within_the_set(spark: Atom) -> None:
    assert_stays("track", spark, over_spark(A, B))


def test_convert_makes_a_thread_where_the_spark_is() -> None:
    assert_leads("convert", (Spark(M, B),), (Thread(M, B),))
    assert_stays("convert", Thread(M, B))


# ---- faults --------------------------------------------------------------------------------------------------


def test_recover_thread_makes_the_thread_again_on_the_ivars_node() -> None:
    assert_leads("recover_thread", (over_thread(B), Dead(B)), (over_thread(A), Thread(M, A), Dead(B)))


@pytest.mark.parametrize("ivar", [over_thread(C), over_thread(B, node=B), over_spark(B), Full("i", ONE, A)])
def test_recover_thread_is_for_a_thread_on_the_dead_node_of_an_empty_ivar_elsewhere(ivar: Atom) -> None:
    assert_stays("recover_thread", ivar, Dead(B))


@pytest.mark.parametrize("tracked", [(B,), (B, C), (A, B)])
def test_recover_spark_makes_another_spark_if_any_tracked_node_is_dead(tracked: tuple[int, ...]) -> None:
    """The spark may well be alive, on another one of the tracked nodes, and stays."""
    old = Spark(M, C)
    assert_leads(
        "recover_spark",
        (over_spark(*tracked), old, Dead(B)),
        (over_spark(A), Spark(M, A), old, Dead(B)),
    )


@pytest.mark.parametrize("ivar", [over_spark(C), over_spark(B, node=B), over_thread(B), Zombie("i", A)])
def test_recover_spark_is_for_an_empty_ivar_elsewhere_that_tracks_the_dead_node(ivar: Atom) -> None:
    assert_stays("recover_spark", ivar, Dead(B))


@pytest.mark.parametrize(("name", "atom"), [("kill_spark", Spark(M, B)), ("kill_thread", Thread(M, B))])
def test_kill_removes_what_is_on_the_dead_node(name: str, atom: Atom) -> None:
    assert_leads(name, (Dead(B), atom), (Dead(B),))
    assert_stays(name, Dead(C), atom)


@pytest.mark.parametrize("ivar", [Full("i", ONE, B), over_thread(C, node=B), over_spark(C, node=B)])
def test_kill_ivar_leaves_a_zombie(ivar: Atom) -> None:
    assert_leads("kill_ivar", (Dead(B), ivar), (Dead(B), Zombie("i", B)))
    assert_stays("kill_ivar", Dead(A), ivar)


def test_what_is_on_a_dead_node_may_go_on_for_a_while() -> None:
    """Section 3.4: partial faults, and notices that come early."""
    assert_leads("convert", (Spark(M, B), Dead(B)), (Thread(M, B), Dead(B)))


def test_gc_thread_removes_a_thread_that_has_ended() -> None:
    assert_leads("gc_thread", (Thread(Return(UNIT), A),), ())
    assert_stays("gc_thread", Thread(Return(ONE), A))
    assert_stays("gc_thread", Thread(Bind(Return(UNIT), THEN), A))


@pytest.mark.parametrize("ivar", [Full("i", ONE, A), over_spark(A), over_thread(B), Zombie("i", A)])
def test_gc_ivar_removes_what_nobody_can_reach(ivar: Atom) -> None:
    assert_leads("gc_ivar", (ivar,), ())
    assert_stays("gc_ivar", ivar, Spark(M, B))
    assert_stays("gc_ivar", ivar, Thread(Get(I), A))


def test_dead_strikes_any_node_once_and_nothing_revives_it() -> None:
    assert_leads("dead", (Dead(B),), (Dead(B), Dead(A)), (Dead(B), Dead(C)))
    full = (Thread(RPut(I, ONE), B), Spark(M, B), Full("i", ONE, B), over_spark(B), over_thread(B), Dead(B))
    for name in RULES:
        assert all(Dead(B) in after for after in successors(full, name, NODES))
