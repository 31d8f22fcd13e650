"""Queens: in how many ways n queens fit on an n x n board, by divide and conquer (paper section 7).

Shows `par_divide_and_conquer`: a problem is a board with queens on its first rows; it is divided by the
squares that are free in the next row, down to `--threshold` rows, and what is below one board is counted by
plain recursion.  Tasks spawn tasks, wherever they run.

    hdphrs run --local-nodes 2 examples/queens.py 14              # 365596, as in the paper's appendix B
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from functools import partial
from typing import TypeAlias

import hdphrs

SKELETONS = {"par": hdphrs.par_divide_and_conquer, "push": hdphrs.push_divide_and_conquer}

Board: TypeAlias = tuple[int, int, int]
"""What the queens attack in the next row, as bits: by columns, by diagonals down left, down right."""

EMPTY: Board = (0, 0, 0)


def next_rows(size: int, board: Board) -> Iterator[Board]:
    """The boards with one row more."""
    columns, left, right = board
    free = ~(columns | left | right) & ((1 << size) - 1)
    while free:
        queen = free & -free
        free ^= queen
        yield columns | queen, (left | queen) << 1, (right | queen) >> 1


def is_deep(size: int, threshold: int, board: Board) -> bool:
    """Whether the board has as many queens as rows are to be shared out."""
    return board[0].bit_count() >= min(size, threshold)


def total(board: Board, counts: list[int]) -> int:
    return sum(counts)


def count(size: int, board: Board) -> int:
    """In how many ways the board can be completed."""
    return count_rows((1 << size) - 1, *board)


def count_rows(all_columns: int, columns: int, left: int, right: int) -> int:
    if columns == all_columns:
        return 1
    ways = 0
    free = ~(columns | left | right) & all_columns
    while free:
        queen = free & -free
        free ^= queen
        ways += count_rows(all_columns, columns | queen, (left | queen) << 1, (right | queen) >> 1)
    return ways


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("size", nargs="?", type=int, default=13, help="n (default %(default)s)")
    parser.add_argument("--skeleton", choices=["par", "push", "seq"], default="par")
    parser.add_argument(
        "--threshold", type=int, default=3, help="rows down to which boards are tasks (default %(default)s)"
    )
    options = parser.parse_args()
    if options.size < 1 or options.threshold < 0:
        parser.error("size must be at least 1, and threshold at least 0")

    if options.skeleton == "seq":
        solutions = count(options.size, EMPTY)
    else:
        solutions = hdphrs.run(
            SKELETONS[options.skeleton],
            partial(is_deep, options.size, options.threshold),
            partial(next_rows, options.size),
            total,
            partial(count, options.size),
            EMPTY,
        )
    print(f"result: {solutions}")


if __name__ == "__main__":
    main()
