"""The best global alignment of each pair of some sequences (Gotoh): a task a pair, whose costs differ by length."""

from __future__ import annotations

from random import Random

import hdphrs

SIZES = {"small": 5, "large": 16}

LETTERS = "ARNDCQEGHILKMFPSTWYV"
MATCH, MISMATCH = 5, -4
GAP_OPEN, GAP_EXTEND = -10, -1

NEVER = -(1 << 30)


def sequences(size: int) -> list[str]:
    """The same for everybody; the later ones are longer."""
    chance = Random(size)
    return ["".join(chance.choice(LETTERS) for _ in range(20 + 6 * number)) for number in range(size)]


def score(one: str, other: str) -> int:
    """Of the best alignment, column by column."""
    best = [0, *(GAP_OPEN + GAP_EXTEND * i for i in range(len(other)))]
    below = [NEVER] * (len(other) + 1)
    for row, letter in enumerate(one):
        diagonal, best[0] = best[0], GAP_OPEN + GAP_EXTEND * row
        right = NEVER
        for column, opposite in enumerate(other, 1):
            below[column] = max(below[column] + GAP_EXTEND, best[column] + GAP_OPEN)
            right = max(right + GAP_EXTEND, best[column - 1] + GAP_OPEN)
            matched = diagonal + (MATCH if letter == opposite else MISMATCH)
            diagonal, best[column] = best[column], max(matched, below[column], right)
    return best[-1]


def aligned(one: str, other: str) -> int:
    """The same, without keeping a row, from the definition over whole matrices."""
    rows, columns = len(one) + 1, len(other) + 1
    best = [[NEVER] * columns for _ in range(rows)]
    down = [[NEVER] * columns for _ in range(rows)]
    right = [[NEVER] * columns for _ in range(rows)]
    best[0][0] = 0
    for i in range(rows):
        for j in range(columns):
            if i:
                down[i][j] = max(down[i - 1][j] + GAP_EXTEND, best[i - 1][j] + GAP_OPEN)
            if j:
                right[i][j] = max(right[i][j - 1] + GAP_EXTEND, best[i][j - 1] + GAP_OPEN)
            matched = NEVER
            if i and j:
                matched = best[i - 1][j - 1] + (MATCH if one[i - 1] == other[j - 1] else MISMATCH)
            best[i][j] = max(best[i][j], matched, down[i][j], right[i][j])
    return best[-1][-1]


def main(size: int) -> list[int]:
    """The scores of all pairs."""
    given = sequences(size)
    futures = [hdphrs.spawn(score, given[i], given[j]) for i in range(size) for j in range(i)]
    return [hdphrs.get(future) for future in futures]


def answer(size: int) -> list[int]:
    """In another way."""
    given = sequences(size)
    return [aligned(given[i], given[j]) for i in range(size) for j in range(i)]
