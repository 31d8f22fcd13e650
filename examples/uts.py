"""UTS: count the nodes of a tree that unfolds from hashes, and that nobody can divide fairly beforehand.

Unbalanced Tree Search is the usual test of work stealing (Olivier et al., LCPC 2006): how many children a node has is
drawn from the SHA-1 of its place in the tree, and subtrees differ in size by orders of magnitude.  Shows plain `spawn`
and `get`: a task counts `--grain` nodes depth first, and leaves what it has found but not visited to two more tasks.

    hdphrs run --local-nodes 2 examples/uts.py T1                 # 4130071, as published
    hdphrs run --local-nodes 2 examples/uts.py T3                 # 4112897: deep and much more unbalanced
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from hashlib import sha1
from math import floor, log
from typing import TypeAlias

import hdphrs

Node: TypeAlias = tuple[bytes, int]
"""The hash that is drawn from, and the depth."""

CHILDREN_MAX = 100
"""Of any node but the root of a binomial tree."""

Fan: TypeAlias = Callable[[float, int], int]
"""How many children a node has, from its random number and its depth."""


def geometric(mean: float, depth_max: int, chance: float, depth: int) -> int:
    """The same law with the same mean at all depths, until no node has children."""
    if depth >= depth_max:
        return 0
    return min(CHILDREN_MAX, floor(log(1.0 - chance) / log(1.0 - 1.0 / (1.0 + mean))))


def binomial(roots: int, many: int, share: float, chance: float, depth: int) -> int:
    """Most nodes have no children, a share of them has many; the root has its own number."""
    if depth == 0:
        return roots
    return many if chance < share else 0


TREES: dict[str, tuple[int, Callable[[float, int], int]]] = {
    "T1": (19, lambda chance, depth: geometric(4.0, 10, chance, depth)),
    "T3": (42, lambda chance, depth: binomial(2000, 8, 0.124875, chance, depth)),
    "small": (19, lambda chance, depth: geometric(4.0, 6, chance, depth)),
    "small-deep": (42, lambda chance, depth: binomial(200, 8, 0.1, chance, depth)),
}
"""Seed and shape; the first two as published."""


def root_of(seed: int) -> Node:
    return sha1(bytes(16) + seed.to_bytes(4, "big")).digest(), 0


def count_some(fan: Fan, grain: int, nodes: list[Node]) -> int:
    """Visit up to `grain` nodes, the last one first; what they lead to is added to the list."""
    counted = 0
    while nodes and counted < grain:
        state, depth = nodes.pop()
        counted += 1
        chance = (int.from_bytes(state[16:], "big") & 0x7FFFFFFF) / 0x80000000
        for child in range(fan(chance, depth)):
            nodes.append((sha1(state + child.to_bytes(4, "big")).digest(), depth + 1))
    return counted


def count(tree: str, grain: int, nodes: list[Node]) -> int:
    """The task: the nodes, and all below them."""
    _, fan = TREES[tree]
    nodes = list(nodes)  # idempotent: another attempt may be given the same list
    counted = count_some(fan, grain, nodes)
    halves = [half for half in (nodes[::2], nodes[1::2]) if half]
    below = [hdphrs.spawn(count, tree, grain, half) for half in halves]
    return counted + sum(map(hdphrs.get, below))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("tree", nargs="?", choices=TREES, default="T1", help="which tree (default %(default)s)")
    parser.add_argument("--skeleton", choices=["par", "seq"], default="par")
    parser.add_argument("--grain", type=int, default=2000, help="nodes per task (default %(default)s)")
    options = parser.parse_args()
    if options.grain < 1:
        parser.error("grain must be at least 1")

    seed, fan = TREES[options.tree]
    if options.skeleton == "seq":
        nodes, total = [root_of(seed)], 0
        while nodes:
            total += count_some(fan, options.grain, nodes)
    else:
        total = hdphrs.run(count, options.tree, options.grain, [root_of(seed)])
    print(f"result: {total}")


if __name__ == "__main__":
    main()
