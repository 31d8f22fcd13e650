"""What a user program calls: spawn, get, Future and their kin, over a port of the process that they run in."""

from hdphrs.api.calls import all_nodes, my_node, run, spawn_at, supervised_spawn, supervised_spawn_at
from hdphrs.api.future import Future, get, spawn
from hdphrs.api.sequential import sequential

__all__ = [
    "Future",
    "all_nodes",
    "get",
    "my_node",
    "run",
    "sequential",
    "spawn",
    "spawn_at",
    "supervised_spawn",
    "supervised_spawn_at",
]
