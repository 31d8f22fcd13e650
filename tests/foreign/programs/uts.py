"""The Unbalanced Tree Search: T1 of `benchmarks/kernels/uts.py`, cut off higher up; a task for each batch of nodes.

The benchmarks unfold the whole T1 and T3 to their published sizes; what is cut off is counted here without tasks.
"""

from __future__ import annotations

import hdphrs
from benchmarks.kernels import uts

SIZES = {"small": 5, "large": 8}
"""Depths at which T1 is cut off."""

GRAIN = 200


def tree(depth: int) -> uts.Geometric:
    """T1 down to this depth."""
    return uts.Geometric(uts.T1.width, depth, uts.T1.seed)


def count(depth: int, nodes: list[uts.Node]) -> int:
    """The nodes at and below these."""
    counted, parts = uts.visit_nodes(tree(depth), GRAIN, nodes)
    futures = [hdphrs.spawn(count, depth, part) for part in parts]
    return counted + sum(map(hdphrs.get, futures))


def main(size: int) -> int:
    """The number of nodes."""
    return count(size, [uts.root_of(tree(size))])


def answer(size: int) -> int:
    """Node by node, level by level."""
    level, counted = [uts.root_of(tree(size))], 0
    while level:
        counted += len(level)
        stack: list[uts.Node] = []
        for node in level:
            children = [node]
            uts.walk(tree(size), 1, children)
            stack += children
        level = stack
    return counted
