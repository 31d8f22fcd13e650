"""Section 4 of the paper, "Reliable work stealing protocol": its figures, its listing, and the races in its prose.

A, B, C and D of the figures are nodes 0 to 3.  The messages one by one are in `test_table_1.py`, the handlers in
`test_algorithm_1.py`.
"""

from __future__ import annotations

import pytest

from hdphrs.explore.work import value_of
from hdphrs.protocol import events as ev
from hdphrs.protocol import messages as msg
from hdphrs.protocol.supervisor import InTransition, OnNode
from hdphrs.protocol.tasks import FishId, NodeId
from tests.paper.scenes import STEAL, A, B, C, D, copies, deliver_until, located, obsolete_copy, spark_on_b, steal


def test_figure_6_fault_tolerant_fishing_takes_five_messages() -> None:
    """C fishes from B a spark that A supervises: FISH, REQ, AUTH, SCHEDULE, ACK, and nothing else is said between them
    but the function's code, once for each pair."""
    cluster, ref = spark_on_b()
    cluster.hungry(C)
    said = []
    while links := cluster.links():
        ((source, to),) = links
        message = cluster.deliver(source, to)
        if not isinstance(message, msg.Code):
            said.append((source, to, type(message)))
    assert tuple(said) == STEAL
    assert copies(cluster, ref) == [(C, 0)]


def test_figure_7_migration_is_tracked_between_two_known_locations() -> None:
    cluster, ref = spark_on_b()
    cluster.hungry(C)
    tracked = [located(cluster, ref)]
    for source, to, kind in STEAL:
        deliver_until(cluster, source, to, kind)
        tracked.append(located(cluster, ref))
    moving = InTransition(B, C)
    assert tracked == [OnNode(B), OnNode(B), moving, moving, moving, OnNode(C)]


def test_figure_8_pessimism_duplicates_the_spark_but_not_its_result() -> None:
    """B has sent the spark to C and dies; A hears of the death before the ACK."""
    cluster, ref = obsolete_copy()
    assert copies(cluster, ref) == [(A, 1), (C, 0)]
    cluster.up(A)
    cluster.hungry(A)
    cluster.run(A)
    cluster.run(C)
    cluster.settle()
    assert cluster.delivered == {ref: value_of(b"0")}
    assert cluster.core(A).counters["duplicates"] == 1


def test_figure_8_the_other_way_round_needs_no_duplicate() -> None:
    """The ACK is before the death: A knows that the spark is on C."""
    cluster, ref = spark_on_b()
    steal(cluster, msg.Ack)
    cluster.kill(B)
    cluster.suspect(B)
    assert copies(cluster, ref) == [(C, 0)]


@pytest.mark.parametrize("after", [0, 1, 2, 3, 4, 5])
@pytest.mark.parametrize("dying", [(B,), (C,), (B, C), (C, B)])
@pytest.mark.parametrize("first_to_hear", ["supervisor", "others"])
def test_section_4_3_death_after_each_message_of_figure_6_costs_time_only(
    after: int, dying: tuple[NodeId, ...], first_to_hear: str
) -> None:
    """Whoever dies, whenever, whoever hears of it first: the future is filled, once, and with its value."""
    cluster, ref = spark_on_b()
    cluster.hungry(C)
    for source, to, kind in STEAL[:after]:
        deliver_until(cluster, source, to, kind)
    for node in dying:
        cluster.kill(node)
        if first_to_hear == "others":
            for source, to in cluster.links():
                while to == A and cluster.in_flight(source, to):
                    cluster.deliver(source, to)
        cluster.suspect(node)
    cluster.finish()
    assert cluster.delivered == {ref: value_of(b"0")}


def test_section_4_3_old_replica_may_not_migrate() -> None:
    """Several copies on the move under one name could not be told apart by the tracking."""
    cluster, ref = obsolete_copy()
    deliver_until(cluster, A, C, msg.DeadNode)
    cluster.give_back(C)
    cluster.hungry(D)
    deliver_until(cluster, D, C, msg.Fish)
    deliver_until(cluster, C, A, msg.Req)
    assert isinstance(deliver_until(cluster, A, C, msg.Obsolete), msg.Obsolete)
    assert copies(cluster, ref) == [(A, 1)]
    cluster.finish()


def test_section_4_3_old_replica_may_still_move_if_it_was_authorised_before() -> None:
    """A race that the section does not mention: AUTH is under way when the thief is declared dead, here falsely.  The
    copy moves once more, when it is old already; its ACK is not believed, so the tracking stays right."""
    cluster, ref = spark_on_b()
    steal(cluster, msg.Req)
    cluster.suspect(C)
    deliver_until(cluster, A, B, msg.Auth)
    deliver_until(cluster, B, C, msg.Schedule)
    assert copies(cluster, ref) == [(A, 1), (C, 0)]
    deliver_until(cluster, C, A, msg.Ack)
    assert located(cluster, ref) == OnNode(A)
    cluster.finish()
    assert cluster.delivered == {ref: value_of(b"0")}


def test_section_4_3_old_replica_may_answer() -> None:
    """Tasks are idempotent, so this cannot be told from the case in which it was lost."""
    cluster, ref = obsolete_copy()
    cluster.run(C)
    deliver_until(cluster, C, A, msg.Result)
    assert cluster.delivered == {ref: value_of(b"0")}
    cluster.finish()


def test_section_4_3_new_replica_of_a_task_that_is_finished_is_not_run_r17() -> None:
    cluster, ref = obsolete_copy()
    cluster.run(C)
    deliver_until(cluster, C, A, msg.Result)
    assert copies(cluster, ref) == []  # nor does it wait until somebody is hungry
    cluster.up(A)
    cluster.hungry(A)
    assert cluster.core(A).counters["tasks_started"] == 0


def test_section_4_3_replica_numbers_grow_with_each_death() -> None:
    cluster, ref = obsolete_copy()
    cluster.feed(A, ev.Received(D, msg.Fish(FishId(9), D, 1, 0.1)))
    cluster.kill(D)
    cluster.suspect(D)
    assert copies(cluster, ref) == [(A, 2), (C, 0)]


def test_listing_4_empty_future_holds_the_task_its_number_and_its_place() -> None:
    """The fields task, replicaNum and location of a SupervisedTaskState.  Who is blocked on the future is the
    scheduler's matter."""
    cluster, ref = spark_on_b()
    record = cluster.core(A).supervisor.record(ref)
    assert record is not None
    (spark,) = cluster.core(B).pool
    assert (record.task, record.replica, record.location) == (spark.task, 0, OnNode(B))


def test_listing_4_full_future_holds_none_of_it() -> None:
    """The backup lives as long as it can be needed, and no longer (section 3.3 on memory)."""
    cluster, ref = obsolete_copy()
    cluster.run(C)
    deliver_until(cluster, C, A, msg.Result)
    assert cluster.core(A).supervisor.record(ref) is None


def test_section_6_2_future_that_is_filled_before_the_death_is_known_is_not_recovered() -> None:
    """In the paper the handler races with the schedulers that fill futures; ours takes one event at a time."""
    cluster, ref = spark_on_b()
    steal(cluster, msg.Ack)
    cluster.run(C)
    deliver_until(cluster, C, A, msg.Result)
    cluster.kill(C)
    cluster.suspect(C)
    assert copies(cluster, ref) == []
    assert cluster.core(A).counters["replicas"] == 0


# ---- roles that fall together --------------------------------------------------------------------------------


def test_supervisor_may_be_the_thief_of_its_own_spark() -> None:
    """It asks itself nothing, and acknowledges to itself without a message."""
    cluster, ref = spark_on_b()
    cluster.feed(B, ev.Received(A, msg.Fish(FishId(9), A, 1, 0.1)))
    deliver_until(cluster, B, A, msg.Req)
    assert located(cluster, ref) == InTransition(B, A)
    deliver_until(cluster, A, B, msg.Auth)
    deliver_until(cluster, B, A, msg.Schedule)
    assert located(cluster, ref) == OnNode(A)
    assert cluster.links() == []
    cluster.finish()


def test_victim_whose_thief_dies_in_the_middle_can_be_robbed_by_the_next() -> None:
    cluster, ref = spark_on_b()
    steal(cluster, msg.Req)
    cluster.kill(C)
    cluster.feed(B, ev.Received(A, msg.DeadNode(C, 9)))
    deliver_until(cluster, A, B, msg.Auth)
    deliver_until(cluster, B, A, msg.Ack)
    cluster.feed(B, ev.Received(D, msg.Fish(FishId(1), D, 1, 0.1)))
    deliver_until(cluster, B, A, msg.Req)
    assert located(cluster, ref) == InTransition(B, D)


def test_spark_may_come_back_to_where_it_was() -> None:
    """The record follows it there and back, with one number all the time."""
    cluster, ref = spark_on_b()
    steal(cluster, msg.Ack)
    cluster.give_back(C)
    cluster.feed(C, ev.Received(B, msg.Fish(FishId(1), B, 1, 0.1)))
    for source, to, kind in ((C, A, msg.Req), (A, C, msg.Auth), (C, B, msg.Schedule), (B, A, msg.Ack)):
        deliver_until(cluster, source, to, kind)
    assert located(cluster, ref) == OnNode(B)
    assert copies(cluster, ref) == [(B, 0)]
