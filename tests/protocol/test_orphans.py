"""Orphans run on, and what is run again waits for them (decision 8)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hdphrs.config import CoreConfig
from hdphrs.explore.cluster import Cluster
from hdphrs.explore.work import CODE, CRASH, value_of
from hdphrs.protocol import events as ev
from hdphrs.protocol import messages as msg
from hdphrs.protocol.effects import Deliver, Effect, Send
from hdphrs.protocol.orphans import Orphanage
from hdphrs.protocol.pieces import Pieces, piece_of
from hdphrs.protocol.retained import Copy, Retained
from hdphrs.protocol.supervisor import Adopted, OnNode
from hdphrs.protocol.tasks import (
    PROGRAM,
    ROOT,
    NodeId,
    Origin,
    Orphan,
    Outcome,
    RecallId,
    Spark,
    Task,
    TaskRef,
    Verdict,
)
from tests.protocol.scenes import record_of

N1, N2, N3 = NodeId(1), NodeId(2), NodeId(3)
FIRST = Origin(1)


def call(*path: int) -> Task:
    return Task("f", bytes(path), CODE, b"arguments")


def done(*path: int, cost_s: float = 10.0) -> Outcome:
    return replace(value_of(bytes(path)), cost_s=cost_s)


CHILD = piece_of(call(1, 0), done(1, 0))
ON_2 = Orphan(bytes([1, 0]), CHILD.check, N2)
AGAIN = TaskRef(N3, FIRST, 0)
"""The future of the child, of the re-run on node 3."""


def orphan_on_2() -> tuple[Cluster, TaskRef]:
    """Four nodes; a child of a task on node 1 runs on node 2; node 1 dies, and node 3 runs the parent again."""
    cluster = Cluster(4, checked=False)
    cluster.feed(0, ev.Placed(PROGRAM, 0, call(1), N1))
    cluster.settle()
    cluster.hungry(1)
    cluster.hungry(2)
    cluster.feed(1, ev.Exported(FIRST, ((0, call(1, 0)),)))
    cluster.settle()
    cluster.hungry(3)
    die(cluster, 1)
    return cluster, TaskRef(N1, FIRST, 0)


def die(cluster: Cluster, node: int) -> None:
    cluster.kill(node)
    cluster.suspect(node)
    cluster.settle()


def spawn_again(cluster: Cluster) -> list[Effect]:
    """The re-run on node 3 spawns the child."""
    return cluster.feed(3, ev.Exported(FIRST, ((0, call(1, 0)),)))


def copies(cluster: Cluster) -> list[tuple[TaskRef, int]]:
    """Of the re-run's child, wherever they have come to by now."""
    cluster.settle()
    cores = [host.core for host in cluster.hosts.values() if host.runs]
    sparks = [spark for core in cores for spark in (*core.pool, *core.schedulers.held())]
    return [(spark.ref, spark.replica) for spark in sparks if spark.ref == AGAIN]


def sent(effects: list[Effect], kind: type[msg.Message]) -> list[msg.Message]:
    return [effect.message for effect in effects if isinstance(effect, Send) and isinstance(effect.message, kind)]


def test_re_run_waits_for_the_orphan_and_gets_what_it_comes_to() -> None:
    cluster, child = orphan_on_2()
    assert sent(spawn_again(cluster), msg.Await) == [msg.Await(AGAIN, 0, CHILD.path, CHILD.check)]
    assert record_of(cluster, AGAIN).location == Adopted(N2)
    assert not list(cluster.core(3).pool)
    cluster.settle()
    cluster.feed(2, ev.Finished(FIRST, ((child, 0, done(1, 0)),)))
    cluster.settle()
    assert cluster.delivered[AGAIN] == done(1, 0)


def test_orphan_that_fails_fails_for_who_waits_for_it_and_is_no_piece() -> None:
    cluster, child = orphan_on_2()
    spawn_again(cluster)
    cluster.settle()
    raised = Outcome(Verdict.RAISED, b"error")
    cluster.feed(2, ev.Finished(FIRST, ((child, 0, raised),)))
    cluster.settle()
    assert cluster.delivered[AGAIN] == raised
    assert cluster.core(0).orphans.left_of(b"") == ()


def test_orphan_that_has_ended_before_it_is_adopted_answers_at_once() -> None:
    cluster, child = orphan_on_2()
    cluster.feed(2, ev.Finished(FIRST, ((child, 0, done(1, 0)),)))
    cluster.settle()
    spawn_again(cluster)
    cluster.settle()
    assert cluster.delivered[AGAIN] == done(1, 0)


def test_thread_that_is_placed_again_waits_for_the_orphan() -> None:
    cluster, _ = orphan_on_2()
    effects = cluster.feed(3, ev.Placed(FIRST, 0, call(1, 0), ROOT))
    assert sent(effects, msg.Await)
    assert not sent(effects, msg.Push)


def test_orphan_of_another_call_is_not_waited_for() -> None:
    cluster, _ = orphan_on_2()
    effects = cluster.feed(3, ev.Exported(FIRST, ((0, replace(call(1, 0), payload=b"other")),)))
    assert not sent(effects, msg.Await)
    assert copies(cluster) == [(AGAIN, 0)]


@pytest.mark.parametrize("known", [False, True])
def test_death_of_the_orphans_node_has_it_run_again(known: bool) -> None:
    cluster, _ = orphan_on_2()
    if known:
        spawn_again(cluster)
        cluster.settle()
    die(cluster, 2)
    if not known:
        spawn_again(cluster)
        cluster.settle()
    assert record_of(cluster, AGAIN).location == OnNode(N3)
    assert [spark.ref for spark in cluster.core(3).pool] == [AGAIN]
    assert not list(cluster.core(0).orphans.awaited())


def test_orphan_that_dies_with_its_scheduler_is_run_again() -> None:
    cluster, child = orphan_on_2()
    spawn_again(cluster)
    cluster.settle()
    cluster.crash(2, 1, (child, 0))
    assert copies(cluster) == [(AGAIN, 0)]
    assert not isinstance(record_of(cluster, AGAIN).location, Adopted)
    assert cluster.core(2).counters["orphans"] == 1


def test_orphan_that_is_given_back_is_run_again() -> None:
    cluster, _ = orphan_on_2()
    spawn_again(cluster)
    cluster.settle()
    cluster.give_back(2)
    assert copies(cluster) == [(AGAIN, 0)]


def test_orphan_that_is_adopted_too_late_is_run_again() -> None:
    cluster, child = orphan_on_2()
    cluster.crash(2, 1, (child, 0))
    cluster.settle()
    spawn_again(cluster)
    assert copies(cluster) == [(AGAIN, 0)]


def test_late_gone_changes_nothing() -> None:
    cluster, child = orphan_on_2()
    spawn_again(cluster)
    cluster.settle()
    assert cluster.feed(3, ev.Received(ROOT, msg.Gone(AGAIN, 1))) == []
    cluster.feed(2, ev.Finished(FIRST, ((child, 0, done(1, 0)),)))
    cluster.settle()
    assert cluster.feed(3, ev.Received(ROOT, msg.Gone(AGAIN, 0))) == []


def test_adopted_task_of_a_dead_scheduler_is_nobodys_and_its_orphan_runs_on() -> None:
    cluster, _ = orphan_on_2()
    spawn_again(cluster)
    cluster.settle()
    cluster.crash(3, 1, None)
    assert cluster.core(3).supervisor.record(AGAIN) is None
    assert not any(isinstance(message, msg.Purge) for message in cluster.in_flight(3, 0))
    cluster.settle()
    assert cluster.core(0).orphans.left_of(bytes([1])) == (ON_2,)


def test_children_of_a_dead_scheduler_that_run_elsewhere_are_orphans_too() -> None:
    """PURGE goes by the root, so that it knows that it has to wait for what the other node says."""
    cluster = Cluster(3, checked=False)
    cluster.feed(0, ev.Placed(PROGRAM, 0, call(1), N1))
    cluster.settle()
    cluster.hungry(1)
    cluster.hungry(2)
    cluster.feed(1, ev.Exported(FIRST, ((0, call(1, 0)),)))
    cluster.settle()
    cluster.crash(1, 1, (TaskRef(ROOT, PROGRAM, 0), 0))
    cluster.settle()
    cluster.hungry(1, 2)
    (again,) = cluster.hosts[N1].schedulers[Origin(2)].queue.values()
    assert again.pieces == (ON_2,)
    child = TaskRef(N1, FIRST, 0)
    effects = cluster.feed(2, ev.Finished(FIRST, ((child, 0, done(1, 0, cost_s=0.0)),)))
    assert sent(effects, msg.Result) == []
    assert [piece.path for keep in sent(effects, msg.Keep) for piece in keep.pieces] == [CHILD.path]  # type: ignore[union-attr]


def test_purge_of_the_roots_own_schedulers_is_sent_by_the_root() -> None:
    cluster = Cluster(2, checked=False)
    cluster.up(0)
    cluster.hungry(1)
    cluster.feed(0, ev.Exported(FIRST, ((0, call(1, 0)), (1, call(1, 1)))))
    cluster.settle()
    cluster.crash(0, 1, None)
    assert any(isinstance(message, msg.Purge) for message in cluster.in_flight(0, 1))
    cluster.settle()
    assert [orphan.path for orphan in cluster.core(0).orphans.left_of(b"")] == [CHILD.path]


def test_purge_for_a_dead_node_ends_at_the_root() -> None:
    cluster, child = orphan_on_2()
    assert cluster.feed(0, ev.Received(N3, msg.Purge(N1, (TaskRef(N3, FIRST, 7),)))) == []
    assert cluster.feed(0, ev.Received(N3, msg.Purge(N2, (child,)))) == []  # not its own
    assert cluster.core(0).counters["stale"] >= 1


def test_nobody_is_told_what_is_left_before_all_have_said_what_they_have() -> None:
    cluster = Cluster(4, checked=False)
    cluster.feed(0, ev.Placed(PROGRAM, 0, call(1), N1))
    cluster.settle()
    cluster.kill(1)
    cluster.suspect(1)
    cluster.deliver(0, 2)
    cluster.deliver(2, 0)
    assert not list(cluster.core(0).pool)
    cluster.deliver(0, 3)
    cluster.deliver(3, 0)
    assert [spark.ref for spark in cluster.core(0).pool] == [TaskRef(ROOT, PROGRAM, 0)]


# ---- the root's table ----------------------------------------------------------------------------------------


def table() -> tuple[Orphanage, list[tuple[NodeId, msg.Message]]]:
    """A table, and all that it says."""
    said: list[tuple[NodeId, msg.Message]] = []

    def say(to: NodeId, message: msg.Message) -> list[Effect]:
        said.append((to, message))
        return []

    return Orphanage(Pieces(CoreConfig()), say, lambda paths: ()), said


def await_on_3(orphanage: Orphanage, check: bytes = CHILD.check) -> None:
    orphanage.on_await(msg.Await(AGAIN, 0, CHILD.path, check))


def test_orphan_that_runs_twice_is_gone_when_both_are() -> None:
    orphanage, said = table()
    orphanage.on_orphans(N2, msg.Orphans(False, (ON_2,)))
    orphanage.on_orphans(N1, msg.Orphans(False, (replace(ON_2, node=N1),)))
    await_on_3(orphanage)
    orphanage.on_orphans(N2, msg.Orphans(False, ()))
    assert said == []
    orphanage.on_orphans(N1, msg.Orphans(False, ()))
    assert said == [(N3, msg.Gone(AGAIN, 0))]


def test_death_of_one_who_runs_it_leaves_the_other() -> None:
    orphanage, said = table()
    orphanage.on_orphans(N2, msg.Orphans(False, (ON_2,)))
    orphanage.on_orphans(N1, msg.Orphans(False, (replace(ON_2, node=N1),)))
    await_on_3(orphanage)
    orphanage.on_death(N2, [])
    assert [waiting.ref for waiting in orphanage.awaited()] == [AGAIN]
    orphanage.on_keep(N1, [CHILD])
    assert said == [(N3, msg.Result(AGAIN, 0, CHILD.outcome))]


def test_who_waits_and_dies_is_told_nothing() -> None:
    orphanage, said = table()
    orphanage.on_orphans(N2, msg.Orphans(False, (ON_2,)))
    await_on_3(orphanage)
    orphanage.on_recall(N3, msg.Recall(RecallId(1), (b"",)))
    said.clear()
    orphanage.expect([N2])
    orphanage.on_recall(N3, msg.Recall(RecallId(2), (b"",)))
    orphanage.on_death(N3, [])
    orphanage.on_orphans(N2, msg.Orphans(True, ()))
    assert said == []


def test_value_of_another_call_is_no_answer() -> None:
    orphanage, said = table()
    orphanage.on_orphans(N2, msg.Orphans(False, (ON_2,)))
    await_on_3(orphanage, b"other")
    orphanage.on_keep(N2, [CHILD])
    await_on_3(orphanage, b"other")
    assert said == [(N3, msg.Gone(AGAIN, 0))] * 2


def test_node_that_was_asked_twice_has_to_answer_twice() -> None:
    orphanage, said = table()
    orphanage.expect([N2])
    orphanage.expect([N2])
    orphanage.on_recall(N3, msg.Recall(RecallId(1), (b"",)))
    orphanage.on_orphans(N2, msg.Orphans(True, ()))
    orphanage.on_orphans(N2, msg.Orphans(False, ()))
    assert said == []
    orphanage.on_orphans(N2, msg.Orphans(True, (ON_2,)))
    assert said == [(N3, msg.Recalled(RecallId(1), (ON_2,)))]


def test_what_runs_covers_what_is_finished_below_it_and_is_covered_by_what_is_finished_above() -> None:
    orphanage, _ = table()
    orphanage.on_orphans(N2, msg.Orphans(False, (ON_2,)))
    grandchild = piece_of(call(1, 0, 0), done(1, 0, 0))
    orphanage.on_keep(N2, [grandchild])
    assert orphanage.left_of(bytes([1])) == (ON_2,)
    orphanage.on_orphans(N2, msg.Orphans(False, ()))
    assert orphanage.left_of(bytes([1])) == (grandchild,)
    orphanage.on_orphans(N2, msg.Orphans(False, (ON_2,)))
    parent = piece_of(call(1), done(1))
    orphanage.on_keep(N3, [parent])
    assert orphanage.left_of(bytes([1])) == (parent,)


# ---- what is retained ----------------------------------------------------------------------------------------


def copy(path: int, other: NodeId = N1) -> Copy:
    return Copy(TaskRef(N1, FIRST, path), other, call(path), done(path, cost_s=0.01))


def test_retained_results_are_bounded_and_the_oldest_are_forgotten() -> None:
    retained = Retained(CoreConfig(retained_bytes_max=2 * copy(0).size_bytes))
    for path in range(4):
        retained.retain(copy(path))
    assert [piece.path for piece in retained.give_up(lambda one: True)] == [bytes([2]), bytes([3])]
    assert retained.give_up(lambda one: True) == []


@pytest.mark.parametrize(
    "unworthy",
    [
        copy(1)._replace(outcome=done(1, cost_s=0.0001)),
        copy(1)._replace(outcome=Outcome(Verdict.RAISED, b"", (), 10.0)),
        copy(1)._replace(task=replace(call(1), supervised=False)),
    ],
)
def test_what_is_cheap_has_failed_or_is_not_supervised_is_not_retained(unworthy: Copy) -> None:
    retained = Retained(CoreConfig())
    retained.retain(unworthy)
    assert retained.give_up(lambda one: True) == []


def test_only_what_nobody_else_has_is_given_up() -> None:
    retained = Retained(CoreConfig())
    retained.retain(copy(1, N1))
    retained.retain(copy(2, N2))
    assert [piece.path for piece in retained.give_up(lambda one: one.other == N2)] == [bytes([2])]
    assert [piece.path for piece in retained.give_up(lambda one: True)] == [bytes([1])]


def test_result_survives_the_death_of_either_who_has_it() -> None:
    """Node 2 has run a child for node 1; whoever of the two is left sees to it that the root has it."""
    for dead, other in ((1, 2), (2, 1)):
        cluster = Cluster(4, checked=False)
        cluster.feed(0, ev.Placed(PROGRAM, 0, call(1), N1))
        cluster.settle()
        cluster.hungry(1)
        cluster.hungry(2)
        cluster.feed(1, ev.Exported(FIRST, ((0, call(1, 0)),)))
        cluster.settle()
        cluster.feed(2, ev.Finished(FIRST, ((TaskRef(N1, FIRST, 0), 0, done(1, 0, cost_s=0.01)),)))
        cluster.settle()
        assert cluster.core(0).orphans.left_of(b"") == ()
        die(cluster, dead)
        assert cluster.core(0).orphans.left_of(b"") == (CHILD,)
        die(cluster, other)
        assert cluster.core(0).orphans.left_of(b"") == (CHILD,)


def test_result_survives_the_scheduler_that_has_got_it() -> None:
    cluster = Cluster(2, checked=False)
    cluster.feed(0, ev.Placed(PROGRAM, 0, call(1), N1))
    cluster.settle()
    cluster.up(1)
    cluster.hungry(1, 1)
    cluster.feed(1, ev.Exported(FIRST, ((0, call(1, 0)),)))
    cluster.hungry(1, 2)
    effects = cluster.feed(1, ev.Finished(Origin(2), ((TaskRef(N1, FIRST, 0), 0, done(1, 0, cost_s=0.01)),)))
    assert any(isinstance(effect, Deliver) for effect in effects)
    cluster.crash(1, 1, (TaskRef(ROOT, PROGRAM, 0), 0))
    cluster.settle()
    cluster.hungry(1, 3)
    (again,) = cluster.hosts[N1].schedulers[Origin(3)].queue.values()
    assert (again.pieces, again.crashes) == ((CHILD,), (CRASH,))


def test_child_at_the_path_of_an_orphan_that_the_same_scheduler_runs_is_adopted() -> None:
    """Simulator, mandelbrot with eight deaths: the orphan, itself a re-run, was taken for the parent of the child."""
    cluster = Cluster(2, checked=False)
    cluster.feed(1, ev.Kept((piece_of(call(1, 0, 0), done(1, 0, 0)),)))
    cluster.settle()
    core = cluster.core(1)
    core.schedulers._up[FIRST].again.update(
        {
            (TaskRef(ROOT, PROGRAM, 0), 1): Spark(TaskRef(ROOT, PROGRAM, 0), 1, call(1), pieces=(ON_2,)),
            (TaskRef(N2, FIRST, 0), 1): Spark(
                TaskRef(N2, FIRST, 0), 1, call(1, 0), pieces=(piece_of(call(1, 0, 0), done(1, 0, 0)),)
            ),
        }
    )
    assert core.schedulers.left_of(FIRST, bytes([1, 0])) == (ON_2,)
    assert core.schedulers.left_of(FIRST, bytes([1, 0, 0])) == (piece_of(call(1, 0, 0), done(1, 0, 0)),)


def test_task_of_another_supervisor_is_run_though_an_orphan_runs_it_too() -> None:
    """Only its supervisor could wait for the orphan; it believes in the copy here."""
    cluster = Cluster(3, checked=False)
    spark = Spark(TaskRef(N1, FIRST, 5), 0, call(1, 0), pieces=(ON_2,))
    assert cluster.core(2).reruns.resume([spark]) == []
    assert list(cluster.core(2).pool) == [replace(spark, pieces=())]


def test_orphan_without_supervision_leaves_nothing() -> None:
    cluster = Cluster(3, checked=False)
    cluster.feed(0, ev.Placed(PROGRAM, 0, call(1), N1))
    cluster.settle()
    cluster.hungry(1)
    cluster.hungry(2)
    cluster.feed(1, ev.Exported(FIRST, ((0, replace(call(1, 0), supervised=False)),)))
    cluster.settle()
    die(cluster, 1)
    assert cluster.core(0).orphans.left_of(b"") == ()
    effects = cluster.feed(2, ev.Finished(FIRST, ((TaskRef(N1, FIRST, 0), 0, done(1, 0)),)))
    assert not sent(effects, msg.Keep)
