"""Unbalanced Tree Search (Olivier et al., LCPC 2006): count the nodes of a tree that unfolds from hashes.

A node is 20 bytes, its SHA-1 state, and its depth.  Child i has the hash of its parent's state followed by i as four
bytes, big end first; the root has the hash of 16 zero bytes and the seed.  The last four bytes of a state, without the
sign bit, are the node's random number, and tell how many children it has.  So the tree is the same for everybody, and
nobody can tell the size of a subtree without walking it.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha1
from math import floor, log
from typing import TypeAlias

CHILDREN_MAX = 100
"""Of any node but the root of a binomial tree."""

Node: TypeAlias = tuple[bytes, int]
"""State and depth."""


@dataclass(frozen=True, slots=True)
class Geometric:
    """The branching factor follows a geometric law of mean `width`, down to `depth` (fixed shape)."""

    width: float
    depth: int
    seed: int

    def fan(self, number: float, depth: int) -> int:
        """How many children a node at `depth` has whose random number, 0 to 1, is `number`."""
        if depth >= self.depth:
            return 0
        return min(CHILDREN_MAX, floor(log(1.0 - number) / log(1.0 - 1.0 / (1.0 + self.width))))


@dataclass(frozen=True, slots=True)
class Binomial:
    """The root has `roots` children; any other node has `width` with the probability `chance`, else none."""

    roots: int
    width: int
    chance: float
    seed: int

    def fan(self, number: float, depth: int) -> int:
        """How many children a node at `depth` has whose random number, 0 to 1, is `number`."""
        if depth == 0:
            return self.roots
        return self.width if number < self.chance else 0


Tree: TypeAlias = Geometric | Binomial

T1 = Geometric(width=4, depth=10, seed=19)
T1_SIZE = 4_130_071
T3 = Binomial(roots=2000, width=8, chance=0.124875, seed=42)
T3_SIZE = 4_112_897


def root_of(tree: Tree) -> Node:
    """The node that the tree unfolds from."""
    return sha1(bytes(16) + tree.seed.to_bytes(4, "big")).digest(), 0


def walk(tree: Tree, budget: int, stack: list[Node]) -> int:
    """Count up to `budget` nodes, depth first; those that are still to be visited are left on the stack."""
    counted = 0
    while stack and counted < budget:
        state, depth = stack.pop()
        counted += 1
        number = (int.from_bytes(state[16:], "big") & 0x7FFFFFFF) / 0x80000000
        for child in range(tree.fan(number, depth)):
            stack.append((sha1(state + child.to_bytes(4, "big")).digest(), depth + 1))
    return counted


def visit_nodes(tree: Tree, grain: int, nodes: list[Node]) -> tuple[int, list[list[Node]]]:
    """A problem is a list of nodes: `grain` nodes are counted, and what is left is shared out in two."""
    stack = list(nodes)
    counted = walk(tree, grain, stack)
    return counted, [half for half in (stack[::2], stack[1::2]) if half]
