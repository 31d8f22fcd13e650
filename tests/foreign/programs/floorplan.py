"""The smallest rectangle that holds some cells, each of which may have one of several shapes: a branch and bound whose
tasks are the shapes and places of the first cells.  The bound is the best area known where a task begins.
"""

from __future__ import annotations

from typing import TypeAlias

import hdphrs

SIZES = {"small": 4, "large": 5}
AREAS = (5, 6, 4, 8, 3)
"""Of the cells; a cell may be any rectangle of its area."""

TASK_CELLS = 2

Placed: TypeAlias = tuple[tuple[int, int, int, int], ...]
"""Row, column, height and width."""

NOTHING_YET = 1 << 30


def shapes(area: int) -> list[tuple[int, int]]:
    """Height and width."""
    return [(height, area // height) for height in range(1, area + 1) if area % height == 0]


def corners(placed: Placed) -> set[tuple[int, int]]:
    """Where a cell may begin: at the origin, or beside or below another one."""
    rows = {0, *(row + height for row, _, height, _ in placed)}
    columns = {0, *(column + width for _, column, _, width in placed)}
    return {(row, column) for row in rows for column in columns}


def overlaps(placed: Placed, row: int, column: int, height: int, width: int) -> bool:
    """Whether there is no room for it."""
    return any(row < r + h and r < row + height and column < c + w and c < column + width for r, c, h, w in placed)


def area_of(placed: Placed) -> int:
    """Of the rectangle around all."""
    return max(r + h for r, _, h, _ in placed) * max(c + w for _, c, _, w in placed)


def search(cells: int, placed: Placed, best: int, task_cells: int) -> int:
    """The least area below `best`, or that."""
    if len(placed) == cells:
        return area_of(placed)
    options = sorted(
        (area_of(more), more)
        for height, width in shapes(AREAS[len(placed)])
        for row, column in corners(placed)
        if not overlaps(placed, row, column, height, width)
        for more in [(*placed, (row, column, height, width))]
    )
    if len(placed) < task_cells:
        futures = [hdphrs.spawn(search, cells, more, best, task_cells) for area, more in options if area < best]
        return min([best, *map(hdphrs.get, futures)])
    for area, more in options:
        if area >= best:
            break
        best = min(best, search(cells, more, best, task_cells))
    return best


def main(size: int) -> int:
    """The area."""
    return search(size, (), sum(AREAS[:size]) + sum(AREAS[:size]) // 3, TASK_CELLS)


def answer(size: int) -> int:
    """In one task, with nothing known."""
    return search(size, (), NOTHING_YET, 0)
