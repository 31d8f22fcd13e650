"""The node as a whole: the flow of tasks, joining and ending, and what it tells of itself."""

from __future__ import annotations

import pytest

from hdphrs.config import CoreConfig
from hdphrs.explore.cluster import Cluster, first
from hdphrs.explore.work import CODE, spark, task, value_of
from hdphrs.protocol import events as ev
from hdphrs.protocol import messages as msg
from hdphrs.protocol.effects import Deliver, Demand, Halt, Send, StopSchedulers
from hdphrs.protocol.node import Node
from hdphrs.protocol.tasks import PROGRAM, ROOT, FishId, NodeId, Origin, RequestId, TaskRef, Verdict
from tests.protocol.scenes import pooled

N1, N2 = NodeId(1), NodeId(2)


def test_one_node_alone_runs_everything_and_never_fishes() -> None:
    cluster = Cluster(1)
    cluster.up(0)
    cluster.spawn(20, depth=2)
    cluster.finish()
    assert cluster.core(0).counters["fish_sent"] == 0
    assert len(cluster.delivered) == 20 * 7


def test_work_spreads_over_all_nodes() -> None:
    cluster = Cluster(4)
    cluster.up(0)
    cluster.spawn(100)
    cluster.finish()
    assert all(host.core.counters["tasks_started"] >= 10 for host in cluster.hosts.values())


def test_work_that_appears_reaches_an_idle_node_within_a_message() -> None:
    """An idle thief's fish is parked at the root, so it need not ask again."""
    cluster = Cluster(2)
    cluster.hungry(1)
    cluster.settle()
    cluster.spawn()
    cluster.settle()
    assert cluster.core(1).counters["tasks_started"] == 1


def test_idle_cluster_exchanges_a_few_messages_a_second() -> None:
    cluster = Cluster(4)
    for node in (1, 2, 3):
        cluster.hungry(node)
    before = {node: host.core.counters["fish_sent"] for node, host in cluster.hosts.items()}
    while cluster.now < 2.0:
        cluster.settle()
        cluster._wait()
    for node, host in cluster.hosts.items():
        assert host.core.counters["fish_sent"] - before[node] <= 3 * 10 * 2 + 3


def test_demand_follows_hunger() -> None:
    cluster = Cluster(1)
    cluster.up(0)
    assert cluster.hungry(0) == [Demand(True)]
    cluster.spawn()
    assert not cluster.hosts[ROOT].demand
    cluster.run(0)
    assert cluster.hungry(0) == [Demand(True)]


def test_placed_task_runs_where_it_was_placed() -> None:
    cluster = Cluster(3)
    ref = cluster.place(2)
    cluster.hungry(1)
    cluster.settle()
    assert pooled(cluster, 2) == [ref]
    cluster.finish()
    assert cluster.core(2).counters["tasks_started"] == 1


def test_task_placed_on_a_node_that_never_was_fails_with_a_sentence() -> None:
    cluster = Cluster(1)
    (effect,) = cluster.feed(0, ev.Placed(PROGRAM, 9, task(), NodeId(17)))
    assert isinstance(effect, Deliver)
    assert effect.outcome.verdict is Verdict.LOST
    assert b"task f" in effect.outcome.data
    assert b"node 17" in effect.outcome.data


def test_unsupervised_task_is_lost_with_its_node_and_the_others_are_not() -> None:
    cluster = Cluster(3)
    lost = cluster.place(1, supervised=False)
    kept = cluster.place(2, supervised=False)
    cluster.kill(1)
    cluster.suspect(1)
    assert cluster.delivered[lost].verdict is Verdict.LOST
    cluster.finish()
    assert cluster.delivered[kept].verdict is Verdict.VALUE


def test_late_result_of_a_task_that_was_given_up_changes_nothing() -> None:
    cluster = Cluster(3)
    (ref, *_) = cluster.spawn(2, supervised=False)
    cluster.hungry(1)
    cluster.settle()
    cluster.kill(2)
    cluster.suspect(2)
    assert cluster.delivered[ref].verdict is Verdict.LOST
    cluster.run(1)
    cluster.settle()
    assert cluster.delivered[ref].verdict is Verdict.LOST
    assert cluster.core(0).counters["duplicates"] == 1


def test_result_for_a_dead_supervisor_is_dropped() -> None:
    cluster = Cluster(3)
    cluster.place(1, depth=1)
    cluster.settle()
    cluster.hungry(1)
    cluster.run(1)
    cluster.hungry(2)
    cluster.settle()
    cluster.kill(1)
    cluster.suspect(1)
    cluster.settle()
    cluster.run(2)
    assert not any(isinstance(message, msg.Result) for message in cluster.in_flight(2, 1))
    cluster.finish()


def test_copy_that_was_thought_lost_may_still_answer() -> None:
    cluster = Cluster(3)
    (ref,) = cluster.spawn()
    cluster.hungry(1)
    cluster.settle()
    cluster.suspect(1, by=2)  # falsely
    cluster.run(1)
    cluster.deliver(1, 0)  # ACK and RESULT overtake the accusation
    while cluster.in_flight(2, 0):
        cluster.deliver(2, 0)
    assert cluster.delivered[ref] == value_of(b"0")
    cluster.finish()


def test_term_stops_a_member_which_answers_with_its_counters_and_ends() -> None:
    cluster = Cluster(2)
    stop, answer, halt = cluster.feed(1, ev.Received(ROOT, msg.Term()))
    assert (stop, halt) == (StopSchedulers(), Halt())
    assert isinstance(answer, Send)
    assert answer.to == ROOT
    assert isinstance(answer.message, msg.TermAck)
    assert dict(answer.message.counters) == cluster.core(1).counters


def test_root_alone_ends_at_once() -> None:
    assert Cluster(1).feed(0, ev.Terminate()) == [StopSchedulers(), Halt()]


def test_nothing_is_started_after_the_end_is_near() -> None:
    cluster = Cluster(2)
    cluster.up(0)
    cluster.spawn(3)
    cluster.feed(0, ev.Terminate())
    assert cluster.hungry(0) == []
    assert cluster.feed(0, ev.Terminate()) == []


def test_newcomer_does_nothing_before_its_welcome() -> None:
    node = Node.newcomer(CoreConfig(), first)
    assert node.me is None
    assert node.live_nodes() == []
    assert node.next_deadline() is None


def test_newcomer_whose_root_falls_silent_before_the_welcome_has_come_is_to_try_again() -> None:
    node = Node.newcomer(CoreConfig(), first)
    assert node.handle(ev.Suspected(ROOT), 0.0) == [Halt("it has lost the root node", rejoin=True)]
    assert node.handle(ev.Tick(), 1.0) == []


@pytest.mark.parametrize("origin", [PROGRAM, Origin(1)])
def test_future_is_delivered_to_whoever_made_it(origin: Origin) -> None:
    cluster = Cluster(1)
    cluster.up(0)
    node = cluster.core(0)
    node.handle(ev.Exported(origin, ((5, task()),)), 0.0)
    node.handle(ev.Hungry(Origin(1), 1), 0.0)
    (spark,) = node.schedulers.held()
    effects = node.handle(ev.Finished(Origin(1), ((spark.ref, 0, value_of(b"p")),)), 0.0)
    assert effects == [Deliver(origin, 5, value_of(b"p"))]


@pytest.mark.parametrize(
    "message",
    [
        msg.Fish(FishId(1), NodeId(1), 1, 0.1),
        msg.Req(RequestId(1), TaskRef(ROOT, PROGRAM, 0), 0, NodeId(1), NodeId(2)),
        msg.Suspect(ROOT),
        msg.Suspect(NodeId(3)),
        msg.Term(),
    ],
    ids=lambda message: type(message).__name__,
)
def test_who_speaks_for_another_is_not_heard(message: msg.Message) -> None:
    """A SUSPECT of a peer's, believed, would end a node that hears its root well: a private verdict."""
    cluster = Cluster(4)
    assert cluster.feed(1, ev.Received(NodeId(2), message)) == []
    assert cluster.core(1).counters["stale"] == 1


def test_result_for_a_supervisor_that_is_not_known_yet_is_sent() -> None:
    """It has joined, and its JOINED is still under way here; the driver keeps the message until it can go."""
    cluster = Cluster(2, checked=False)
    cluster.feed(1, ev.Learned(CODE, b"def f"))
    cluster.feed(1, ev.Received(ROOT, msg.Schedule(FishId(9), (spark(7),))))
    cluster.hungry(1)
    cluster.run(1)
    assert [type(message) for message in cluster.in_flight(1, 7)] == [msg.Ack, msg.Result]


def test_thread_for_a_newcomer_that_has_been_heard_but_not_announced_is_placed_there() -> None:
    """Its FISH overtakes the root's JOINED; a task here may know its name from what it has said."""
    cluster = Cluster(2)
    newcomer = cluster.join()
    cluster.deliver(0, newcomer)
    cluster.up(1)
    cluster.feed(1, ev.Learned(CODE, b"def f"))
    cluster.feed(1, ev.Received(newcomer, msg.Fish(FishId(1), newcomer, 1, 0.1)))
    placed = cluster.feed(1, ev.Placed(Origin(1), 0, task(), newcomer))
    assert [effect.to for effect in placed if isinstance(effect, Send)][-1] == newcomer
    cluster.settle()
    assert cluster.core(1).live_nodes() == [N1, ROOT, newcomer]
