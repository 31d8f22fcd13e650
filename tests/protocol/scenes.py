"""Situations that several tests start from."""

from __future__ import annotations

from hdphrs.config import CoreConfig
from hdphrs.explore.cluster import Cluster
from hdphrs.explore.work import task
from hdphrs.protocol.events import Exported
from hdphrs.protocol.supervisor import Record
from hdphrs.protocol.tasks import Origin, TaskRef


def record_of(cluster: Cluster, ref: TaskRef) -> Record:
    """What the supervisor of a task knows of it."""
    return dict(cluster.core(ref.node).supervisor.records())[ref]


def pooled(cluster: Cluster, node: int) -> list[TaskRef]:
    """What waits on a node."""
    return [copy.ref for copy in cluster.core(node).pool]


def stolen_spark(config: CoreConfig | None = None) -> tuple[Cluster, TaskRef]:
    """Four nodes; the root has spawned four tasks; node 1 has stolen two of them, runs one, keeps one."""
    cluster = Cluster(4, config=config)
    cluster.spawn(4)
    cluster.hungry(1)
    cluster.settle()
    (ref,) = pooled(cluster, 1)
    return cluster, ref


def orphan_to_be(config: CoreConfig | None = None) -> tuple[Cluster, TaskRef]:
    """Four nodes; a task on node 1 has spawned four more; node 2 has stolen two of them, and one waits there."""
    cluster = Cluster(4, config=config)
    children = tuple((slot, task(b"child %d" % slot)) for slot in range(4))
    cluster.place(1)
    cluster.settle()
    cluster.hungry(1)
    cluster.feed(1, Exported(Origin(1), children))
    cluster.hungry(2)
    cluster.settle()
    (ref,) = pooled(cluster, 2)
    assert ref.node == 1
    return cluster, ref
