"""In how many ways n queens stand on a board and attack none of each other; a task for each place in the first rows."""

from __future__ import annotations

import hdphrs

SIZES = {"small": 8, "large": 10}
ANSWERS = {8: 92, 10: 724}

ROWS_OF_TASKS = 3


def place(size: int, rows: tuple[int, ...]) -> int:
    """The number of ways to go on from queens in these columns."""
    if len(rows) == size:
        return 1
    depth = len(rows)
    columns = [
        column
        for column in range(size)
        if all(other != column and abs(other - column) != depth - row for row, other in enumerate(rows))
    ]
    if depth >= ROWS_OF_TASKS:
        return sum(place(size, (*rows, column)) for column in columns)
    children = [hdphrs.spawn(place, size, (*rows, column)) for column in columns]
    return sum(map(hdphrs.get, children))


def main(size: int) -> int:
    """The number."""
    return place(size, ())


def answer(size: int) -> int:
    """A published figure (OEIS A000170)."""
    return ANSWERS[size]
