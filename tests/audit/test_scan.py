"""A look at a whole cluster finds what is lost, doubled or tracked in the wrong place."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

import pytest

from hdphrs.audit.violation import Violation
from hdphrs.explore.cluster import Cluster
from hdphrs.protocol import messages as msg
from hdphrs.protocol.supervisor import InTransition, OnNode
from hdphrs.protocol.tasks import ROOT, FishId, NodeId
from tests.protocol.scenes import orphan_to_be, stolen_spark

N1, N2 = NodeId(1), NodeId(2)


def lose(cluster: Cluster) -> None:
    cluster.core(1).pool.take()


def copy_here(cluster: Cluster) -> None:
    cluster.core(2).pool.add(next(iter(cluster.core(1).pool)))


def copy_under_way(cluster: Cluster) -> None:
    cluster.queues[N1, N2].append(msg.Push(next(iter(cluster.core(1).pool))))


def copy_of_an_older_replica(cluster: Cluster) -> None:
    copy_here(cluster)
    (ref,) = [spark.ref for spark in cluster.core(2).pool]
    next(record for one, record in cluster.core(0).supervisor.records() if one == ref).replica = 1


def track_elsewhere(cluster: Cluster) -> None:
    (ref,) = [spark.ref for spark in cluster.core(1).pool]
    next(record for one, record in cluster.core(0).supervisor.records() if one == ref).location = OnNode(ROOT)


@pytest.mark.parametrize(
    ("damage", "invariant", "told"),
    [
        (lose, 1, "is lost; tracked as OnNode"),
        (copy_here, 2, "is in 2 places: on 1, on 2"),
        (copy_under_way, 2, "is in 2 places: on 1, from 1 to 2"),
        (copy_of_an_older_replica, 4, "is in 2 places: on 1, on 2"),
        (track_elsewhere, 1, r"is on 1, but tracked as OnNode\(node=0\)"),
    ],
)
def test_damage_is_told_with_its_invariant(damage: Callable[[Cluster], None], invariant: int, told: str) -> None:
    cluster, _ = stolen_spark()
    cluster.queues.setdefault((N1, N2), type(cluster.queues[ROOT, N1])())
    cluster.check()
    damage(cluster)
    with pytest.raises(Violation, match=told) as raised:
        cluster.check()
    assert raised.value.invariant == invariant


def test_record_that_names_two_nodes_is_wrong_when_nothing_is_under_way_and_no_death_is_unknown() -> None:
    cluster, ref = stolen_spark()
    record = cluster.core(0).supervisor.record(ref)
    assert record is not None
    record.location = InTransition(N1, N2)
    cluster.queues[N1, N2] = deque([msg.NoWork(FishId(1), 0.0)])
    cluster.check()
    cluster.queues[N1, N2].clear()
    with pytest.raises(Violation, match="stays on 1, but tracked as InTransition") as raised:
        cluster.check()
    assert raised.value.invariant == 1
    cluster.kill(2)
    cluster.check()


def test_what_a_dead_node_had_is_not_lost_but_awaits_the_news() -> None:
    cluster, _ = orphan_to_be()
    cluster.kill(2)
    cluster.check()
