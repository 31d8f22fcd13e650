"""Reliable work-stealing fork/join: every core of every machine, whichever of them dies.

    import hdphrs

    def fib(n):
        if n < 2:
            return n
        left = hdphrs.spawn(fib, n - 1)
        return fib(n - 2) + hdphrs.get(left)

    print(hdphrs.run(fib, 25))

The names of the HdpH-RS paper (spawnAt, allNodes, parMapSliced, ...) are the same objects as the PEP 8 names.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hdphrs import errors
from hdphrs.api import Future, NodeInfo, all_nodes, get, my_node, node_infos, run, sequential, spawn, spawn_at
from hdphrs.api.future import state as _state
from hdphrs.api.memo import InputFile
from hdphrs.api.options import task
from hdphrs.api.port import Unattached as _Unattached
from hdphrs.api.seeds import rng, run_seed, seed, set_seed
from hdphrs.api.waiting import as_completed, get_any, scope, wait
from hdphrs.errors import Cancelled, HdphrsError
from hdphrs.skeletons import *  # noqa: F403 - its __all__ is the list of skeletons, in both spellings
from hdphrs.skeletons import __all__ as _skeletons

if TYPE_CHECKING:
    from hdphrs.api.port import Port
    from hdphrs.executor.executor import Executor

__version__ = "0.1.0"

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
    "spawn",
    "spawnAt",
    "spawn_at",
    "task",
    "wait",
    *_skeletons,
]


def __getattr__(name: str) -> Any:
    """Executors, loaded when somebody wants one: schedulers start faster without them."""
    if name != "Executor":
        raise AttributeError(f"module 'hdphrs' has no attribute {name!r}")
    from hdphrs.executor.executor import Executor

    globals()[name] = Executor
    return Executor


def _attach() -> Port:
    from hdphrs.program.attach import attach

    return attach()


_state.port = _Unattached(_attach)
