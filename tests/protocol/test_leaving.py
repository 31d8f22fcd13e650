"""A node that is told to leave hands over what it has, finishes what runs, and is gone (decision 10)."""

from __future__ import annotations

import pytest

from hdphrs.config import CoreConfig
from hdphrs.explore.cluster import Cluster
from hdphrs.explore.work import task
from hdphrs.protocol import events as ev
from hdphrs.protocol import messages as msg
from hdphrs.protocol.effects import Demand, Fence, Halt, Send, StopSchedulers
from hdphrs.protocol.node import Node
from hdphrs.protocol.supervisor import OnNode
from hdphrs.protocol.tasks import (
    ROOT,
    UNASKED,
    NodeId,
    Origin,
    Parting,
    TaskRef,
    Verdict,
)
from tests.protocol.scenes import orphan_to_be, pooled, record_of, stolen_spark

N1, N2, N3 = NodeId(1), NodeId(2), NodeId(3)
GRACE_S = 30.0


def leave(cluster: Cluster, node: int, grace_s: float = GRACE_S) -> None:
    cluster.feed(node, ev.Leave(grace_s))


def partings(cluster: Cluster) -> list[Parting]:
    """How the nodes that have sent BYE say that they part."""
    return [
        message.parting
        for (_, to), queue in cluster.queues.items()
        for message in queue
        if to == ROOT and isinstance(message, msg.Bye)
    ]


def let_go(cluster: Cluster, node: int) -> Parting:
    """Deliver all until the node says BYE, and that too; how it parted."""
    while cluster.hosts[NodeId(node)].runs:
        links = [link for link in cluster.links() if not isinstance(cluster.queues[link][0], msg.Bye)]
        assert links, "it does not go"
        cluster.deliver(*links[0])
    (parting,) = partings(cluster)
    cluster.settle()
    return parting


def test_idle_node_leaves_within_one_round() -> None:
    cluster = Cluster(3)
    cluster.hungry(1)
    cluster.hungry(2)
    cluster.settle()
    leave(cluster, 1)
    assert [message for message in cluster.in_flight(1, 2) if isinstance(message, msg.Leaving)] == [msg.Leaving(1)]
    assert let_go(cluster, 1) is Parting.LEFT_NOTHING
    assert [cluster.core(node).counters["leaves_seen"] for node in (0, 2)] == [1, 1]
    assert [cluster.core(node).counters["deaths_seen"] for node in (0, 2)] == [0, 0]
    assert cluster.core(0).live_nodes() == [ROOT, N2]


def test_sparks_of_a_node_that_leaves_go_to_the_others_and_nothing_is_run_again() -> None:
    cluster, ref = stolen_spark()
    leave(cluster, 1)
    cluster.settle()
    assert pooled(cluster, 1) == []
    assert record_of(cluster, ref).location in (OnNode(ROOT), OnNode(N2), OnNode(N3))
    cluster.run(1)
    cluster.hungry(1)
    assert let_go(cluster, 1) is Parting.LEFT_NOTHING
    cluster.finish()
    assert all(cluster.core(node).counters["replicas"] == 0 for node in (0, 2, 3))


def test_sparks_that_nobody_asked_for_are_spread_over_all_others() -> None:
    cluster = Cluster(4)
    cluster.place(1)
    cluster.settle()
    cluster.hungry(1)
    cluster.feed(1, ev.Exported(Origin(1), tuple((slot, task(b"%d" % slot)) for slot in range(9))))
    leave(cluster, 1)
    cluster.settle()
    assert [len(pooled(cluster, node)) for node in (0, 2, 3)] == [3, 3, 3]
    assert cluster.core(1).counters["fish_answered"] == 0


def test_hungry_thief_that_waits_is_served_first() -> None:
    cluster = Cluster(3, config=CoreConfig(fish_max=1), choose=lambda n: n - 1)
    cluster.place(1)
    cluster.settle()
    cluster.hungry(1)
    cluster.hungry(2)
    cluster.settle()
    assert cluster.core(1).victim.parked == 1
    leave(cluster, 1)
    effects = cluster.feed(1, ev.Exported(Origin(1), tuple((slot, task(b"%d" % slot)) for slot in range(2))))
    (first, second) = [
        effect for effect in effects if isinstance(effect, Send) and isinstance(effect.message, msg.Schedule)
    ]
    assert isinstance(first.message, msg.Schedule)
    assert isinstance(second.message, msg.Schedule)
    assert (first.to, first.message.fish != UNASKED) == (N2, True)
    assert second.message.fish == UNASKED


def test_guards_bound_what_is_given_at_a_time() -> None:
    cluster, _ = stolen_spark(CoreConfig(guards_max=1))
    cluster.spawn(4)
    cluster.hungry(1)
    cluster.give_back(1)
    cluster.settle()
    leave(cluster, 1)
    assert len([*cluster.core(1).victim.guarded()]) <= 1
    cluster.settle()
    assert pooled(cluster, 1) == []


def test_hungry_scheduler_gets_threads_only_and_everything_is_demanded() -> None:
    cluster = Cluster(3)
    leave(cluster, 1)
    assert cluster.hosts[N1].demand
    assert cluster.core(1).schedulers.busy, "a scheduler that does not wait may have sparks that nobody knows of"
    cluster.hungry(1)
    assert not cluster.core(1).schedulers.busy


def test_thread_that_arrives_before_the_news_is_run() -> None:
    cluster = Cluster(3)
    ref = cluster.place(1)
    leave(cluster, 1)
    cluster.hungry(1)
    cluster.deliver(0, 1)
    cluster.deliver(0, 1)
    assert [copy.ref for copy in cluster.core(1).schedulers.held()] == [ref]
    cluster.run(1)
    cluster.hungry(1)
    assert let_go(cluster, 1) is Parting.LEFT_NOTHING
    assert cluster.delivered[ref].verdict is Verdict.VALUE


def test_thread_for_a_node_that_leaves_becomes_a_spark() -> None:
    cluster = Cluster(3)
    leave(cluster, 1)
    cluster.deliver(1, 0)
    ref = cluster.place(1)
    assert pooled(cluster, 0) == [ref]
    cluster.feed(1, ev.Placed(Origin(1), 0, task(b"own", code=b""), N1))
    assert pooled(cluster, 1) == []
    cluster.finish()


def test_nobody_fishes_in_a_node_that_leaves_nor_does_it_fish() -> None:
    cluster = Cluster(3)
    leave(cluster, 1)
    cluster.settle()
    cluster.hungry(1)
    cluster.hungry(2)
    assert not any(isinstance(message, msg.Fish) for message in cluster.in_flight(2, 1) + cluster.in_flight(1, 2))
    fish = msg.Fish(UNASKED, N1, 1, 0.1)
    assert cluster.feed(2, ev.Received(N1, fish)) == []


def test_request_for_a_thief_that_leaves_is_denied() -> None:
    cluster, ref = orphan_to_be()
    cluster.hungry(3)
    leave(cluster, 3)
    cluster.deliver(3, 2)
    assert [spark.ref for spark in cluster.core(2).victim.guarded()] == [ref]
    cluster.deliver(3, 1)
    cluster.deliver(3, 1)
    cluster.deliver(2, 1)
    assert isinstance(cluster.in_flight(1, 2)[-1], msg.Denied)
    cluster.settle()
    assert ref in pooled(cluster, 2)


def test_authority_for_a_thief_that_leaves_is_given_back() -> None:
    cluster, ref = orphan_to_be()
    cluster.hungry(3)
    cluster.deliver(3, 2)
    cluster.deliver(2, 1)
    leave(cluster, 3)
    cluster.deliver(3, 2)
    cluster.settle()
    assert ref in pooled(cluster, 2)
    assert record_of(cluster, ref).location == OnNode(N2)


def test_node_that_waits_for_a_child_goes_when_that_has_come() -> None:
    cluster, _ = orphan_to_be()
    leave(cluster, 1)
    cluster.settle()
    assert cluster.hosts[N1].runs
    cluster.finish()
    assert not cluster.hosts[N1].runs
    assert cluster.core(0).members.is_dead(N1)
    assert [cluster.core(node).counters["replicas"] for node in (0, 2, 3)] == [0, 0, 0]


def test_what_still_runs_when_time_is_over_is_run_again_and_nobody_is_blamed() -> None:
    cluster, _ = stolen_spark()
    leave(cluster, 1, 2.0)
    cluster.settle()
    cluster.tick(1.9)
    assert cluster.hosts[N1].runs
    cluster.tick(0.2)
    assert partings(cluster) == [Parting.LEFT]
    halt = cluster.hosts[N1].halt
    assert halt is not None
    assert halt.reason is None
    cluster.settle()
    assert cluster.core(0).counters["replicas"] == 1
    assert all(not copy.crashes for copy in cluster.core(0).pool)
    cluster.finish()


def test_leave_without_time_is_one_at_once() -> None:
    cluster = Cluster(2)
    effects = cluster.feed(1, ev.Leave(0.0))
    assert [type(effect) for effect in effects[-3:]] == [StopSchedulers, Send, Halt]
    assert partings(cluster) == [Parting.LEFT]


def test_second_order_to_leave_changes_nothing() -> None:
    cluster = Cluster(2)
    cluster.place(1)
    cluster.settle()
    leave(cluster, 1, 5.0)
    leave(cluster, 1, 0.0)
    assert cluster.hosts[N1].runs
    assert cluster.core(1).next_deadline() == 5.0


def test_root_is_never_told_to_leave() -> None:
    with pytest.raises(AssertionError, match="the root cannot leave"):
        Cluster(2).feed(0, ev.Leave(GRACE_S))
    assert Cluster(2).feed(1, ev.Received(ROOT, msg.Leaving(1))) == []


def test_newcomer_hears_who_is_leaving_and_is_waited_for() -> None:
    cluster = Cluster(3)
    cluster.place(1)
    cluster.settle()
    leave(cluster, 1)
    cluster.settle()
    newcomer = cluster.join()
    cluster.settle()
    assert cluster.core(newcomer).live_nodes() == [newcomer, ROOT, N2]
    assert cluster.core(newcomer).members.is_going(N1)


def test_newcomer_that_joins_unheard_of_is_told_when_it_is_heard_of() -> None:
    cluster = Cluster(2)
    cluster.hungry(1)
    newcomer = cluster.join()
    leave(cluster, 1)
    cluster.deliver(0, 1)
    assert cluster.in_flight(1, newcomer) == [msg.Leaving(1)]
    assert let_go(cluster, 1) is Parting.LEFT_NOTHING


def test_death_of_one_who_has_not_noted_it_is_as_good() -> None:
    cluster = Cluster(3)
    cluster.hungry(1)
    leave(cluster, 1)
    cluster.kill(2)
    cluster.suspect(2)
    assert let_go(cluster, 1) is Parting.LEFT_NOTHING


def test_roster_changes_with_every_node_that_comes_goes_or_is_about_to() -> None:
    assert Node.newcomer(CoreConfig(), lambda n: 0).roster == (0, 0)
    cluster = Cluster(3)
    rosters = [cluster.core(0).roster]
    for change in (lambda: leave(cluster, 1), lambda: cluster.tick(GRACE_S), lambda: cluster.join()):
        change()
        cluster.settle()
        rosters.append(cluster.core(0).roster)
    assert len({*rosters}) == 4


def test_late_note_is_counted() -> None:
    cluster = Cluster(2)
    cluster.feed(0, ev.Received(N1, msg.Noted(1)))
    assert cluster.core(0).counters["stale"] == 1


def unsupervised_on_2() -> tuple[Cluster, TaskRef]:
    """An unsupervised task of the program has been stolen by node 2."""
    cluster = Cluster(3)
    (ref,) = cluster.spawn(supervised=False)
    cluster.hungry(2)
    cluster.settle()
    return cluster, ref


def test_unsupervised_task_elsewhere_is_not_lost_with_a_node_that_leaves_nothing() -> None:
    cluster, ref = unsupervised_on_2()
    cluster.hungry(1)
    leave(cluster, 1)
    assert let_go(cluster, 1) is Parting.LEFT_NOTHING
    assert ref not in cluster.delivered
    cluster.run(2)
    cluster.settle()
    assert cluster.delivered[ref].verdict is Verdict.VALUE


def test_unsupervised_task_may_be_lost_with_a_node_that_leaves_too_late() -> None:
    cluster, ref = unsupervised_on_2()
    leave(cluster, 1, 0.0)
    cluster.settle()
    assert cluster.delivered[ref].verdict is Verdict.LOST


def test_bye_is_as_good_as_the_acknowledgement_of_the_end() -> None:
    cluster = Cluster(2)
    leave(cluster, 1, 0.0)
    assert cluster.feed(0, ev.Terminate())[-1:] == [StopSchedulers()]
    cluster.deliver(1, 0)
    cluster.deliver(1, 0)
    assert cluster.hosts[ROOT].halt == Halt()
    assert cluster.core(0).reports[N1]["leaves_seen"] == 0


def test_root_tells_how_a_node_has_parted() -> None:
    root = Node.root(CoreConfig(), lambda n: 0)
    for ticket in (1, 2):
        root.handle(ev.Arrived(ticket, "host", 1, ("host", 1), ticket), 0.0)
    effects = root.handle(ev.Received(N1, msg.Bye(Parting.LEFT, ())), 0.0)
    assert effects == [Send(N2, msg.DeadNode(N1, 3, Parting.LEFT)), Fence(N1, 0, Parting.LEFT)]


def test_scheduler_that_dies_while_its_node_leaves_costs_no_more_than_else() -> None:
    cluster, _ = stolen_spark()
    leave(cluster, 1)
    (running,) = cluster.hosts[N1].schedulers[Origin(1)].queue
    cluster.crash(1, 1, running)
    cluster.settle()
    assert pooled(cluster, 1) == []
    cluster.hungry(1, 2)
    assert let_go(cluster, 1) is Parting.LEFT_NOTHING
    cluster.finish()


def test_demand_lasts_until_the_end() -> None:
    cluster = Cluster(2)
    cluster.place(1)
    cluster.settle()
    cluster.hungry(1)
    assert Demand(True) in cluster.feed(1, ev.Leave(GRACE_S))
    effects = cluster.feed(1, ev.Exported(Origin(1), ((0, task(b"0")),)))
    assert Demand(True) in effects
