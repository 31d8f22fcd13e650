"""Which nodes a run has: decided before anything starts.

The first node of a plan is the root.  It runs on this host, next to the program: it is the first `localhost` line of
the hosts file, or, if there is none, a node that is added here, so that the machine where a person sits helps too (a
line `localhost slots=1` limits its share).
"""

from __future__ import annotations

from collections.abc import Sequence

from hdphrs.cluster.hosts import LOCALHOST, Host
from hdphrs.records import dataclass

ALL_CORES = 0
"""Slots of a node on another host that neither the hosts file nor --cores tells: as many as it can use there."""


@dataclass(frozen=True, slots=True)
class NodePlan:
    """One node: where it runs, and with what."""

    host: str
    slots: int
    python: str | None = None
    """The interpreter; None: ours on this host, `python3` on another."""

    @property
    def remote(self) -> bool:
        """Whether it is reached by ssh."""
        return self.host != LOCALHOST


def plan_nodes(hosts: Sequence[Host], cores: int | None, usable: int) -> list[NodePlan]:
    """The nodes for these hosts, the root first, the others in their order.

    Args:
        cores: slots for each host that does not say; None shares out the cores of this one among its nodes.
        usable: the cores of this host.
    """
    local = [host for host in hosts if host.name == LOCALHOST]
    root = local[0] if local else Host(LOCALHOST)
    others = list(hosts)
    if local:
        others.remove(root)
    share = cores or max(1, usable // max(1, len(local)))
    return [
        NodePlan(
            host.name,
            host.slots or (share if host.name == LOCALHOST else cores or ALL_CORES),
            host.python,
        )
        for host in [root, *others]
    ]
