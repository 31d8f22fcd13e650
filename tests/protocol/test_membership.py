"""Membership: joining, and the root's rulings."""

from __future__ import annotations

import pytest

from hdphrs.config import CoreConfig
from hdphrs.explore.cluster import Cluster, first
from hdphrs.protocol import events as ev
from hdphrs.protocol import messages as msg
from hdphrs.protocol.effects import Admit, Connect, Fence, Halt, Send
from hdphrs.protocol.node import Node
from hdphrs.protocol.tasks import ROOT, FishId, NodeId

N1, N2, N3 = NodeId(1), NodeId(2), NodeId(3)
ARRIVED = ev.Arrived(5, "host", 1, ("host", 1), 1)


def test_newcomer_is_admitted_welcomed_and_announced() -> None:
    cluster = Cluster(2)
    admit, welcome, joined = cluster.feed(0, ARRIVED)
    assert isinstance(admit, Admit)
    assert (admit.ticket, admit.member.node) == (5, 2)
    assert isinstance(welcome, Send)
    assert isinstance(welcome.message, msg.Welcome)
    assert [member.node for member in welcome.message.members] == [1]
    assert joined == Send(N1, msg.Joined(welcome.message.epoch, admit.member))


def test_newcomer_connects_to_those_who_are_there_and_they_to_it() -> None:
    cluster = Cluster(2)
    cluster.join()
    assert any(isinstance(e, Connect) for e in cluster.feed(1, ev.Received(ROOT, cluster.in_flight(0, 1)[-1])))
    cluster.deliver(0, 2)
    assert cluster.core(2).live_nodes() == [2, 0, 1]


def test_first_newcomer_learns_by_the_epoch_that_it_is_a_member() -> None:
    """There is nobody but the root, which it is connected with, and yet its driver must hear that it may begin."""
    cluster = Cluster(1)
    cluster.join()
    (welcome,) = cluster.in_flight(0, 1)
    node = Node.newcomer(CoreConfig(), first)
    assert node.epoch == 0
    assert node.handle(ev.Received(ROOT, welcome), 0.0) == []
    assert node.epoch == 1
    assert node.live_nodes() == [1, ROOT]


def test_id_of_a_dead_node_is_not_used_again_and_newcomers_hear_of_it() -> None:
    cluster = Cluster(3)
    cluster.kill(2)
    cluster.suspect(2)
    assert cluster.join() == 3
    cluster.settle()
    assert cluster.core(3).live_nodes() == [3, 0, 1]
    assert cluster.core(3).members.is_dead(N2)


def test_suspicion_of_a_member_is_told_to_the_root_and_changes_nothing() -> None:
    cluster = Cluster(3)
    assert cluster.feed(1, ev.Suspected(N2)) == [Send(ROOT, msg.Suspect(N2))]
    assert cluster.core(1).members.is_live(N2)


def test_root_declares_whom_a_member_suspects_and_all_hear_the_same_order() -> None:
    cluster = Cluster(4)
    cluster.kill(2)
    cluster.kill(3)
    cluster.suspect(3, by=1)
    cluster.suspect(2, by=1)
    cluster.settle()
    assert [cluster.core(node).members.live() for node in (0, 1)] == [[0, 1], [1, 0]]
    assert cluster.core(0).members.epoch == cluster.core(1).members.epoch == 5


def test_second_suspicion_of_the_dead_is_ignored() -> None:
    cluster = Cluster(3)
    cluster.kill(2)
    assert Fence(N2, 0) in cluster.feed(0, ev.Suspected(N2))
    assert cluster.feed(0, ev.Suspected(N2)) == []
    assert cluster.feed(0, ev.Received(N1, msg.Suspect(N2))) == []


def test_when_two_accuse_each_other_the_first_to_arrive_is_believed() -> None:
    cluster = Cluster(3)
    cluster.feed(0, ev.Received(N1, msg.Suspect(N2)))
    assert cluster.feed(0, ev.Received(N2, msg.Suspect(N1))) == []
    assert cluster.core(0).live_nodes() == [0, 1]


def test_accusation_of_the_root_moves_nobody() -> None:
    cluster = Cluster(2)
    assert cluster.feed(0, ev.Received(N1, msg.Suspect(ROOT))) == []


def test_node_that_loses_the_root_drops_everything_and_tries_to_join_again() -> None:
    cluster = Cluster(2)
    assert cluster.feed(1, ev.Suspected(ROOT)) == [Halt("it has lost the root node", rejoin=True)]
    assert cluster.core(1).handle(ev.Tick(), 1.0) == []
    assert cluster.core(1).next_deadline() is None


def _halt_of_a_leaver(event: ev.Event) -> Halt:
    """What comes of the event at a node that leaves, and has something left to do."""
    cluster = Cluster(3)
    cluster.place(1)
    cluster.hungry(1)
    cluster.settle()
    cluster.feed(1, ev.Leave(10.0))
    (halt,) = cluster.feed(1, event)
    assert isinstance(halt, Halt)
    return halt


def test_node_that_loses_the_root_while_it_leaves_does_not_come_back() -> None:
    assert _halt_of_a_leaver(ev.Suspected(ROOT)) == Halt("it has lost the root node")


def test_node_that_hears_of_its_own_death_while_it_leaves_does_not_come_back() -> None:
    halt = _halt_of_a_leaver(ev.Received(ROOT, msg.DeadNode(N1, 9)))
    assert halt.reason
    assert not halt.rejoin


def test_work_goes_on_without_a_node_that_loses_the_root_and_with_it_when_it_is_back() -> None:
    cluster = Cluster(3)
    cluster.place(1)
    cluster.spawn(4)
    cluster.hungry(1)
    cluster.settle()
    held = cluster.core(1).schedulers.held()
    assert held
    cluster.feed(1, ev.Suspected(ROOT))
    cluster.kill(1)
    cluster.suspect(1)
    cluster.settle()
    again = cluster.join()
    cluster.settle()
    assert again == 3
    assert cluster.core(0).live_nodes() == [0, 2, 3]
    assert not cluster.core(3).schedulers.held()
    cluster.finish()


def test_node_that_hears_of_its_own_death_drops_everything_and_joins_again() -> None:
    cluster = Cluster(2)
    (halt,) = cluster.feed(1, ev.Received(ROOT, msg.DeadNode(N1, 9)))
    assert isinstance(halt, Halt)
    assert halt.rejoin
    assert cluster.core(1).handle(ev.Tick(), 1.0) == []
    assert cluster.core(1).next_deadline() is None


@pytest.mark.parametrize("message", [msg.Suspect(N2), msg.Fish(FishId(1), N1, 1, 0.1), msg.NoWork(FishId(1), 0.0)])
def test_nothing_of_a_dead_node_is_listened_to(message: msg.Message) -> None:
    cluster = Cluster(3)
    cluster.suspect(1)
    assert cluster.feed(0, ev.Received(N1, message)) == []
    assert cluster.core(0).counters["stale"] == 1


def test_nobody_is_admitted_after_the_end() -> None:
    cluster = Cluster(2)
    cluster.feed(0, ev.Terminate())
    assert cluster.feed(0, ARRIVED) == []
