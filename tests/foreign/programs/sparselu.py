"""LU decomposition of a sparse matrix of blocks, modulo a prime, where it is exact in every order of the tasks.

Blocks that are not there cost nothing, so the tasks of a phase differ in number.
"""

from __future__ import annotations

from random import Random
from typing import TypeAlias

import hdphrs

SIZES = {"small": 4, "large": 9}

PRIME = 1_000_003
BLOCK = 6

Block: TypeAlias = list[list[int]]
Blocks: TypeAlias = dict[tuple[int, int], Block]


def blocks(size: int) -> Blocks:
    """The same for everybody: the diagonal and its neighbours, and every third of the others."""
    chance = Random(size)
    return {
        (i, j): [[chance.randrange(1, PRIME) for _ in range(BLOCK)] for _ in range(BLOCK)]
        for i in range(size)
        for j in range(size)
        if abs(i - j) <= 1 or (i + j) % 3 == 0
    }


def factorise(block: Block) -> Block:
    """L below the diagonal, whose own is 1, and U from the diagonal on."""
    rows = [list(row) for row in block]
    for k in range(BLOCK):
        inverse = pow(rows[k][k], -1, PRIME)
        for i in range(k + 1, BLOCK):
            rows[i][k] = rows[i][k] * inverse % PRIME
            for j in range(k + 1, BLOCK):
                rows[i][j] = (rows[i][j] - rows[i][k] * rows[k][j]) % PRIME
    return rows


def solve_right(diagonal: Block, block: Block) -> Block:
    """A block of U, right of the diagonal."""
    rows = [list(row) for row in block]
    for i in range(BLOCK):
        for k in range(i):
            for j in range(BLOCK):
                rows[i][j] = (rows[i][j] - diagonal[i][k] * rows[k][j]) % PRIME
    return rows


def solve_below(diagonal: Block, block: Block) -> Block:
    """A block of L, below the diagonal."""
    rows = [list(row) for row in block]
    for row in rows:
        for k in range(BLOCK):
            row[k] = row[k] * pow(diagonal[k][k], -1, PRIME) % PRIME
            for j in range(k + 1, BLOCK):
                row[j] = (row[j] - row[k] * diagonal[k][j]) % PRIME
    return rows


def product(left: Block, right: Block) -> Block:
    """By definition."""
    return [[sum(row[k] * right[k][j] for k in range(BLOCK)) % PRIME for j in range(BLOCK)] for row in left]


def minus(block: Block | None, other: Block) -> Block:
    """The difference; a block that is not there is zero."""
    first = block or [[0] * BLOCK for _ in range(BLOCK)]
    return [[(a - b) % PRIME for a, b in zip(*rows, strict=True)] for rows in zip(first, other, strict=True)]


def update(block: Block | None, left: Block, above: Block) -> Block:
    """What an inner block loses to a column and a row."""
    return minus(block, product(left, above))


def main(size: int) -> Blocks:
    """The blocks of L and U, with a task for each block of a phase."""
    found = blocks(size)
    for k in range(size):
        found[k, k] = factorise(found[k, k])
        right = {j: hdphrs.spawn(solve_right, found[k, k], found[k, j]) for j in range(k + 1, size) if (k, j) in found}
        below = {i: hdphrs.spawn(solve_below, found[k, k], found[i, k]) for i in range(k + 1, size) if (i, k) in found}
        found.update({(k, j): hdphrs.get(future) for j, future in right.items()})
        found.update({(i, k): hdphrs.get(future) for i, future in below.items()})
        inner = {
            (i, j): hdphrs.spawn(update, found.get((i, j)), found[i, k], found[k, j]) for i in below for j in right
        }
        found.update({place: hdphrs.get(future) for place, future in inner.items()})
    return found


def check(size: int, found: Blocks) -> bool:
    """Whether L times U is the matrix."""
    total: Blocks = {}
    for i in range(size):
        for j in range(size):
            for k in range(min(i, j) + 1):
                if (i, k) in found and (k, j) in found:
                    left = _lower(found[i, k]) if i == k else found[i, k]
                    right = _upper(found[k, j]) if k == j else found[k, j]
                    total[i, j] = minus(total.get((i, j)), [[-x for x in row] for row in product(left, right)])
    zero = [[0] * BLOCK for _ in range(BLOCK)]
    expected = blocks(size)
    return all(total.get(place, zero) == expected.get(place, zero) for place in total.keys() | expected.keys())


def _lower(block: Block) -> Block:
    return [[x if j < i else int(i == j) for j, x in enumerate(row)] for i, row in enumerate(block)]


def _upper(block: Block) -> Block:
    return [[x if j >= i else 0 for j, x in enumerate(row)] for i, row in enumerate(block)]
