"""Prints how long all cores take to be free after a tree of 10,000 tasks was cancelled, in seconds: the median of some.

hdphrs run --local-nodes 4 --cores 1 benchmarks/programs/cancel_tree.py

A core is free when it begins what is placed on its node after the cancellation.
"""

from __future__ import annotations

import statistics
import time

from hdphrs import all_nodes, get, spawn, spawn_at

FAN = 100
LEAF_S = 0.001
HEAD_START_S = 0.5
TURNS = 9


def leaf() -> int:
    """Keep a core busy for a moment."""
    end = time.perf_counter() + LEAF_S
    while time.perf_counter() < end:
        pass
    return 1


def branch() -> int:
    """A hundred leaves."""
    return sum(map(get, [spawn(leaf) for _ in range(FAN)]))


def tree() -> int:
    """A hundred branches."""
    return sum(map(get, [spawn(branch) for _ in range(FAN)]))


def turn() -> float:
    """Cancel a tree at its height; until the last core is free."""
    future = spawn(tree)
    time.sleep(HEAD_START_S)
    cancelled_at = time.time()
    if not future.cancel():
        raise SystemExit("the tree had ended by then")
    return max(map(get, [spawn_at(node, time.time) for node in all_nodes()])) - cancelled_at


if __name__ == "__main__":
    get(spawn(branch))
    print(statistics.median(turn() for _ in range(TURNS)))
