"""Following random plays: the right core never violates an invariant, and each kind of violation is seen."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from hdphrs.audit.follow import Follower
from hdphrs.audit.violation import Violation
from hdphrs.explore.cluster import Cluster
from hdphrs.explore.host import Host
from hdphrs.explore.work import value_of
from hdphrs.protocol import effects as fx
from hdphrs.protocol import events as ev
from hdphrs.protocol import messages as msg
from hdphrs.protocol.node import Node
from hdphrs.protocol.supervisor import OnNode
from hdphrs.protocol.tasks import PROGRAM, ROOT, FishId, NodeId, Origin, Spark
from tests.protocol.play import Faults, Play, Scene

A, B, C = NodeId(0), NodeId(1), NodeId(2)


class Followed:
    """A `Follower` that looks over the shoulder of every `Cluster`."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.cores: dict[NodeId, Node] = {}
        self.follower = Follower(self.cores)
        take, kill, cut = Host.take, Cluster.kill, Cluster.cut

        def followed_take(host: Host, event: ev.Event, now: float = 0.0) -> list[fx.Effect]:
            effects = take(host, event, now)
            node = host.core.me
            assert node is not None
            if node == ROOT and isinstance(event, ev.Learned):  # the first event of a cluster
                self.cores = {}
                self.follower = Follower(self.cores)
            self.cores[node] = host.core
            self.follower.step(node, event, effects)
            if not host.runs:
                self.gone(node)
            return effects

        def followed_kill(cluster: Cluster, node: int) -> None:
            kill(cluster, node)
            self.gone(NodeId(node))

        def followed_cut(cluster: Cluster, one: int, other: int) -> None:
            for source, to in ((one, other), (other, one)):
                for message in cluster.in_flight(source, to):
                    self.follower.lost(NodeId(source), NodeId(to), message)
            cut(cluster, one, other)

        monkeypatch.setattr(Host, "take", followed_take)
        monkeypatch.setattr(Cluster, "kill", followed_kill)
        monkeypatch.setattr(Cluster, "cut", followed_cut)

    def gone(self, node: NodeId) -> None:
        """The process of a node is no more."""
        self.cores.pop(node, None)
        self.follower.died(node)


@pytest.mark.parametrize("seed", range(60))
def test_random_plays_violate_nothing(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    Followed(monkeypatch)
    draw = random.Random(seed)
    faults = Faults(deaths=2, false_suspicions=1, cuts=1, crashes=1, blameless=1, joins=1)
    scene = Scene(nodes=draw.choice([3, 4]), schedulers=draw.choice([1, 2]), wander=draw.random() < 0.3)
    Play(faults, scene).run(draw.randrange(1000) for _ in range(300))


def violation_of(follower: Follower, node: NodeId, event: ev.Event, *effects: fx.Effect) -> int:
    """The number of the invariant that this step violates."""
    with pytest.raises(Violation) as caught:
        follower.step(node, event, effects)
    return caught.value.invariant


def a_spark_on_node_0(monkeypatch: pytest.MonkeyPatch) -> tuple[Cluster, Follower, Spark]:
    """Three nodes; the root has one spark."""
    followed = Followed(monkeypatch)
    cluster = Cluster(3)
    cluster.spawn(1)
    (spark,) = cluster.core(0).pool
    return cluster, followed.follower, spark


TICK = ev.Tick()


def test_spark_that_arrives_without_having_left_is_in_two_places(monkeypatch: pytest.MonkeyPatch) -> None:
    _, follower, spark = a_spark_on_node_0(monkeypatch)
    arrival = ev.Received(A, msg.Schedule(FishId(1), (spark,)))
    assert violation_of(follower, B, arrival) == 4


def test_spark_that_is_sent_twice_is_in_two_places(monkeypatch: pytest.MonkeyPatch) -> None:
    _, follower, spark = a_spark_on_node_0(monkeypatch)
    sends = [fx.Send(node, msg.Schedule(FishId(1), (spark,))) for node in (B, C)]
    assert violation_of(follower, A, TICK, *sends) == 4


def test_spark_that_leaves_while_a_scheduler_has_it_is_in_two_places(monkeypatch: pytest.MonkeyPatch) -> None:
    _, follower, spark = a_spark_on_node_0(monkeypatch)
    send = fx.Send(B, msg.Schedule(FishId(1), (spark,)))
    assert violation_of(follower, A, TICK, fx.Start(Origin(1), (spark,)), send) == 4


def test_spark_with_two_schedulers_is_in_two_places(monkeypatch: pytest.MonkeyPatch) -> None:
    _, follower, spark = a_spark_on_node_0(monkeypatch)
    starts = [fx.Start(Origin(scheduler), (spark,)) for scheduler in (1, 2)]
    assert violation_of(follower, A, TICK, *starts) == 4


def test_thread_that_migrates_is_a_violation(monkeypatch: pytest.MonkeyPatch) -> None:
    _, follower, spark = a_spark_on_node_0(monkeypatch)
    thread = replace(spark, placed=True)
    assert violation_of(follower, A, TICK, fx.Send(B, msg.Schedule(FishId(1), (thread,)))) == 4


@pytest.mark.parametrize("how", ["finished", "given back"])
def test_answer_of_a_scheduler_that_had_nothing_is_a_violation(monkeypatch: pytest.MonkeyPatch, how: str) -> None:
    _, follower, spark = a_spark_on_node_0(monkeypatch)
    copy = spark.ref, spark.replica
    event = (
        ev.Finished(Origin(1), ((*copy, value_of(b"0")),)) if how == "finished" else ev.GivenBack(Origin(1), (copy,))
    )
    assert violation_of(follower, A, event) == 4


def test_spark_that_its_supervisor_tracks_elsewhere_is_a_violation(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster, follower, spark = a_spark_on_node_0(monkeypatch)
    record = cluster.core(0).supervisor.record(spark.ref)
    assert record is not None
    record.location = OnNode(C)
    assert violation_of(follower, A, TICK, fx.Send(B, msg.Schedule(FishId(1), (spark,)))) == 1


def test_replica_number_that_is_not_raised_is_a_violation(monkeypatch: pytest.MonkeyPatch) -> None:
    _, follower, _ = a_spark_on_node_0(monkeypatch)
    assert violation_of(follower, A, TICK, fx.Fence(B, recreated=1)) == 2


def test_replica_number_that_jumps_is_a_violation(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster, follower, spark = a_spark_on_node_0(monkeypatch)
    record = cluster.core(0).supervisor.record(spark.ref)
    assert record is not None
    record.replica = 2
    assert violation_of(follower, A, TICK, fx.Fence(B, recreated=1)) == 2


def test_future_that_is_filled_twice_is_a_violation(monkeypatch: pytest.MonkeyPatch) -> None:
    _, follower, spark = a_spark_on_node_0(monkeypatch)
    fill = fx.Deliver(PROGRAM, spark.ref.slot, value_of(b"0"))
    assert violation_of(follower, A, TICK, fill, fill) == 3


def test_spark_that_had_reached_the_door_of_a_stopped_node_is_taken_in_when_it_runs_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cluster, follower, _ = a_spark_on_node_0(monkeypatch)
    cluster.place(1)
    *_, push = cluster.in_flight(0, 1)
    cluster.suspect(1)
    assert cluster.core(0).members.is_dead(B)
    follower.step(B, ev.Received(A, push), [])


def test_spark_that_leaves_a_fenced_node_arrives_nowhere(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster, follower, _ = a_spark_on_node_0(monkeypatch)
    cluster.place(1)
    cluster.settle()
    cluster.hungry(2)
    cluster.suspect(1)
    (spark,) = cluster.core(1).pool
    assert violation_of(follower, A, ev.Received(B, msg.Schedule(FishId(1), (spark,)))) == 4
