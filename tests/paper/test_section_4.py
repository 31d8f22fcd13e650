"""Section 4 of the paper, "Reliable work stealing protocol": its figures, message by message.

A, B and C of the figures are nodes 0, 1 and 2.
"""

from __future__ import annotations

from hdphrs.protocol import messages as msg
from hdphrs.protocol.supervisor import InTransition, OnNode
from hdphrs.protocol.tasks import NodeId, RequestId, TaskRef
from tests.protocol.harness import Cluster
from tests.protocol.scenes import pooled, record_of, stolen_spark

A, B, C = NodeId(0), NodeId(1), NodeId(2)


def deliver_until(cluster: Cluster, source: NodeId, to: NodeId, kind: type[msg.Message]) -> msg.Message:
    """Deliver on one link up to and with the first message of this kind."""
    while True:
        message = cluster.deliver(source, to)
        if isinstance(message, kind):
            return message


def test_figure_6_fault_tolerant_fishing_takes_five_messages() -> None:
    """C fishes from B a spark that A supervises: FISH, REQ, AUTH, SCHEDULE, ACK."""
    cluster, ref = stolen_spark()
    cluster.hungry(C)
    deliver_until(cluster, C, B, msg.Fish)
    req = deliver_until(cluster, B, A, msg.Req)
    assert isinstance(req, msg.Req)
    assert (req.ref, req.replica, req.victim, req.thief) == (ref, 0, B, C)
    deliver_until(cluster, A, B, msg.Auth)
    schedule = deliver_until(cluster, B, C, msg.Schedule)
    assert isinstance(schedule, msg.Schedule)
    assert [spark.ref for spark in schedule.sparks] == [ref]
    assert deliver_until(cluster, C, A, msg.Ack) == msg.Ack(ref, 0, C)


def test_figure_7_migration_is_tracked_between_two_known_locations() -> None:
    cluster, ref = stolen_spark()
    assert record_of(cluster, ref).location == OnNode(B)
    cluster.hungry(C)
    deliver_until(cluster, C, B, msg.Fish)
    deliver_until(cluster, B, A, msg.Req)
    assert record_of(cluster, ref).location == InTransition(B, C)
    deliver_until(cluster, A, B, msg.Auth)
    deliver_until(cluster, B, C, msg.Schedule)
    assert record_of(cluster, ref).location == InTransition(B, C)
    deliver_until(cluster, C, A, msg.Ack)
    assert record_of(cluster, ref).location == OnNode(C)


def figure_8() -> tuple[Cluster, TaskRef]:
    """B has sent the spark to C and dies; A hears of the death before the ACK."""
    cluster, ref = stolen_spark()
    cluster.hungry(C)
    deliver_until(cluster, C, B, msg.Fish)
    deliver_until(cluster, B, A, msg.Req)
    deliver_until(cluster, A, B, msg.Auth)
    deliver_until(cluster, B, C, msg.Schedule)
    cluster.kill(B)
    cluster.suspect(B)
    return cluster, ref


def test_figure_8_pessimism_duplicates_the_spark_but_not_its_result() -> None:
    cluster, ref = figure_8()
    assert record_of(cluster, ref).replica == 1
    assert ref in pooled(cluster, A)
    assert any(copy.ref == ref and copy.replica == 0 for copy in cluster.core(C).schedulers.held())
    cluster.finish()
    assert ref in cluster.delivered


def test_section_4_3_old_replica_may_not_migrate() -> None:
    cluster, ref = figure_8()
    deliver_until(cluster, A, C, msg.DeadNode)
    cluster.give_back(C)
    cluster.hungry(3)
    deliver_until(cluster, NodeId(3), C, msg.Fish)
    deliver_until(cluster, C, A, msg.Req)
    assert isinstance(deliver_until(cluster, A, C, msg.Obsolete), msg.Obsolete)
    assert not any(copy.ref == ref and copy.replica == 0 for copy in cluster.core(C).pool)
    cluster.finish()


def test_section_4_3_old_replica_may_answer() -> None:
    cluster, ref = figure_8()
    cluster.run(C)
    deliver_until(cluster, C, A, msg.Result)
    assert ref in cluster.delivered
    cluster.finish()


def test_algorithm_1_line_16_spark_in_transition_is_not_authorised_again() -> None:
    cluster, ref = stolen_spark()
    cluster.hungry(C)
    deliver_until(cluster, C, B, msg.Fish)
    deliver_until(cluster, B, A, msg.Req)
    second = msg.Req(RequestId(77), ref, 0, B, NodeId(3))
    answer = cluster.core(A).supervisor.on_req(second, thief_is_dead=False)
    assert answer == msg.Denied(RequestId(77))
