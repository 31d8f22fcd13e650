"""What a user program calls: spawn, get, Future and their kin, over a port of the process that they run in."""

from hdphrs.api.calls import all_nodes, my_node, node_infos, run, spawn_at, supervised_spawn, supervised_spawn_at
from hdphrs.api.future import Future, get, spawn
from hdphrs.api.places import NodeInfo
from hdphrs.api.sequential import sequential

__all__ = [
    "Future",
    "NodeInfo",
    "all_nodes",
    "get",
    "my_node",
    "node_infos",
    "run",
    "sequential",
    "spawn",
    "spawn_at",
    "supervised_spawn",
    "supervised_spawn_at",
]
