"""The public names but for the skeletons, in both spellings: what the package gives out when the first is wanted.

What lives here: imports, aliases, and the list of the names.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import hdphrs.errors as errors
from hdphrs.api.calls import all_nodes, my_node, node_infos, run, shutdown, spawn_at
from hdphrs.api.future import Future, get, spawn
from hdphrs.api.memo import InputFile
from hdphrs.api.options import task
from hdphrs.api.places import NodeInfo
from hdphrs.api.seeds import rng, run_seed, seed, set_seed
from hdphrs.api.sequential import sequential
from hdphrs.api.waiting import as_completed, get_any, scope, wait
from hdphrs.choices import configure
from hdphrs.errors import Cancelled, HdphrsError

if TYPE_CHECKING:
    from hdphrs.executor.executor import Executor

spawnAt = spawn_at
allNodes = all_nodes
myNode = my_node

__all__ = [
    "Cancelled",
    "Executor",
    "Future",
    "HdphrsError",
    "InputFile",
    "NodeInfo",
    "allNodes",
    "all_nodes",
    "as_completed",
    "configure",
    "errors",
    "get",
    "get_any",
    "myNode",
    "my_node",
    "node_infos",
    "rng",
    "run",
    "run_seed",
    "scope",
    "seed",
    "sequential",
    "set_seed",
    "shutdown",
    "spawn",
    "spawnAt",
    "spawn_at",
    "task",
    "wait",
]


def __getattr__(name: str) -> Any:
    """Executors, loaded when somebody wants one: programs start faster without them."""
    if name != "Executor":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from hdphrs.executor.executor import Executor

    return Executor
