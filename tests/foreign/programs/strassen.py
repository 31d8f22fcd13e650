"""Matrix multiplication with seven products of half the size instead of eight (Strassen), over the integers."""

from __future__ import annotations

from random import Random
from typing import TypeAlias

import hdphrs

SIZES = {"small": 32, "large": 128}

CUT_OFF = 16

Matrix: TypeAlias = list[list[int]]


def matrix(size: int, seed: int) -> Matrix:
    """The same for everybody."""
    chance = Random(seed)
    return [[chance.randrange(-9, 10) for _ in range(size)] for _ in range(size)]


def product(left: Matrix, right: Matrix) -> Matrix:
    """By definition."""
    columns = list(zip(*right, strict=True))
    return [[sum(map(int.__mul__, row, column)) for column in columns] for row in left]


def plus(left: Matrix, right: Matrix) -> Matrix:
    """The sum."""
    return [list(map(int.__add__, *rows)) for rows in zip(left, right, strict=True)]


def minus(left: Matrix, right: Matrix) -> Matrix:
    """The difference."""
    return [list(map(int.__sub__, *rows)) for rows in zip(left, right, strict=True)]


def quarters(whole: Matrix) -> tuple[Matrix, Matrix, Matrix, Matrix]:
    """Row by row."""
    half = len(whole) // 2
    upper, lower = whole[:half], whole[half:]
    return (
        [row[:half] for row in upper],
        [row[half:] for row in upper],
        [row[:half] for row in lower],
        [row[half:] for row in lower],
    )


def multiply(left: Matrix, right: Matrix) -> Matrix:
    """With a task for each of the seven products."""
    if len(left) <= CUT_OFF:
        return product(left, right)
    a, b, c, d = quarters(left)
    e, f, g, h = quarters(right)
    factors = [
        (plus(a, d), plus(e, h)),
        (plus(c, d), e),
        (a, minus(f, h)),
        (d, minus(g, e)),
        (plus(a, b), h),
        (minus(c, a), plus(e, f)),
        (minus(b, d), plus(g, h)),
    ]
    p, q, r, s, t, u, v = map(hdphrs.get, [hdphrs.spawn(multiply, *pair) for pair in factors])
    upper = zip(plus(minus(plus(p, s), t), v), plus(r, t), strict=True)
    lower = zip(plus(q, s), plus(plus(minus(p, q), r), u), strict=True)
    return [one + other for one, other in [*upper, *lower]]


def main(size: int) -> Matrix:
    """The product of two matrices."""
    return multiply(matrix(size, 1), matrix(size, 2))


def answer(size: int) -> Matrix:
    """By definition."""
    return product(matrix(size, 1), matrix(size, 2))
