"""What is run again does not compute again what the root has pieces of (decision 8)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hdphrs.config import CoreConfig
from hdphrs.explore.cluster import Cluster
from hdphrs.explore.work import CODE, CRASH, value_of
from hdphrs.protocol import events as ev
from hdphrs.protocol import messages as msg
from hdphrs.protocol.effects import Deliver, Fence, Send, Start
from hdphrs.protocol.pieces import check_of, piece_of
from hdphrs.protocol.tasks import (
    FAIR,
    KEEN,
    KEY_BYTES,
    PROGRAM,
    ROOT,
    NodeId,
    Origin,
    Orphan,
    Outcome,
    Piece,
    Spark,
    Task,
    TaskRef,
)

N1, N2 = NodeId(1), NodeId(2)
FIRST = Origin(1)


def call(*path: int) -> Task:
    return Task("f", bytes(path), CODE, b"arguments")


def done(*path: int, cost_s: float = 10.0) -> Outcome:
    return replace(value_of(bytes(path)), cost_s=cost_s)


def piece(*path: int) -> Piece:
    return piece_of(call(*path), done(*path))


def orphan_on(node: NodeId, *path: int) -> Orphan:
    return Orphan(bytes(path), piece(*path).check, node)


def parent_on_1(config: CoreConfig | None = None) -> tuple[Cluster, TaskRef]:
    """Three nodes; a thread of the root runs on node 1."""
    cluster = Cluster(3, config=config, checked=False)
    ref = TaskRef(ROOT, PROGRAM, 0)
    cluster.feed(0, ev.Placed(PROGRAM, 0, call(1), N1))
    cluster.settle()
    cluster.hungry(1)
    return cluster, ref


def child_on_2(cluster: Cluster) -> TaskRef:
    """It has spawned a child, which node 2 has stolen and runs."""
    cluster.hungry(2)
    cluster.feed(1, ev.Exported(FIRST, ((0, call(1, 0)),)))
    cluster.settle()
    return TaskRef(N1, FIRST, 0)


def rerun_of(cluster: Cluster, ref: TaskRef) -> Spark:
    """The newest copy; another node may have stolen it by now."""
    cores = [host.core for host in cluster.hosts.values() if host.runs]
    sparks = [spark for core in cores for spark in (*core.pool, *core.schedulers.held()) if spark.ref == ref]
    newest: Spark = max(sparks, key=lambda spark: spark.replica)
    return newest


def die(cluster: Cluster, node: int) -> None:
    cluster.kill(node)
    cluster.suspect(node)
    cluster.settle()


@pytest.mark.parametrize(("cost_s", "kept", "left"), [(10.0, True, True), (0.01, False, True), (0.0001, False, False)])
def test_result_of_a_stolen_child_is_kept_at_the_root_if_it_was_dear_and_else_retained_by_the_thief(
    cost_s: float, kept: bool, left: bool
) -> None:
    cluster, ref = parent_on_1()
    child = child_on_2(cluster)
    effects = cluster.feed(2, ev.Finished(FIRST, ((child, 0, done(1, 0, cost_s=cost_s)),)))
    assert any(isinstance(effect, Send) and isinstance(effect.message, msg.Keep) for effect in effects) == kept
    cluster.settle()
    die(cluster, 1)
    assert rerun_of(cluster, ref).pieces == ((piece(1, 0),) if left else ())


def test_result_of_an_orphan_is_kept_at_the_root_however_cheap_it_was() -> None:
    cluster, ref = parent_on_1()
    child = child_on_2(cluster)
    die(cluster, 1)
    assert rerun_of(cluster, ref).pieces == (orphan_on(N2, 1, 0),)
    cheap = piece_of(call(1, 0), done(1, 0, cost_s=0.0))
    effects = cluster.feed(2, ev.Finished(FIRST, ((child, 0, cheap.outcome),)))
    assert Send(ROOT, msg.Keep((cheap,))) in effects
    cluster.settle()
    assert cluster.core(0).orphans.left_of(b"") == (cheap,)


def test_part_that_a_scheduler_has_run_in_place_is_kept_at_the_root() -> None:
    cluster, ref = parent_on_1()
    part = piece(1, 7)
    assert cluster.feed(1, ev.Kept((part,))) == [Send(ROOT, msg.Keep((part,)))]
    cluster.settle()
    assert cluster.core(0).counters["pieces"] == 1
    die(cluster, 1)
    assert rerun_of(cluster, ref).pieces == (part,)


def test_result_for_the_root_is_a_piece_only_if_its_parent_may_be_run_again() -> None:
    cluster, ref = parent_on_1()
    cluster.up(0)
    cluster.feed(0, ev.Exported(FIRST, ((0, call(2, 0)),)))
    cluster.hungry(2)
    cluster.settle()
    cluster.feed(2, ev.Finished(FIRST, ((TaskRef(ROOT, FIRST, 0), 0, done(2, 0)),)))
    cluster.feed(1, ev.Kept((piece(1, 5),)))
    cluster.settle()
    assert [piece.path for piece in cluster.core(0).pieces.below(b"")] == [bytes([1, 5]), bytes([2, 0])]
    cluster.feed(1, ev.Finished(FIRST, ((ref, 0, done(1)),)))
    cluster.settle()
    assert [piece.path for piece in cluster.core(0).pieces.below(b"")] == [bytes([2, 0])]


def test_unsupervised_tasks_leave_no_pieces() -> None:
    cluster, _ = parent_on_1()
    cluster.hungry(2)
    alone = Task("f", bytes([1, 0]), CODE, b"", supervised=False)
    cluster.feed(1, ev.Exported(FIRST, ((0, alone),)))
    cluster.settle()
    effects = cluster.feed(2, ev.Finished(FIRST, ((TaskRef(N1, FIRST, 0), 0, done(2, 0)),)))
    assert not any(isinstance(effect, Send) and isinstance(effect.message, msg.Keep) for effect in effects)


def test_nothing_is_kept_of_a_program_task_that_is_lost() -> None:
    cluster = Cluster(3, checked=False)
    alone = Task("f", bytes([1]), CODE, b"arguments", supervised=False)
    cluster.feed(0, ev.Placed(PROGRAM, 0, alone, N1))
    cluster.settle()
    cluster.feed(2, ev.Kept((piece(1, 0), piece(2, 0))))  # supervised children of it, and of another one
    cluster.settle()
    die(cluster, 1)
    assert [piece.path for piece in cluster.core(0).pieces.below(b"")] == [bytes([2, 0])]


def test_task_of_a_dead_scheduler_waits_for_its_pieces_and_gets_them() -> None:
    cluster, ref = parent_on_1()
    part = piece(1, 7)
    cluster.feed(1, ev.Kept((part,)))
    cluster.settle()
    cluster.crash(1, 1, (ref, 0))
    assert [message.paths for message in cluster.in_flight(1, 0) if isinstance(message, msg.Recall)] == [(bytes([1]),)]
    assert not any(isinstance(effect, Start) for effect in cluster.hungry(1, 2))
    cluster.settle()
    (started,) = cluster.hosts[N1].schedulers[Origin(2)].queue.values()
    assert (started.ref, started.pieces, started.crashes) == (ref, (part,), (CRASH,))


def test_task_that_is_among_the_pieces_itself_is_not_run_again() -> None:
    """An orphan has finished it; its parent has been run again elsewhere, and has lost the child once more."""
    cluster, _ = parent_on_1()
    cluster.feed(2, ev.Kept((piece(1, 0),)))
    cluster.settle()
    child = child_on_2(cluster)
    cluster.kill(2)
    cluster.suspect(2)
    cluster.settle()
    assert cluster.delivered[child] == done(1, 0)


def test_piece_of_another_call_at_the_same_path_does_not_answer() -> None:
    cluster, ref = parent_on_1()
    cluster.feed(2, ev.Kept((Piece(bytes([1]), check_of(CODE, b"other arguments"), done(1)),)))
    cluster.settle()
    die(cluster, 1)
    assert rerun_of(cluster, ref).replica == 1


def test_orphans_that_wait_for_pieces_are_dropped_and_late_answers_ignored() -> None:
    cluster, _ = parent_on_1()
    child = child_on_2(cluster)
    cluster.crash(2, 1, (child, 0))
    (recall,) = (message for message in cluster.in_flight(2, 0) if isinstance(message, msg.Recall))
    cluster.kill(1)
    cluster.suspect(1)
    cluster.deliver(0, 2)
    assert not list(cluster.core(2).reruns)
    assert cluster.core(2).counters["orphans"] == 1
    cluster.settle()
    assert child not in [spark.ref for spark in cluster.core(2).pool]
    assert cluster.feed(2, ev.Received(ROOT, msg.Recalled(recall.recall, ()))) == []


def test_child_that_a_re_run_exports_takes_its_pieces_along() -> None:
    cluster, ref = parent_on_1()
    part = piece(1, 0, 3)
    cluster.feed(1, ev.Kept((part, piece(1, 1))))
    cluster.settle()
    cluster.crash(1, 1, (ref, 0))
    cluster.settle()
    cluster.hungry(1, 2)
    cluster.feed(1, ev.Exported(Origin(2), ((0, call(1, 0)),)))
    assert [spark.pieces for spark in cluster.core(1).pool] == [(part,)]


def test_pieces_do_not_multiply_where_a_scheduler_holds_parent_and_child() -> None:
    """Each generation took those of all its ancestors along, the same ones again and again."""
    cluster, ref = parent_on_1()
    parts = tuple(piece(1, 0, 0, index) for index in range(2))
    cluster.feed(1, ev.Kept(parts))
    cluster.settle()
    cluster.crash(1, 1, (ref, 0))
    cluster.settle()
    for child in (call(1, 0), call(1, 0, 0)):
        cluster.hungry(1, 2)
        cluster.feed(1, ev.Exported(Origin(2), ((len(child.path), child),)))
    assert [spark.pieces for spark in cluster.core(1).pool] == [parts]


def test_without_a_store_nothing_is_kept_and_nothing_is_asked() -> None:
    cluster, ref = parent_on_1(CoreConfig(pieces_bytes_max=0))
    child = child_on_2(cluster)
    effects = cluster.feed(2, ev.Finished(FIRST, ((child, 0, done(1, 0)),)))
    assert not any(isinstance(effect, Send) and isinstance(effect.message, msg.Keep) for effect in effects)
    cluster.settle()
    cluster.crash(1, 1, (ref, 0))
    assert [spark.ref for spark in cluster.core(1).pool] == [ref]


def test_fence_counts_only_what_is_run_again() -> None:
    """The root is alone then, and knows at once what is left."""
    cluster = Cluster(2, checked=False)
    cluster.feed(0, ev.Placed(PROGRAM, 0, call(1), N1))
    cluster.feed(1, ev.Kept((piece(1),)))
    cluster.settle()
    cluster.kill(1)
    effects = cluster.feed(0, ev.Suspected(N1))
    assert Fence(N1, 0) in effects
    assert Deliver(PROGRAM, 0, done(1)) in effects


def test_task_of_the_program_begins_with_what_an_earlier_run_has_left_of_it() -> None:
    cluster = Cluster(2, checked=False)
    cluster.feed(0, ev.Kept((piece(1, 0), piece(2, 3))))
    cluster.feed(0, ev.Placed(PROGRAM, 0, call(1), N1))
    cluster.feed(0, ev.Exported(PROGRAM, ((1, call(2)), (2, call(3)))))
    cluster.settle()
    assert rerun_of(cluster, TaskRef(ROOT, PROGRAM, 0)).pieces == (piece(1, 0),)
    assert rerun_of(cluster, TaskRef(ROOT, PROGRAM, 1)).pieces == (piece(2, 3),)
    assert rerun_of(cluster, TaskRef(ROOT, PROGRAM, 2)).pieces == ()


@pytest.mark.parametrize(("letter", "pieces"), [(KEEN, 1), (FAIR, 0)])
def test_result_that_is_wanted_goes_to_the_root_however_little_it_has_cost(letter: bytes, pieces: int) -> None:
    cluster, _ = parent_on_1()
    cluster.hungry(2)
    cheap = replace(call(1, 0), memo=letter + bytes(KEY_BYTES))
    cluster.feed(1, ev.Exported(FIRST, ((0, cheap),)))
    cluster.settle()
    cluster.feed(2, ev.Finished(FIRST, ((TaskRef(N1, FIRST, 0), 0, done(1, 0, cost_s=0.0)),)))
    cluster.settle()
    assert len(cluster.hosts[ROOT].core.pieces) == pieces


def test_tasks_one_below_the_other_are_each_told_once_what_is_left() -> None:
    """Simulator seed 0x16: they were lost and asked for together, and the answer had the lower pieces twice."""
    cluster, ref = parent_on_1()
    part = piece(1, 0, 3)
    cluster.feed(1, ev.Kept((part, piece(1, 1))))
    below = Spark(TaskRef(N2, FIRST, 0), 0, call(1, 0))
    above = Spark(ref, 0, call(1))
    cluster.core(1).reruns.ask([above, below])
    (recall,) = cluster.core(1).reruns._waiting
    cluster.core(1).reruns.on_recalled(msg.Recalled(recall, (part, piece(1, 1), part)))
    assert [spark.pieces for spark in cluster.core(1).pool] == [(part, piece(1, 1)), (part,)]
