"""Situations of section 4, with the letters of its figures.

What lives here: A supervises, B holds a spark, C and D are thieves.  Each has one fish out at most, as in the paper.
"""

from __future__ import annotations

from hdphrs.config import CoreConfig
from hdphrs.explore.cluster import Cluster
from hdphrs.protocol import messages as msg
from hdphrs.protocol.supervisor import Location
from hdphrs.protocol.tasks import NodeId, TaskRef

A, B, C, D = (NodeId(node) for node in range(4))

STEAL = ((C, B, msg.Fish), (B, A, msg.Req), (A, B, msg.Auth), (B, C, msg.Schedule), (C, A, msg.Ack))
"""Figure 6."""


def spark_on_b(config: CoreConfig | None = None) -> tuple[Cluster, TaskRef]:
    """A has spawned one spark, which B has stolen and not begun.  B is not hungry; C will fish in B, and D in C."""
    choices = iter((0, 1, 2))
    config = config or CoreConfig(fish_max=1, pieces_bytes_max=0)
    cluster = Cluster(4, config=config, choose=lambda n: next(choices, 0) % n)
    (ref,) = cluster.spawn()
    cluster.hungry(B)
    cluster.settle()
    cluster.give_back(B)
    return cluster, ref


def deliver_until(cluster: Cluster, source: NodeId, to: NodeId, kind: type[msg.Message]) -> msg.Message:
    """Deliver on one link up to and with the first message of this kind."""
    while True:
        message = cluster.deliver(source, to)
        if isinstance(message, kind):
            return message


def steal(cluster: Cluster, last: type[msg.Message]) -> None:
    """C steals the spark of B, up to the delivery of this message."""
    cluster.hungry(C)
    for source, to, kind in STEAL:
        deliver_until(cluster, source, to, kind)
        if kind is last:
            return


def obsolete_copy() -> tuple[Cluster, TaskRef]:
    """Figure 8: B has died, C has the old copy of a spark, A a new one."""
    cluster, ref = spark_on_b()
    steal(cluster, msg.Schedule)
    cluster.kill(B)
    cluster.suspect(B)
    return cluster, ref


def located(cluster: Cluster, ref: TaskRef) -> Location:
    """Where its supervisor tracks the newest replica of a task."""
    record = cluster.core(ref.node).supervisor.record(ref)
    assert record is not None
    return record.location


def copies(cluster: Cluster, ref: TaskRef) -> list[tuple[NodeId, int]]:
    """The nodes on which there are copies of a task, and their replica numbers."""
    return [
        (node, spark.replica)
        for node, host in cluster.hosts.items()
        if host.runs
        for spark in [*host.core.pool, *host.core.reruns, *host.core.victim.guarded(), *host.core.schedulers.held()]
        if spark.ref == ref
    ]
