"""One regression for each known hole of the published protocol, as far as it is the core's matter.

Not the core's, but tested by name elsewhere: R8 (no user code in the node process), R10 (detection), R11 (how a process
exits), R12 (start-up), R19 (skeletons).  The docstrings tell what the unrepaired rule does; where one line
brings it back, a test plants it.
"""

from __future__ import annotations

import pytest

from hdphrs.config import CoreConfig
from hdphrs.explore.cluster import Cluster
from hdphrs.explore.work import CODE, CRASH, task, value_of
from hdphrs.protocol import events as ev
from hdphrs.protocol import messages as msg
from hdphrs.protocol.effects import Deliver, Halt, Send, Start, StopSchedulers
from hdphrs.protocol.supervisor import InTransition, OnNode, Supervisor
from hdphrs.protocol.tasks import PROGRAM, ROOT, FishId, NodeId, Origin, RequestId, TaskRef, Verdict
from tests.protocol.scenes import orphan_to_be, pooled, record_of, stolen_spark

N1, N2, N3 = NodeId(1), NodeId(2), NodeId(3)


def declare_dead(cluster: Cluster, node: int) -> None:
    """It dies, the root notices, all are told."""
    cluster.kill(node)
    cluster.suspect(node)
    cluster.settle()


def orphans_at(cluster: Cluster, node: int) -> list[TaskRef]:
    """Sparks of node 1 that wait on another; the re-created parent may have been stolen in their place."""
    return [ref for ref in pooled(cluster, node) if ref.node == 1]


def guarded_at_2() -> tuple[Cluster, TaskRef]:
    """Node 2 guards a spark of node 1 for node 3."""
    cluster, ref = orphan_to_be()
    cluster.hungry(3)
    cluster.deliver(3, 2)
    assert cluster.core(2).victim._guards
    return cluster, ref


def test_r1_death_of_the_supervisor_opens_its_guards_and_answers_the_thief() -> None:
    """Unrepaired, the guard waits for the dead for ever, and so does the thief."""
    cluster, _ = guarded_at_2()
    cluster.kill(1)
    cluster.suspect(1)
    cluster.deliver(0, 2)
    assert not list(cluster.core(2).victim.guarded())
    assert [type(message) for message in cluster.in_flight(2, 3)] == [msg.NoWork]
    cluster.finish()


def test_r1_sparks_of_a_dead_supervisor_leave_the_pool() -> None:
    """Unrepaired, they stay, and the next thief makes the victim send REQ to a corpse."""
    cluster, _ = orphan_to_be()
    declare_dead(cluster, 1)
    assert orphans_at(cluster, 2) == []
    assert cluster.core(2).counters["orphans"] == 1


@pytest.mark.parametrize("how", ["given back", "scheduler died"])
def test_r1_orphans_that_a_scheduler_returns_do_not_enter_the_pool(how: str) -> None:
    """A scheduler has the orphan while its supervisor is declared dead, and returns it later."""
    cluster, _ = orphan_to_be()
    (started,) = cluster.hosts[N2].schedulers[Origin(1)].queue
    assert started[0].node == 1
    declare_dead(cluster, 1)
    if how == "given back":
        cluster.give_back(2)
    else:
        cluster.crash(2, 1, started)
    assert orphans_at(cluster, 2) == []
    cluster.hungry(3)
    cluster.settle()
    assert not list(cluster.core(2).victim.guarded())


def test_r1_sparks_of_a_dead_supervisor_that_still_arrive_are_dropped() -> None:
    cluster, _ = guarded_at_2()
    cluster.deliver(2, 1)
    cluster.deliver(1, 2)
    assert any(isinstance(message, msg.Schedule) for message in cluster.in_flight(2, 3))
    cluster.kill(1)
    cluster.suspect(1)
    cluster.deliver(0, 3)
    cluster.settle()
    assert orphans_at(cluster, 3) == []
    assert cluster.core(3).counters["orphans"] == 1


def test_r2_spawn_at_to_a_dead_node_is_recovered_at_once() -> None:
    """Unrepaired, PUSH goes to the dead; no second DEADNODE will ever come, and the future stays empty."""
    cluster = Cluster(3)
    declare_dead(cluster, 2)
    ref = cluster.place(2)
    assert pooled(cluster, 0) == [ref]
    cluster.finish()


def test_r2_spawn_at_to_a_node_that_dies_before_the_push_arrives_is_recovered() -> None:
    cluster = Cluster(3)
    ref = cluster.place(2)
    declare_dead(cluster, 2)
    assert pooled(cluster, 0) == [ref]
    cluster.finish()


@pytest.mark.parametrize("reply", [msg.Auth, msg.Denied, msg.Obsolete])
def test_r3_stale_reply_does_not_touch_another_guard(reply: type[msg.Auth | msg.Denied | msg.Obsolete]) -> None:
    """Unrepaired, a reply acts on whatever is guarded now: it sends off, strands or discards another spark."""
    cluster, ref = stolen_spark()
    cluster.hungry(2)
    cluster.deliver(2, 1)
    (request,) = cluster.core(1).victim._guards
    before = cluster.core(1).counters["stale"]
    assert cluster.feed(1, ev.Received(ROOT, reply(RequestId(request + 7)))) == []
    assert [guarded.ref for guarded in cluster.core(1).victim.guarded()] == [ref]
    assert cluster.core(1).counters["stale"] == before + 1


def test_r4_dead_favourite_is_forgotten() -> None:
    """Unrepaired, the node fishes in the dead victim that fed it last, and never again elsewhere."""
    cluster = Cluster(3)
    cluster.place(1)
    cluster.settle()
    cluster.hungry(1)
    cluster.feed(1, ev.Exported(Origin(1), tuple((slot, task(b"%d" % slot)) for slot in range(2))))
    cluster.hungry(2)
    cluster.settle()
    assert cluster.core(2).counters["stolen"] == 1
    declare_dead(cluster, 1)
    cluster.run(2)
    assert {effect.to for effect in cluster.hungry(2) if isinstance(effect, Send)} <= {ROOT}
    cluster.spawn(2)
    cluster.finish()


def test_r4_fish_in_a_dead_victim_does_not_count_as_out() -> None:
    cluster = Cluster(3, config=CoreConfig(fish_max=1), choose=lambda n: n - 1)
    cluster.hungry(1)
    assert cluster.in_flight(1, 2)
    declare_dead(cluster, 2)
    assert cluster.core(1).counters["fish_sent"] == 2


def test_r5_lost_fish_is_given_up_at_its_deadline() -> None:
    """Unrepaired, the thief waits for an answer that does not exist."""
    cluster = Cluster(2)
    cluster.hungry(1)
    cluster.queues[N1, ROOT].clear()
    cluster.tick(CoreConfig().fish_deadline_s)
    assert [type(message) for message in cluster.in_flight(1, 0)] == [msg.Fish]


def test_r6_req_for_a_finished_task_is_obsolete_and_its_ack_ignored() -> None:
    """Unrepaired, the handler looks for the record and raises."""
    cluster = Cluster(2)
    (ref,) = cluster.spawn()
    cluster.feed(0, ev.Received(N1, msg.Result(ref, 0, value_of(b"0"))))
    req = msg.Req(RequestId(5), ref, 0, N1, N2)
    assert cluster.feed(0, ev.Received(N1, req)) == [Send(N1, msg.Obsolete(RequestId(5)))]
    assert cluster.feed(0, ev.Received(N1, msg.Ack(ref, 0, N1))) == []


def test_r7_second_result_is_counted_and_dropped() -> None:
    """Unrepaired, filling a full future raises inside the handler and leaves a corpse that looks alive."""
    cluster = Cluster(3)
    (ref,) = cluster.spawn()
    first = msg.Result(ref, 0, value_of(b"0"))
    assert cluster.feed(0, ev.Received(N1, first)) == [Deliver(PROGRAM, 0, value_of(b"0"))]
    assert cluster.feed(0, ev.Received(N2, first)) == []
    assert cluster.core(0).counters["duplicates"] == 1


def test_r9_recovered_thread_is_a_spark_and_can_be_stolen() -> None:
    """In the paper threads are recovered on the supervisor, one after another."""
    cluster = Cluster(3)
    refs = [cluster.place(2) for _ in range(4)]
    declare_dead(cluster, 2)
    assert pooled(cluster, 0) == refs
    assert cluster.core(0).pool.stealable == 4
    cluster.hungry(1)
    cluster.settle()
    assert cluster.core(1).counters["stolen"] == 2


def test_r13_term_is_acknowledged_by_all_and_the_root_ends_last() -> None:
    cluster = Cluster(3)
    cluster.feed(0, ev.Terminate())
    assert cluster.hosts[ROOT].halt is None
    cluster.settle()
    assert all(host.halt == Halt() and host.stopped for host in cluster.hosts.values())
    assert set(cluster.core(0).reports) == {1, 2}


def test_r13_term_does_not_wait_for_a_node_that_dies_meanwhile() -> None:
    cluster = Cluster(3)
    cluster.feed(0, ev.Terminate())
    cluster.kill(2)
    cluster.settle()
    assert cluster.hosts[ROOT].halt is None
    cluster.suspect(2)
    assert cluster.hosts[ROOT].halt == Halt()


def test_r13_late_acknowledgement_of_a_node_that_was_given_up_changes_nothing() -> None:
    """It was only slow: the root has gone on without it, and still waits for the others."""
    cluster = Cluster(3)
    cluster.feed(0, ev.Terminate())
    cluster.suspect(2)
    assert cluster.feed(0, ev.Received(N2, msg.TermAck(()))) == []
    assert cluster.feed(0, ev.Received(N1, msg.TermAck(()))) == [Halt()]


def test_r14_late_nowork_does_not_end_a_newer_fish() -> None:
    """Unrepaired, any NOWORK clears the one flag, so the node has two fish out and takes them for one, or none."""
    cluster = Cluster(2)
    cluster.hungry(1)
    cluster.queues[N1, ROOT].clear()
    cluster.tick(CoreConfig().fish_deadline_s)
    assert cluster.core(1).thief.out == 1
    cluster.feed(1, ev.Received(ROOT, msg.NoWork(FishId(1), 0.0)))
    assert cluster.core(1).thief.out == 1
    assert cluster.core(1).counters["fish_sent"] == 2


def req_for_a_thief_that_only_the_supervisor_knows_dead() -> Cluster:
    cluster, ref = stolen_spark()
    cluster.hungry(2)
    cluster.deliver(2, 1)
    cluster.kill(2)
    cluster.suspect(2)
    cluster.deliver(1, 0)  # REQ, while DEADNODE is still on its way to the victim
    assert record_of(cluster, ref).location == OnNode(N1)
    cluster.deliver(0, 1)
    return cluster


def test_r15_req_for_a_dead_thief_is_denied() -> None:
    req_for_a_thief_that_only_the_supervisor_knows_dead().finish()


def test_r15_planted_the_task_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    """Algorithm 1, line 14, as printed: nobody will re-create what then goes to the dead."""
    right = Supervisor.on_req

    def printed(self: Supervisor, message: msg.Req, *, thief_is_dead: bool) -> msg.Auth | msg.Denied | msg.Obsolete:
        return right(self, message, thief_is_dead=False)

    monkeypatch.setattr(Supervisor, "on_req", printed)
    with pytest.raises(AssertionError):
        req_for_a_thief_that_only_the_supervisor_knows_dead()


def test_r16_last_spark_can_be_stolen_while_local_schedulers_are_busy() -> None:
    cluster = Cluster(2)
    origin = cluster.up(0)
    cluster.spawn()
    cluster.hungry(0, origin)
    cluster.spawn()
    cluster.hungry(1)
    cluster.settle()
    assert cluster.core(1).counters["stolen"] == 1


def test_r17_finished_copy_is_not_started() -> None:
    cluster = Cluster(2)
    origin = cluster.up(0)
    refs = cluster.spawn(2)
    cluster.feed(0, ev.Received(N1, msg.Result(refs[0], 0, value_of(b"0"))))
    (start,) = [effect for effect in cluster.hungry(0, origin) if isinstance(effect, Start)]
    assert [copy.ref for copy in start.sparks] == refs[1:]


def test_r17_scheduler_that_is_offered_only_finished_copies_stays_hungry() -> None:
    """Nothing is started, no empty hand-out is made, and the node looks elsewhere in the same step."""
    cluster = Cluster(2)
    origin = cluster.up(0)
    (ref,) = cluster.spawn()
    cluster.feed(0, ev.Received(N1, msg.Result(ref, 0, value_of(b"0"))))
    effects = cluster.hungry(0, origin)
    assert not any(isinstance(effect, Start) for effect in effects)
    assert any(isinstance(effect, Send) and isinstance(effect.message, msg.Fish) for effect in effects)
    cluster.spawn()
    assert len(cluster.hosts[ROOT].schedulers[origin].queue) == 1


def test_r17_obsolete_copy_is_not_given_away() -> None:
    cluster = Cluster(2)
    refs = cluster.spawn(2)
    cluster.feed(0, ev.Received(N1, msg.Result(refs[0], 0, value_of(b"0"))))
    cluster.hungry(1)
    cluster.settle()
    assert [copy[0] for copy in cluster.hosts[N1].schedulers[Origin(1)].queue] == refs[1:]


def test_r18_task_that_kills_every_scheduler_fails_alone_after_its_attempts() -> None:
    """Unrepaired, it is re-created for ever and takes the cluster down, node by node."""
    cluster = Cluster(1)
    cluster.up(0)
    poison, other = cluster.spawn(2)
    for origin in (1, 2, 3):
        cluster.hungry(0, origin)
        cluster.crash(0, origin, (poison, 0))
    outcome = cluster.delivered[poison]
    assert (outcome.verdict, outcome.data, outcome.crashes) == (Verdict.CRASHED, b"f", (CRASH,) * 3)
    cluster.finish()
    assert cluster.delivered[other].verdict is Verdict.VALUE


def test_r20_several_fish_are_out_and_several_sparks_guarded_at_a_time() -> None:
    cluster = Cluster(4)
    cluster.spawn(12)
    cluster.hungry(1)
    cluster.settle()
    assert cluster.core(1).counters["fish_sent"] == 3
    cluster.hungry(2)
    cluster.deliver(2, 1)
    assert len(list(cluster.core(1).victim.guarded())) >= 2
    cluster.finish()


def test_r21_late_ack_of_an_old_copy_does_not_move_the_record() -> None:
    cluster, _ = late_ack()
    cluster.finish()


def late_ack() -> tuple[Cluster, TaskRef]:
    """The ACK for replica 0 comes from node 1 after replica 1 was made, and has been stolen by node 3."""
    cluster = Cluster(4, config=CoreConfig(pieces_bytes_max=0))  # nothing is left of it, and nobody asks
    (ref,) = cluster.spawn()
    cluster.hungry(2)
    cluster.deliver(2, 0)
    while cluster.in_flight(0, 2):
        cluster.deliver(0, 2)
    cluster.give_back(2)
    cluster.deliver(2, 0)  # ACK: on 2
    cluster.hungry(1)
    cluster.deliver(1, 2)
    while cluster.in_flight(2, 0):
        cluster.deliver(2, 0)
    while cluster.in_flight(0, 2):
        cluster.deliver(0, 2)
    while cluster.in_flight(2, 1):
        cluster.deliver(2, 1)
    assert msg.Ack(ref, 0, N1) in cluster.in_flight(1, 0)
    cluster.kill(2)
    cluster.suspect(2)
    assert record_of(cluster, ref).replica == 1
    cluster.hungry(3)
    cluster.deliver(3, 0)
    while cluster.in_flight(0, 3):
        cluster.deliver(0, 3)
    cluster.deliver(3, 0)
    while msg.Ack(ref, 0, N1) in cluster.in_flight(1, 0):
        cluster.deliver(1, 0)
    assert record_of(cluster, ref).location in (OnNode(N3), InTransition(ROOT, N3))
    return cluster, ref


def test_r21_planted_the_record_points_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """Algorithm 1, lines 26 and 27, as printed: the next death loses the task."""

    def printed(self: Supervisor, ref: TaskRef, replica: int, node: NodeId) -> bool:
        record = self._records.get(ref)
        if record is not None:
            record.location = OnNode(node)
        return record is not None

    monkeypatch.setattr(Supervisor, "on_ack", printed)
    with pytest.raises(AssertionError):
        late_ack()


def test_r22_req_of_a_node_that_the_record_does_not_name_is_denied() -> None:
    """Unrepaired, it is granted, and the record then says that the spark moves between two nodes without it."""
    cluster, ref = stolen_spark()
    req = msg.Req(RequestId(9), ref, 0, N3, N2)
    assert cluster.feed(0, ev.Received(N3, req)) == [Send(N3, msg.Denied(RequestId(9)))]
    assert record_of(cluster, ref).location == OnNode(N1)


@pytest.mark.parametrize("order", [(1, 2), (2, 1)])
def test_r23_broken_link_between_two_live_nodes_costs_one_of_them_and_no_task(order: tuple[int, int]) -> None:
    """Unrepaired, each end takes the other for dead and nobody else hears: the SCHEDULE between them is lost, and the
    record says InTransition between two nodes that live."""
    cluster, ref = stolen_spark()
    cluster.hungry(2)
    cluster.deliver(2, 1)
    cluster.deliver(1, 0)
    cluster.deliver(0, 1)
    assert any(isinstance(message, msg.Schedule) for message in cluster.in_flight(1, 2))
    cluster.unruled += [N1, N2]
    cluster.cut(1, 2)
    for accuser in (1, 2):
        effects = cluster.feed(accuser, ev.Suspected(NodeId(3 - accuser)))
        assert effects == [Send(ROOT, msg.Suspect(NodeId(3 - accuser)))]
    assert record_of(cluster, ref).location == InTransition(N1, N2)
    for accuser in order:
        while cluster.in_flight(accuser, 0):
            cluster.deliver(accuser, 0)
    root = cluster.core(0).members
    assert root.is_dead(NodeId(order[1]))
    assert root.is_live(NodeId(order[0]))
    assert record_of(cluster, ref).replica == 1
    cluster.finish()


def test_r23_ruling_of_a_node_that_is_not_the_root_is_ignored() -> None:
    cluster = Cluster(3)
    assert cluster.feed(1, ev.Received(N2, msg.DeadNode(ROOT, 9))) == []
    assert cluster.core(1).members.is_live(ROOT)
    assert StopSchedulers() not in cluster.feed(1, ev.Received(N2, msg.Term()))


def test_code_travels_ahead_of_the_first_spark_only() -> None:
    cluster = Cluster(2)
    cluster.spawn(8)
    cluster.hungry(1)
    cluster.deliver(1, 0)
    kinds = [type(message) for message in cluster.in_flight(0, 1)]
    assert kinds == [msg.Code, msg.Schedule]
    assert cluster.in_flight(0, 1)[0] == msg.Code(CODE, b"def f")
