"""Each row of Table 1: who sends the message to whom, when, and with what; and what we have added.

T is the thief, V the victim, S the supervisor.  In the scenarios they are C, B and A.  A message whose sender and
receiver are the same node is not sent at all.
"""

from __future__ import annotations

import pytest

from hdphrs.explore.cluster import Cluster
from hdphrs.explore.work import value_of
from hdphrs.protocol import effects as fx
from hdphrs.protocol import events as ev
from hdphrs.protocol import messages as msg
from hdphrs.protocol.effects import Send
from hdphrs.protocol.tasks import ROOT, FishId, NodeId, RequestId, TaskRef
from tests.paper.scenes import A, B, C, D, copies, deliver_until, obsolete_copy, spark_on_b, steal
from tests.protocol.play import Faults, Play, Scene


def test_fish_thief_t_to_v() -> None:
    """Sent when a scheduler is hungry and the node has nothing.  Ours adds the fish's id (R5, R14) and how many sparks
    are wanted (R20)."""
    cluster, _ = spark_on_b()
    (fish,) = (effect for effect in cluster.hungry(C) if isinstance(effect, Send))
    assert fish == Send(B, msg.Fish(FishId(1), C, cluster.config.want_max, 0.0))


def test_schedule_spark_victim_v_to_t() -> None:
    """Sent when the supervisor has agreed.  Ours names the fish instead of the victim, which is who sends it."""
    cluster, ref = spark_on_b()
    steal(cluster, msg.Auth)
    (schedule,) = (message for message in cluster.in_flight(B, C) if isinstance(message, msg.Schedule))
    assert schedule.fish == FishId(1)
    assert [(spark.ref, spark.replica) for spark in schedule.sparks] == [(ref, 0)]


def test_nowork_v_to_t_when_there_is_no_spark() -> None:
    """Ours names the fish.  The victim answers at once only if too many wait already; else it keeps the fish, for work
    that may come within `park_s`."""
    cluster = Cluster(2)
    fish = msg.Fish(FishId(5), B, 1, 0.1)
    assert not any(isinstance(effect, Send) for effect in cluster.feed(A, ev.Received(B, fish)))
    cluster.now += cluster.config.park_s
    assert Send(B, msg.NoWork(FishId(5), 0.1)) in cluster.feed(A, ev.Tick())


@pytest.mark.parametrize("verdict", [msg.Denied, msg.Obsolete])
def test_nowork_v_to_t_when_the_supervisor_does_not_agree(verdict: type[msg.Denied | msg.Obsolete]) -> None:
    cluster, ref = spark_on_b()
    steal(cluster, msg.Fish)
    if verdict is msg.Obsolete:
        cluster.feed(A, ev.Received(D, msg.Result(ref, 0, value_of(b"0"))))
    assert cluster.feed(B, ev.Received(A, verdict(RequestId(1))))[0] == Send(C, msg.NoWork(FishId(1), 0.0))


def test_req_ref_seq_victim_thief_v_to_s() -> None:
    """Sent when a fish finds a spark.  Ours adds the request's id (R3)."""
    cluster, ref = spark_on_b()
    steal(cluster, msg.Fish)
    assert cluster.in_flight(B, A) == [msg.Req(RequestId(1), ref, 0, B, C)]


def test_denied_thief_s_to_v() -> None:
    """The answer to a REQ for a spark that may not move now.  Ours names the request, and by it the thief (R3)."""
    cluster, ref = spark_on_b()
    steal(cluster, msg.Req)
    second = msg.Req(RequestId(9), ref, 0, B, D)
    assert cluster.feed(A, ev.Received(B, second)) == [Send(B, msg.Denied(RequestId(9)))]


def test_auth_thief_s_to_v() -> None:
    """The answer to a REQ for a spark that may move; names the request."""
    cluster, _ = spark_on_b()
    steal(cluster, msg.Req)
    assert cluster.in_flight(A, B) == [msg.Auth(RequestId(1))]


def test_obsolete_thief_s_to_v() -> None:
    """The answer to a REQ for an old copy; names the request.  The victim discards the copy and sends NOWORK."""
    cluster, ref = obsolete_copy()
    deliver_until(cluster, A, C, msg.DeadNode)
    cluster.give_back(C)
    cluster.hungry(D)
    deliver_until(cluster, D, C, msg.Fish)
    deliver_until(cluster, C, A, msg.Req)
    assert cluster.in_flight(A, C) == [msg.Obsolete(RequestId(1))]
    deliver_until(cluster, A, C, msg.Obsolete)
    assert cluster.in_flight(C, D) == [msg.NoWork(FishId(1), 0.0)]
    assert copies(cluster, ref) == [(A, 1)]


def test_ack_ref_seq_thief_t_to_s() -> None:
    """Sent when a spark has arrived.  Algorithm 1 leaves the number out, line 26 needs it (R21)."""
    cluster, ref = spark_on_b()
    steal(cluster, msg.Schedule)
    assert cluster.in_flight(C, A) == [msg.Ack(ref, 0, C)]


def test_ack_in_the_victims_own_name_is_ours() -> None:
    """V to S: the move was authorised, but the thief is dead, and the spark has stayed.  With it the record is exact
    again, and if it arrives before the notice, the death of the thief costs no second copy."""
    cluster, ref = spark_on_b()
    steal(cluster, msg.Req)
    cluster.kill(C)
    cluster.feed(B, ev.Received(A, msg.DeadNode(C, 9)))
    deliver_until(cluster, A, B, msg.Auth)
    assert cluster.in_flight(B, A)[-1] == msg.Ack(ref, 0, B)


def test_deadnode_node_is_what_the_root_tells_all() -> None:
    """In the paper each node tells itself, when its own transport has failed; then two nodes may disagree for ever
    (R23).  Ours tells the root, and acts when the root has declared."""
    cluster = Cluster(4)
    assert cluster.feed(B, ev.Suspected(C)) == [Send(ROOT, msg.Suspect(C))]
    effects = cluster.feed(A, ev.Received(B, msg.Suspect(C)))
    told = [effect for effect in effects if isinstance(effect, Send)]
    assert [effect.to for effect in told] == [B, D]
    assert all(effect.message == msg.DeadNode(C, cluster.core(A).epoch) for effect in told)


def test_result_is_the_papers_rput_n_to_s() -> None:
    """Not in Table 1: in the paper it is a thread that writes to an IVar elsewhere."""
    cluster, ref = spark_on_b()
    steal(cluster, msg.Ack)
    cluster.run(C)
    assert cluster.in_flight(C, A) == [msg.Result(ref, 0, value_of(b"0"))]


class Wiretap:
    """Holds every message that a cluster sends against the roles of Table 1."""

    def __init__(self) -> None:
        self.fish: dict[tuple[NodeId, NodeId, FishId], int] = {}
        """Thief, victim and id; how many NOWORK it was answered with."""
        self.requests: dict[tuple[NodeId, NodeId, RequestId], msg.Req] = {}
        """Victim, supervisor and id, as long as they are open."""
        self.authorised: dict[tuple[TaskRef, int, NodeId, NodeId], None] = {}
        self.heard: dict[str, int] = {}

    def on(self, source: NodeId, to: NodeId, message: msg.Message) -> None:
        """Node `source` sends this."""
        self.heard[type(message).__name__] = self.heard.get(type(message).__name__, 0) + 1
        assert source != to
        match message:
            case msg.Fish(fish, thief, want):
                assert thief == source
                assert want > 0
                assert (source, to, fish) not in self.fish
                self.fish[source, to, fish] = 0
            case msg.NoWork(fish, 0.0):
                self.fish[to, source, fish] += 1
                assert self.fish[to, source, fish] == 1
            case msg.Schedule(fish, sparks):
                assert (to, source, fish) in self.fish
                for spark in sparks:
                    if spark.ref.node != source:
                        del self.authorised[spark.ref, spark.replica, source, to]
            case msg.Req(request, ref, _, victim, thief):
                assert (victim, ref.node) == (source, to)
                assert thief != source
                self.requests[source, to, request] = message
            case msg.Auth(request):
                asked = self.requests.pop((to, source, request))
                self.authorised[asked.ref, asked.replica, asked.victim, asked.thief] = None
            case msg.Denied(request) | msg.Obsolete(request):
                del self.requests[to, source, request]
            case msg.Ack(ref, _, thief):
                assert (thief, ref.node) == (source, to)
            case msg.DeadNode(node, _):
                assert source == ROOT
                assert node != to
            case msg.Result(ref, _, _):
                assert ref.node == to
            case msg.Push(spark):
                assert spark.ref.node == source
            case msg.Suspect(_):
                assert to == ROOT


def test_in_random_plays_every_message_goes_from_its_role_to_its_role(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each answer answers what was asked, once; each spark that leaves a victim was authorised for that thief."""
    right = Cluster._carried
    taps: list[Wiretap] = []

    def tapped(self: Cluster, node: int, effects: list[fx.Effect]) -> list[fx.Effect]:
        for effect in effects:
            if isinstance(effect, Send):
                taps[-1].on(NodeId(node), effect.to, effect.message)
        return right(self, node, effects)

    monkeypatch.setattr(Cluster, "_carried", tapped)
    for seed in range(60):
        taps.append(Wiretap())
        Play(Faults(2, 1, 1, 1, 1, 1), Scene(nodes=4, wander=seed % 2 == 0, calm=(40, 0)[seed % 2])).run(
            (seed * 7919 + step * 104_729) % 9973 for step in range(250)
        )
    heard = [name for tap in taps for name in tap.heard]
    rows = (msg.Fish, msg.Schedule, msg.NoWork, msg.Req, msg.Denied, msg.Auth, msg.Obsolete, msg.Ack, msg.DeadNode)
    assert [row.__name__ for row in rows if row.__name__ not in heard] == []
