"""Algorithm 1, line by line: what each line asks for, and what we do.

Where a test's name ends in a hole's number or in "ours", we deviate, and its docstring says why.  A supervises, B is
the victim, C and D are thieves.
"""

from __future__ import annotations

import pytest

from hdphrs.config import CoreConfig
from hdphrs.explore.cluster import Cluster
from hdphrs.explore.work import CODE, task, value_of
from hdphrs.protocol import events as ev
from hdphrs.protocol import messages as msg
from hdphrs.protocol.effects import Demand, Send
from hdphrs.protocol.supervisor import InTransition, OnNode
from hdphrs.protocol.tasks import ROOT, FishId, NodeId, Origin, RequestId, TaskRef
from tests.paper.scenes import A, B, C, D, copies, deliver_until, located, obsolete_copy, spark_on_b, steal
from tests.protocol.scenes import orphan_to_be, pooled

R1, R9 = RequestId(1), RequestId(9)


def declare_dead(cluster: Cluster, node: NodeId) -> None:
    """It dies, the root notices, all are told."""
    cluster.kill(node)
    cluster.suspect(node)
    cluster.settle()


# ---- lines 1 to 10: FISH -------------------------------------------------------------------------------------


def test_lines_2_9_10_fish_while_awaiting_auth_is_not_refused_ours_r20() -> None:
    """One guarded spark at a time would limit the steal rate.  A second fish is served from the rest of the pool; here
    there is none, so it waits."""
    cluster, _ = spark_on_b()
    steal(cluster, msg.Fish)
    before = cluster.in_flight(B, A)
    assert cluster.feed(B, ev.Received(D, msg.Fish(FishId(1), D, 1, 0.1))) == [Demand(True)]
    assert cluster.in_flight(B, A) == before
    assert cluster.core(B).victim.parked == 1


def test_lines_2_9_10_as_printed_if_one_guard_is_the_bound() -> None:
    """With room for one guard and for no waiting fish, the second thief gets NOWORK, as the lines say."""
    cluster = Cluster(4, config=CoreConfig(guards_max=1, parked_max=0))
    cluster.spawn(8)
    cluster.hungry(B)
    cluster.settle()
    assert cluster.core(B).pool.stealable > 1
    cluster.feed(B, ev.Received(C, msg.Fish(FishId(1), C, 1, 0.1)))
    assert len(list(cluster.core(B).victim.guarded())) == 1
    assert cluster.feed(B, ev.Received(D, msg.Fish(FishId(1), D, 1, 0.1))) == [Send(D, msg.NoWork(FishId(1), 0.0))]


def test_lines_3_to_6_spark_is_popped_reserved_and_asked_for() -> None:
    cluster, ref = spark_on_b()
    steal(cluster, msg.Fish)
    assert pooled(cluster, B) == []
    assert [spark.ref for spark in cluster.core(B).victim.guarded()] == [ref]
    assert cluster.in_flight(B, A) == [msg.Req(R1, ref, 0, B, C)]


def test_lines_3_to_6_of_one_s_own_sparks_nobody_is_asked_ours() -> None:
    """When victim and supervisor are one, lines 6, 12 to 16 and 21, 22 happen in one step."""
    cluster = Cluster(2)
    (ref,) = cluster.spawn()
    cluster.feed(A, ev.Received(B, msg.Fish(FishId(1), B, 1, 0.1)))
    assert located(cluster, ref) == InTransition(A, B)
    assert [type(message) for message in cluster.in_flight(A, B)] == [msg.Code, msg.Schedule]


def test_line_3_last_spark_is_stolen_too_r16() -> None:
    """The sources keep two sparks back; the printed line does not, nor do we."""
    cluster, _ = spark_on_b()
    assert cluster.core(B).pool.stealable == 1
    steal(cluster, msg.Schedule)
    assert cluster.core(C).counters["stolen"] == 1


def test_lines_7_8_empty_pool_means_nowork_after_a_while_ours() -> None:
    """An answer at once would make idle nodes ask all the time; the fish waits `park_s` for work."""
    cluster = Cluster(2)
    cluster.feed(A, ev.Received(B, msg.Fish(FishId(1), B, 1, 0.1)))
    assert cluster.in_flight(A, B) == []
    cluster.tick(cluster.config.park_s)
    assert cluster.in_flight(A, B) == [msg.NoWork(FishId(1), 0.1)]


# ---- lines 11 to 20: REQ -------------------------------------------------------------------------------------


def test_lines_12_to_16_newest_replica_at_a_known_place_may_go() -> None:
    cluster, ref = spark_on_b()
    assert located(cluster, ref) == OnNode(B)
    assert cluster.feed(A, ev.Received(B, msg.Req(R9, ref, 0, B, C))) == [Send(B, msg.Auth(R9))]
    assert located(cluster, ref) == InTransition(B, C)


def test_line_12_finished_task_has_no_replica_number_r6() -> None:
    """The lines look up what is not there any more.  No record means finished: OBSOLETE."""
    cluster, ref = spark_on_b()
    cluster.feed(A, ev.Received(D, msg.Result(ref, 0, value_of(b"0"))))
    assert cluster.feed(A, ev.Received(B, msg.Req(R9, ref, 0, B, C))) == [Send(B, msg.Obsolete(R9))]


def test_line_14_thief_must_be_alive_r15() -> None:
    """Appendix A and the sources check it, the line does not.  Whoever is granted a move to the dead after their notice
    has been handled loses the task: no second notice will come."""
    cluster, ref = spark_on_b()
    declare_dead(cluster, C)
    assert cluster.feed(A, ev.Received(B, msg.Req(R9, ref, 0, B, C))) == [Send(B, msg.Denied(R9))]
    assert located(cluster, ref) == OnNode(B)


def test_line_14_known_place_must_be_that_of_the_victim_r22() -> None:
    cluster, ref = spark_on_b()
    assert cluster.feed(A, ev.Received(D, msg.Req(R9, ref, 0, D, C))) == [Send(D, msg.Denied(R9))]
    assert located(cluster, ref) == OnNode(B)


def test_lines_17_18_spark_in_transition_may_not_go() -> None:
    cluster, ref = spark_on_b()
    steal(cluster, msg.Req)
    assert cluster.feed(A, ev.Received(B, msg.Req(R9, ref, 0, B, D))) == [Send(B, msg.Denied(R9))]
    assert located(cluster, ref) == InTransition(B, C)


def test_lines_17_18_next_thief_may_be_faster_than_the_ack() -> None:
    """A race that the paper leaves to DENIED: D asks C before A has C's ACK.  Nothing is lost, D only asks in vain."""
    cluster, ref = spark_on_b()
    steal(cluster, msg.Schedule)
    cluster.give_back(C)
    cluster.hungry(D)
    deliver_until(cluster, D, C, msg.Fish)
    acknowledged, asked = cluster.in_flight(C, A)
    assert isinstance(asked, msg.Req)
    assert cluster.feed(A, ev.Received(C, asked)) == [Send(C, msg.Denied(asked.request))]
    cluster.feed(A, ev.Received(C, acknowledged))
    assert located(cluster, ref) == OnNode(C)


def test_lines_19_20_old_replica_is_to_be_discarded() -> None:
    cluster, ref = obsolete_copy()
    assert cluster.feed(A, ev.Received(C, msg.Req(R9, ref, 0, C, D))) == [Send(C, msg.Obsolete(R9))]


# ---- lines 21, 22: AUTH; and the handlers that the paper leaves to the thesis ----------------------------------------


def test_lines_21_22_authorised_spark_goes_to_its_thief() -> None:
    cluster, ref = spark_on_b()
    steal(cluster, msg.Auth)
    schedule = cluster.in_flight(B, C)[-1]
    assert isinstance(schedule, msg.Schedule)
    assert [spark.ref for spark in schedule.sparks] == [ref]
    assert copies(cluster, ref) == []


@pytest.mark.parametrize("reply", [msg.Auth, msg.Denied, msg.Obsolete])
def test_lines_21_22_reply_that_nobody_waits_for_is_ignored_r3(
    reply: type[msg.Auth | msg.Denied | msg.Obsolete],
) -> None:
    """The lines take the one reserved spark for granted.  A reply names its request; if that is closed, it is stale."""
    cluster, ref = spark_on_b()
    steal(cluster, msg.Fish)
    assert cluster.feed(B, ev.Received(A, reply(R9))) == []
    assert copies(cluster, ref) == [(B, 0)]
    assert cluster.core(B).counters["stale"] == 1


def test_denied_spark_goes_back_to_the_pool_and_the_thief_is_told() -> None:
    cluster, ref = spark_on_b()
    steal(cluster, msg.Fish)
    cluster.feed(B, ev.Received(A, msg.Denied(R1)))
    assert pooled(cluster, B) == [ref]
    assert cluster.in_flight(B, C) == [msg.NoWork(FishId(1), 0.0)]


def test_obsolete_spark_is_discarded_and_the_thief_is_told() -> None:
    cluster, ref = spark_on_b()
    steal(cluster, msg.Fish)
    cluster.feed(A, ev.Received(D, msg.Result(ref, 0, value_of(b"0"))))
    cluster.settle()
    assert copies(cluster, ref) == []
    assert cluster.core(C).counters["stolen"] == 0


# ---- lines 23 to 25: SCHEDULE --------------------------------------------------------------------------------


def test_lines_23_to_25_spark_is_kept_and_its_supervisor_told() -> None:
    """Into the pool, and on to the scheduler that is hungry."""
    cluster, ref = spark_on_b()
    steal(cluster, msg.Schedule)
    assert copies(cluster, ref) == [(C, 0)]
    assert cluster.in_flight(C, A) == [msg.Ack(ref, 0, C)]


def test_lines_23_to_25_spark_that_nobody_asked_for_is_welcome_ours() -> None:
    """The fish may have been given up (R5); the move was authorised, so the spark must not be dropped."""
    cluster, ref = spark_on_b()
    steal(cluster, msg.Auth)
    cluster.now += cluster.config.fish_deadline_s
    cluster.feed(C, ev.Tick())
    deliver_until(cluster, B, C, msg.Schedule)
    assert copies(cluster, ref) == [(C, 0)]


def test_line_25_supervisor_that_is_dead_is_not_told_r1() -> None:
    """Nobody waits for such a spark, and nobody could ever let it go: it is dropped."""
    cluster, ref = orphan_to_be()
    (spark,) = cluster.core(C).pool
    cluster.kill(B)
    cluster.suspect(B)
    cluster.settle()
    assert cluster.feed(D, ev.Received(C, msg.Schedule(FishId(9), (spark,)))) == []
    assert copies(cluster, ref) == []


# ---- lines 26, 27: ACK ---------------------------------------------------------------------------------------


def test_lines_26_27_spark_is_where_its_thief_is() -> None:
    cluster, ref = spark_on_b()
    steal(cluster, msg.Ack)
    assert located(cluster, ref) == OnNode(C)


@pytest.mark.parametrize(("replica", "node"), [(0, D), (1, C)])
def test_lines_26_27_only_of_the_newest_replica_from_a_node_that_the_record_names_r21(
    replica: int, node: NodeId
) -> None:
    """As printed, a late ACK of an old copy hides where the new one is; the next death loses the task."""
    cluster, ref = spark_on_b()
    steal(cluster, msg.Schedule)
    cluster.feed(A, ev.Received(node, msg.Ack(ref, replica, node)))
    assert located(cluster, ref) == InTransition(B, C)


def test_lines_26_27_ack_of_the_old_copy_comes_after_the_new_one_was_made_r21() -> None:
    """Figure 8 goes on: C's ACK for replica 0 reaches A when replica 1 is A's own."""
    cluster, ref = obsolete_copy()
    deliver_until(cluster, C, A, msg.Ack)
    assert located(cluster, ref) == OnNode(A)


def test_lines_26_27_ack_for_a_finished_task_is_ignored_r6() -> None:
    """Between different pairs there is no order: the task may have been finished elsewhere."""
    cluster, ref = spark_on_b()
    steal(cluster, msg.Schedule)
    cluster.feed(A, ev.Received(D, msg.Result(ref, 0, value_of(b"0"))))
    assert cluster.feed(A, ev.Received(C, msg.Ack(ref, 0, C))) == []


# ---- lines 28 to 36: DEADNODE --------------------------------------------------------------------------------


def test_lines_29_30_fishing_goes_on_when_the_victim_is_dead_r4() -> None:
    """In the same step, elsewhere; and the dead is forgotten as the favourite."""
    cluster, _ = spark_on_b()
    cluster.hungry(C)
    assert cluster.core(C).thief.out == 1
    assert isinstance(cluster.in_flight(C, B)[-1], msg.Fish)
    cluster.kill(B)
    cluster.suspect(B)
    deliver_until(cluster, A, C, msg.DeadNode)
    assert isinstance(cluster.in_flight(C, A)[-1], msg.Fish)


def test_lines_31_32_reserved_spark_goes_back_when_its_thief_is_dead_but_not_before_the_answer_ours_r3() -> None:
    """Put back at once, it could be reserved again while the first answer is still on its way; then that answer would
    hit the second reservation.  So the guard stays until it has its answer."""
    cluster, ref = spark_on_b()
    steal(cluster, msg.Fish)
    cluster.kill(C)
    cluster.suspect(C)
    deliver_until(cluster, A, B, msg.DeadNode)
    assert [spark.ref for spark in cluster.core(B).victim.guarded()] == [ref]
    cluster.settle()
    assert pooled(cluster, B) == [ref]
    assert located(cluster, ref) == OnNode(B)


def test_lines_31_32_guard_whose_supervisor_is_dead_is_opened_r1() -> None:
    """The lines look at the thief only.  The answer will never come: the spark is an orphan, the thief is told."""
    cluster, _ = orphan_to_be()
    cluster.hungry(D)
    deliver_until(cluster, D, C, msg.Fish)
    cluster.kill(B)
    cluster.suspect(B)
    deliver_until(cluster, A, C, msg.DeadNode)
    assert list(cluster.core(C).victim.guarded()) == []
    assert isinstance(cluster.in_flight(C, D)[-1], msg.NoWork)


def test_lines_33_34_sparks_that_may_be_on_the_dead_node_are_replicated_and_no_others() -> None:
    cluster = Cluster(3)
    refs = cluster.spawn(4)
    for node in (B, C):
        cluster.hungry(node, room=1)
    cluster.settle()
    at_risk = [ref for ref in refs if located(cluster, ref) == OnNode(B)]
    assert 0 < len(at_risk) < len(refs)
    cluster.kill(B)
    cluster.suspect(B)
    replicas = {ref: record.replica for ref, record in cluster.core(A).supervisor.records()}
    assert replicas == {ref: int(ref in at_risk) for ref in refs}


@pytest.mark.parametrize("dead", [B, C])
def test_lines_33_34_either_end_of_a_transition_is_a_risk(dead: NodeId) -> None:
    """Section 4.3: pessimism towards the dead node, and away from it."""
    cluster, ref = spark_on_b()
    steal(cluster, msg.Req)
    cluster.kill(dead)
    cluster.suspect(dead)
    assert (A, 1) in copies(cluster, ref)
    assert located(cluster, ref) == OnNode(A)


def test_lines_35_36_threads_of_the_dead_node_become_sparks_r9() -> None:
    """As printed, the supervisor runs all of them itself, one after another."""
    cluster = Cluster(3)
    refs = [cluster.place(B) for _ in range(4)]
    declare_dead(cluster, B)
    assert pooled(cluster, A) == refs
    assert cluster.core(A).pool.stealable == 4


def test_lines_35_36_thread_for_a_node_that_is_dead_already_r2() -> None:
    """No DEADNODE will come for it: it is recovered when it is made."""
    cluster = Cluster(3)
    declare_dead(cluster, B)
    ref = cluster.place(B)
    assert copies(cluster, ref) == [(A, 0)]


def test_lines_28_to_36_every_supervisor_looks_after_its_own() -> None:
    """A's spark and B's child are both on C; each is re-created by whoever made it (section 4.1)."""
    cluster = Cluster(4, config=CoreConfig(want_max=1))
    (ref,) = cluster.spawn()
    cluster.feed(B, ev.Learned(CODE, b"def f"))
    child = TaskRef(B, Origin(1), 0)
    cluster.feed(B, ev.Exported(Origin(1), ((0, task(b"child")),)))
    for supervisor in (A, B):
        cluster.feed(supervisor, ev.Received(C, msg.Fish(FishId(77), C, 1, 0.1)))
    cluster.settle()
    assert copies(cluster, ref) + copies(cluster, child) == [(C, 0)] * 2
    declare_dead(cluster, C)
    assert copies(cluster, ref) == [(A, 1)]
    assert copies(cluster, child) == [(B, 1)]


def test_lines_28_to_36_of_a_node_s_own_death_ours() -> None:
    """A node that was only cut off may still run, and hears it: it drops everything, and joins again as a new one."""
    cluster = Cluster(2)
    (halt,) = cluster.feed(B, ev.Received(ROOT, msg.DeadNode(B, 9)))
    assert getattr(halt, "rejoin", False)
