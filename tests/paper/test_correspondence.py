"""Each rule of Figure 5 is what our core does in some situation, and what our core does is a rule (section 5.4).

The concrete states before and after a step are abstracted as `abstraction.py` says, and must be related by the rules
that the test names.  A, B, C and D are nodes 0 to 3.  Where our core does what no rule allows, a test at the end says
so.
"""

from __future__ import annotations

import pytest

from hdphrs.explore.cluster import Cluster
from hdphrs.explore.work import task, value_of
from hdphrs.protocol import events as ev
from hdphrs.protocol import messages as msg
from hdphrs.protocol.effects import Deliver
from hdphrs.protocol.tasks import PROGRAM, NodeId, Origin, TaskRef
from tests.paper.abstraction import abstract, assert_takes, term_of
from tests.paper.machine import successors
from tests.paper.scenes import STEAL, A, B, C, D, deliver_until, obsolete_copy, spark_on_b, steal
from tests.paper.states import Dead, Full, OverSpark, OverThread, Spark, State, Thread, Zombie, same
from tests.paper.terms import AllNodes, Get, Lit, Name, Return, SpawnAt, Term, root
from tests.paper.terms import Spawn as SpawnTerm
from tests.protocol.scenes import orphan_to_be, pooled, stolen_spark

TASK = term_of(task(b"0"))
RUN = "eval bind normalize"
"""User code: what a scheduler does with a thread, unseen by the core, up to its write."""


def main(term: Term) -> State:
    """The program is no task of ours; here is its thread."""
    return (Thread(term, A),)


def returned(ref: TaskRef) -> State:
    return main(Return(Name(str(ref))))


# ---- threads -------------------------------------------------------------------------------------------------


def test_spawn_is_an_export() -> None:
    cluster = Cluster(2)
    before = abstract(cluster)
    (ref,) = cluster.spawn()
    assert_takes(before + main(SpawnTerm(TASK)), "spawn", abstract(cluster) + returned(ref), [ref])


@pytest.mark.parametrize("node", [A, B])
def test_spawn_at_is_a_push_or_a_thread_of_the_own_pool(node: NodeId) -> None:
    cluster = Cluster(2)
    before = abstract(cluster)
    ref = cluster.place(node)
    after = abstract(cluster)
    assert_takes(before + main(SpawnAt(Lit(node), TASK)), "spawnAt", after + returned(ref), [ref])
    cluster.settle()
    assert same(abstract(cluster), after)  # the arrival of the PUSH is no step


def test_all_nodes_is_the_list_of_live_nodes_the_own_one_first() -> None:
    core = Cluster(3).core(B)
    after = (Thread(Return(Lit(tuple(core.live_nodes()))), B),)
    found = successors((Thread(AllNodes(), B),), "allNodes", (A, B, C))
    assert any(same(one, after) for one in found)


def test_normalize_bind_and_eval_are_user_code_between_start_and_finished() -> None:
    """The core takes no part in them: it hears of the task's write alone."""
    cluster = Cluster(2)
    cluster.place(B)
    cluster.settle()
    before = abstract(cluster)
    cluster.hungry(B)
    assert_takes(before, "", abstract(cluster))
    cluster.run(B)
    assert_takes(before, RUN, abstract(cluster))


def test_rput_empty_thread_is_the_first_result_of_a_placed_task() -> None:
    cluster = Cluster(2)
    cluster.place(B)
    cluster.settle()
    cluster.hungry(B)
    cluster.run(B)
    before = abstract(cluster)
    deliver_until(cluster, B, A, msg.Result)
    assert_takes(before, "rput_empty_thread gc_thread", abstract(cluster))


def test_rput_empty_spark_is_the_first_result_of_a_spark() -> None:
    cluster, _ = stolen_spark()
    cluster.run(B)
    before = abstract(cluster)
    deliver_until(cluster, B, A, msg.Result)
    assert_takes(before, "rput_empty_spark gc_thread", abstract(cluster))


def test_task_that_ends_where_it_was_spawned_writes_without_a_message() -> None:
    cluster = Cluster(1)
    cluster.up(A)
    cluster.spawn()
    cluster.hungry(A)
    before = abstract(cluster)
    cluster.run(A)
    assert_takes(before, f"convert {RUN} rput_empty_spark gc_thread", abstract(cluster))


def test_rput_full_is_a_later_result() -> None:
    cluster, ref = obsolete_copy()
    cluster.feed(A, ev.Received(D, msg.Result(ref, 1, value_of(b"%d" % ref.slot))))
    cluster.run(C)
    before = abstract(cluster)
    deliver_until(cluster, C, A, msg.Result)
    assert_takes(before, "rput_full gc_thread", abstract(cluster))
    assert cluster.core(A).counters["duplicates"] == 1


def test_rput_zombie_is_a_result_that_nobody_waits_for() -> None:
    """A task of B's ran on C; B is dead, and C, which knows it, sends nothing."""
    cluster, _ = orphan_to_be()
    ((running, _),) = cluster.hosts[C].schedulers[Origin(1)].queue.items()
    cluster.kill(B)
    cluster.suspect(B)
    cluster.settle()
    before = abstract(cluster)
    assert Zombie(str(running[0]), B) in before
    cluster.run(C)
    assert not cluster.in_flight(C, B)
    # nobody else mentions the IVar any more
    assert_takes(before, f"convert {RUN} rput_zombie gc_thread gc_ivar", abstract(cluster))


def test_get_is_a_delivery_to_whoever_made_the_future_once() -> None:
    """The future stays full where it was made, and is read there alone: nobody else hears of the value."""
    cluster = Cluster(2)
    (ref,) = cluster.spawn()
    cluster.hungry(B)
    cluster.settle()
    cluster.run(B)
    (deliver,) = cluster.feed(A, ev.Received(B, cluster.in_flight(B, A)[-1]))
    assert isinstance(deliver, Deliver)
    assert (deliver.origin, deliver.slot) == (PROGRAM, ref.slot)
    assert Full(str(ref), Lit(deliver.outcome.data), A) in abstract(cluster)
    assert_takes(
        abstract(cluster) + main(Get(Name(str(ref)))),
        "get",
        abstract(cluster) + main(Return(Lit(deliver.outcome.data))),
    )


# ---- sparks --------------------------------------------------------------------------------------------------


def test_figure_10_track_migrate_track() -> None:
    """The messages of one steal, and the rules that they stand for: (track) when REQ is granted, (migrate) when the
    SCHEDULE arrives, (track) when the ACK does.  FISH and AUTH stand for none."""
    cluster, ref = spark_on_b()
    cluster.hungry(C)
    rules = [("", {B}), ("track", {B, C}), ("", {B, C}), ("migrate", {B, C}), ("track", {C})]
    for (source, to, kind), (rule, tracked) in zip(STEAL, rules, strict=True):
        before = abstract(cluster)
        deliver_until(cluster, source, to, kind)
        assert_takes(before, rule, abstract(cluster))
        (ivar,) = (atom for atom in abstract(cluster) if isinstance(atom, OverSpark) and atom.ivar == str(ref))
        assert ivar.tracked == tracked


def test_steal_from_the_supervisor_itself_is_track_then_migrate_then_track() -> None:
    """REQ and AUTH are left out as messages, the rules are not."""
    cluster = Cluster(2)
    cluster.spawn()
    cluster.hungry(B)
    for source, to, kind, rule in (
        (B, A, msg.Fish, "track"),
        (A, B, msg.Schedule, "migrate"),
        (B, A, msg.Ack, "track"),
    ):
        before = abstract(cluster)
        deliver_until(cluster, source, to, kind)
        assert_takes(before, rule, abstract(cluster))


def test_refusal_changes_nothing() -> None:
    """DENIED and NOWORK: the spark is where it was, and so is the record."""
    cluster, _ = spark_on_b()
    cluster.hungry(C)
    deliver_until(cluster, C, B, msg.Fish)
    before = abstract(cluster)
    (req,) = cluster.in_flight(B, A)
    assert isinstance(req, msg.Req)
    cluster.feed(B, ev.Received(A, msg.Denied(req.request)))
    deliver_until(cluster, B, C, msg.NoWork)
    assert_takes(before, "", abstract(cluster))


def test_convert_is_the_start_of_a_task_that_then_spawns() -> None:
    cluster = Cluster(1)
    cluster.up(A)
    cluster.spawn(depth=1)
    cluster.hungry(A)
    before = abstract(cluster)
    cluster.run(A)
    children = [TaskRef(A, Origin(1), slot) for slot in (0, 1)]
    once = "spawn bind normalize"
    assert_takes(before, f"convert {once} {once}", abstract(cluster), children)


# ---- faults --------------------------------------------------------------------------------------------------


def test_dead_and_the_kills_are_the_end_of_a_process() -> None:
    """With the process go all its sparks, threads and futures at once."""
    cluster, _ = orphan_to_be()
    before = abstract(cluster)
    cluster.kill(B)
    after = abstract(cluster)
    sparks = sum(isinstance(atom, Spark) and atom.node == B for atom in before)
    threads = sum(isinstance(atom, Thread) and atom.node == B for atom in before)
    ivars = sum(isinstance(atom, OverSpark) and atom.node == B for atom in before)
    zombies = sum(isinstance(atom, Zombie) for atom in after)
    rules = ["dead", *["kill_spark"] * sparks, *["kill_thread"] * threads]
    rules += [*["kill_ivar"] * ivars, *["gc_ivar"] * (ivars - zombies)]
    assert sparks
    assert threads
    assert 0 < zombies < ivars
    assert_takes(before, " ".join(rules), after)


def test_recover_spark_is_what_deadnode_does_to_a_tracked_spark() -> None:
    """Both sparks that were stolen by B, and nothing else."""
    cluster, _ = stolen_spark()
    cluster.kill(B)
    before = abstract(cluster)
    cluster.suspect(B)
    assert_takes(before, "recover_spark recover_spark", abstract(cluster))
    cluster.settle()
    assert_takes(before, "recover_spark recover_spark", abstract(cluster))  # the others have nothing to recover


def test_recover_spark_makes_a_second_copy_while_the_first_is_in_transit() -> None:
    """Figure 8 in the terms of Figure 5: C's spark survives, and A makes another."""
    cluster, _ = spark_on_b()
    steal(cluster, msg.Schedule)
    cluster.kill(B)
    before = abstract(cluster)
    cluster.suspect(B)
    assert_takes(before, "recover_spark", abstract(cluster))
    assert sorted(atom.node for atom in abstract(cluster) if isinstance(atom, Spark)) == [A, C]


def test_recover_thread_makes_a_spark_of_it() -> None:
    """R9: the right side is that of (recover_spark), so that others may help.  The thread of the figure is one
    (convert) away; the IVar keeps supervising, which matters as soon as the spark is stolen."""
    cluster = Cluster(2)
    cluster.place(B)
    cluster.settle()
    cluster.kill(B)
    before = abstract(cluster)
    cluster.suspect(B)
    after = abstract(cluster)
    (printed,) = successors(before, "recover_thread", (A, B))
    (converted,) = successors(after, "convert", (A, B))
    as_printed = tuple(
        OverThread(atom.ivar, atom.term, A, A) if isinstance(atom, OverSpark) else atom for atom in converted
    )
    assert same(as_printed, printed)


def test_spawn_at_to_the_dead_is_recovered_in_the_same_step() -> None:
    """R2: (spawnAt) and (recover_thread), as R9 has it, for no notice will come any more."""
    cluster = Cluster(2)
    cluster.kill(B)
    cluster.suspect(B)
    ref = cluster.place(B)
    body = root(term_of(task(b"%d" % ref.slot)), str(ref))
    assert same(abstract(cluster), (OverSpark(str(ref), body, frozenset([A]), A), Spark(body, A), Dead(B)))


# ---- what no rule allows -------------------------------------------------------------------------------------


def test_obsolete_copy_is_dropped_which_figure_5_does_only_on_dead_nodes() -> None:
    """Figure 5 has no step that removes a spark from a live node; Table 1's OBSOLETE does, and so do we.  Section 4.3
    justifies it: it cannot be told from the loss of that copy.  Hence it is only allowed for a copy that is not the
    newest."""
    cluster, ref = obsolete_copy()
    deliver_until(cluster, A, C, msg.DeadNode)
    cluster.give_back(C)
    cluster.hungry(D)
    deliver_until(cluster, D, C, msg.Fish)
    deliver_until(cluster, C, A, msg.Req)
    before = abstract(cluster)
    deliver_until(cluster, A, C, msg.Obsolete)
    after = abstract(cluster)
    (dropped,) = (atom for atom in before if atom not in after)
    assert isinstance(dropped, Spark)
    assert dropped.node == C
    assert any(isinstance(atom, Spark) and atom.term == dropped.term and atom.node == A for atom in after)
    assert ref in pooled(cluster, A)


def test_death_of_a_scheduler_takes_the_state_back_to_before_its_tasks_began() -> None:
    """Figure 5 knows no partial failure of a node.  Our first level of recovery undoes (convert) and all that followed
    on that scheduler: no other node can tell it from a task that has not begun."""
    cluster = Cluster(2)
    cluster.up(A)
    cluster.spawn(depth=1)
    cluster.hungry(A)
    before = abstract(cluster)
    cluster.run(A)
    assert not same(abstract(cluster), before)
    ((parent, _),) = cluster.hosts[A].schedulers[Origin(1)].waiting.items()
    cluster.crash(A, 1, parent)
    assert same(abstract(cluster), before)
