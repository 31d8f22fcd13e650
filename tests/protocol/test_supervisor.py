"""The supervisor's record: what moves it, and what a death makes of it."""

from __future__ import annotations

from hdphrs.explore.work import CRASH, task
from hdphrs.protocol.messages import Auth, Denied, Obsolete, Req
from hdphrs.protocol.supervisor import InTransition, Location, OnNode, Supervisor
from hdphrs.protocol.tasks import PROGRAM, NodeId, Origin, RequestId, Spark, TaskRef, Verdict

ME, B, C, D = (NodeId(node) for node in range(4))
REF = TaskRef(ME, PROGRAM, 0)


def supervisor(*, supervised: bool = True) -> tuple[Supervisor, Spark]:
    one = Supervisor(ME)
    return one, one.register(REF, task(supervised=supervised), ())


def location(one: Supervisor, ref: TaskRef = REF) -> Location:
    return dict(one.records())[ref].location


def req(victim: NodeId, thief: NodeId, replica: int = 0) -> Req:
    return Req(RequestId(1), REF, replica, victim, thief)


def test_spark_is_tracked_from_node_to_node() -> None:
    one, spark = supervisor()
    one.authorise(spark, B)
    assert location(one) == InTransition(ME, B)
    assert one.on_ack(REF, 0, B)
    assert location(one) == OnNode(B)
    assert one.on_req(req(B, C), thief_is_dead=False) == Auth(RequestId(1))
    assert location(one) == InTransition(B, C)


def test_req_while_in_transition_is_denied() -> None:
    one, spark = supervisor()
    one.authorise(spark, B)
    assert one.on_req(req(B, C), thief_is_dead=False) == Denied(RequestId(1))


def test_req_towards_a_dead_thief_is_denied_and_moves_nothing() -> None:
    one, _ = supervisor()
    assert one.on_req(req(ME, C), thief_is_dead=True) == Denied(RequestId(1))
    assert location(one) == OnNode(ME)


def test_req_for_an_old_replica_or_a_finished_task_is_obsolete() -> None:
    one, spark = supervisor()
    one.authorise(spark, B)
    one.on_death(B)
    assert one.on_req(req(B, C, replica=0), thief_is_dead=False) == Obsolete(RequestId(1))
    assert one.on_result(REF, 0)
    assert one.on_req(req(ME, C, replica=1), thief_is_dead=False) == Obsolete(RequestId(1))


def test_ack_of_the_victim_keeps_the_spark_where_it_was() -> None:
    one, _ = supervisor()
    one.on_req(req(ME, B), thief_is_dead=False)
    assert one.on_ack(REF, 0, ME)
    assert location(one) == OnNode(ME)


def test_ack_is_believed_only_of_the_newest_replica_and_from_a_node_that_the_record_names() -> None:
    one, spark = supervisor()
    one.authorise(spark, B)
    assert not one.on_ack(REF, 0, C)
    assert not one.on_ack(REF, 1, B)
    assert one.on_ack(REF, 0, B)
    assert not one.on_ack(REF, 0, C)
    assert location(one) == OnNode(B)


def test_full_future_has_no_record_and_a_second_result_finds_none() -> None:
    one, _ = supervisor()
    assert one.record(REF) is not None
    assert one.on_result(REF, 0)
    assert one.record(REF) is None
    assert not one.on_result(REF, 0)


def test_death_of_either_end_of_a_transition_recreates_the_task() -> None:
    for dead in (B, C):
        one, spark = supervisor()
        one.authorise(spark, B)
        one.on_ack(REF, 0, B)
        one.on_req(req(B, C), thief_is_dead=False)
        recreated, lost = one.on_death(dead)
        assert recreated == [Spark(REF, 1, task())]
        assert not lost
        assert location(one) == OnNode(ME)
        record = one.on_result(REF, 1)
        assert record is not None
        assert record.also_on == ((C,) if dead == B else (B,))


def test_death_of_another_node_changes_nothing() -> None:
    one, spark = supervisor()
    one.authorise(spark, B)
    assert one.on_death(D) == ([], [])


def test_recreated_task_keeps_the_crashes_that_were_charged() -> None:
    one, spark = supervisor()
    one.charge(Spark(REF, 0, spark.task, (CRASH,)))
    one.authorise(spark, B)
    assert one.on_death(B)[0] == [Spark(REF, 1, task(), (CRASH,))]


def test_recovered_thread_may_migrate() -> None:
    one = Supervisor(ME)
    assert one.register_placed(REF, task(), (), B).placed
    assert not one.on_death(B)[0][0].placed


def test_unsupervised_spark_that_has_left_is_lost_with_any_node_and_says_so() -> None:
    one, spark = supervisor(supervised=False)
    assert one.on_death(D) == ([], [])
    one.authorise(spark, B)
    recreated, [(ref, _, outcome)] = one.on_death(D)
    assert not recreated
    assert (ref, outcome.verdict) == (REF, Verdict.LOST)
    assert b"task f " in outcome.data
    assert b"node 3" in outcome.data
    assert not one.on_result(REF, 0)


def test_unsupervised_thread_is_lost_with_its_own_node_only() -> None:
    one = Supervisor(ME)
    one.register_placed(REF, task(supervised=False), (), B)
    assert one.on_death(C) == ([], [])
    assert len(one.on_death(B)[1]) == 1


def test_futures_of_a_dead_scheduler_are_forgotten_and_no_others() -> None:
    one = Supervisor(ME)
    for origin in (1, 2, 1):
        one.register(TaskRef(ME, Origin(origin), len(one)), task(), ())
    assert one.forget(Origin(1)) == {ME: [TaskRef(ME, Origin(1), 0), TaskRef(ME, Origin(1), 2)]}
    assert [ref.origin for ref, _ in one.records()] == [2]
