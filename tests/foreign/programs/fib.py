"""Fibonacci numbers by their definition, a task for each but the small ones: the cost of tasks, and nothing else."""

from __future__ import annotations

import hdphrs

SIZES = {"small": 20, "large": 27}
ANSWERS = {20: 6765, 27: 196_418}

CUT_OFF = 8
"""Below it there are no more tasks."""


def plain(n: int) -> int:
    """Without tasks."""
    return n if n < 2 else plain(n - 1) + plain(n - 2)


def fib(n: int) -> int:
    """With a task for one half."""
    if n < CUT_OFF:
        return plain(n)
    left = hdphrs.spawn(fib, n - 1)
    return fib(n - 2) + hdphrs.get(left)


def main(size: int) -> int:
    """The number."""
    return fib(size)


def answer(size: int) -> int:
    """A published figure (OEIS A000045)."""
    return ANSWERS[size]
