"""The paper's four benchmarks: Sum Euler and Liouville as flat maps, Queens and Mandelbrot as both (section 7).

They compute what the programs in `examples/` compute, without the pictures, and without hdphrs: a peer's Python does
not have it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import repeat
from math import gcd, isqrt, log2
from pathlib import Path
from typing import TypeAlias

Board: TypeAlias = tuple[int, int, int]
"""What the queens attack in the next row, as bits: by columns, by diagonals down left, down right."""
EMPTY: Board = (0, 0, 0)

Band: TypeAlias = tuple[int, int]
"""Rows, from the first to the one before the last."""

ESCAPE_RADIUS = 2.0


def ranges(size: int, chunk: int) -> list[range]:
    """The numbers from 1 to `size`, `chunk` of them at a time."""
    return [range(first, min(first + chunk, size + 1)) for first in range(1, size + 1, chunk)]


# ---- Sum Euler and Liouville -----------------------------------------------------------------------------------


def sum_totients(numbers: range) -> int:
    """The sum of Euler's totients, each by its definition."""
    return sum(list(map(gcd, repeat(number), range(1, number + 1))).count(1) for number in numbers)


def primes_up_to(limit: int) -> list[int]:
    """The primes up to `limit`."""
    is_prime = bytearray([0, 0]) + bytearray([1]) * (limit - 1)
    for number in range(2, isqrt(limit) + 1):
        if is_prime[number]:
            is_prime[number * number :: number] = bytes(len(range(number * number, limit + 1, number)))
    return [number for number in range(limit + 1) if is_prime[number]]


def sum_liouville(numbers: range) -> int:
    """The sum of the Liouville function: -1 for each number with an odd number of prime factors, else 1.

    A byte a number adds up the odd integers next to 7 log2 p over its prime factors p below the root of the largest
    number: its last bit tells whether they are odd in number, and its size whether one is still missing.
    """
    total, low = 0, numbers.start
    while low < numbers.stop:
        octave = low.bit_length() - 1
        high = min(numbers.stop, 2 << octave)
        logs = bytearray(high - low)
        for prime in primes_up_to(isqrt(high - 1)):
            log = 2 * round(3.5 * log2(prime) - 0.5) + 1
            shifted = bytes((byte + log) & 0xFF for byte in range(256))
            power = prime
            while power < high:
                multiples = slice(-low % power, None, power)
                logs[multiples] = logs[multiples].translate(shifted)
                power *= prime
        complete = 5 * octave + 2 if octave else 0
        odd = bytes((log & 1) ^ (log < complete) for log in range(256))
        total += len(logs) - 2 * logs.translate(odd).count(1)
        low = high
    return total


# ---- Queens ----------------------------------------------------------------------------------------------------


def next_rows(size: int, board: Board) -> list[Board]:
    """The boards with one queen more."""
    columns, left, right = board
    boards = []
    free = ~(columns | left | right) & ((1 << size) - 1)
    while free:
        queen = free & -free
        free ^= queen
        boards.append((columns | queen, (left | queen) << 1, (right | queen) >> 1))
    return boards


def count_queens(size: int, board: Board) -> int:
    """In how many ways the board can be completed."""
    return _count((1 << size) - 1, *board)


def _count(full: int, columns: int, left: int, right: int) -> int:
    if columns == full:
        return 1
    ways = 0
    free = ~(columns | left | right) & full
    while free:
        queen = free & -free
        free ^= queen
        ways += _count(full, columns | queen, (left | queen) << 1, (right | queen) >> 1)
    return ways


def visit_queens(size: int, threshold: int, board: Board) -> tuple[int, list[Board]]:
    """A board with `threshold` queens is counted, one with fewer divided."""
    if board[0].bit_count() >= threshold:
        return count_queens(size, board), []
    return 0, next_rows(size, board)


def boards_with(size: int, threshold: int) -> list[Board]:
    """All boards with so many queens: Queens as a flat map."""
    boards = [EMPTY]
    for _ in range(threshold):
        boards = [below for board in boards for below in next_rows(size, board)]
    return boards


# ---- Mandelbrot ------------------------------------------------------------------------------------------------


def count_iterations(width: int, depth: int, band: Band) -> int:
    """How many iterations the pixels of a band take; the picture is three quarters as high as wide."""
    scale, total = 3.2 / width, 0
    middle = width * 3 // 4 / 2
    for row in range(*band):
        imaginary = (middle - row - 0.5) * scale
        for column in range(width):
            c = complex(-0.65 + (column + 0.5 - width / 2) * scale, imaginary)
            z = 0j
            for _ in range(depth):
                z = z * z + c
                total += 1
                if abs(z) > ESCAPE_RADIUS:
                    break
    return total


def visit_mandelbrot(width: int, depth: int, threshold: int, band: Band) -> tuple[int, list[Band]]:
    """A band of up to `threshold` rows is computed, a wider one halved."""
    first, end = band
    if end - first <= threshold:
        return count_iterations(width, depth, band), []
    middle = (first + end) // 2
    return 0, [(first, middle), (middle, end)]


def bands(height: int, rows: int) -> list[Band]:
    """The picture, so many rows at a time: Mandelbrot as a flat map."""
    return [(first, min(first + rows, height)) for first in range(0, height, rows)]


def iterations_by_row() -> Sequence[int]:
    """What `count_iterations` comes to for each row of a picture that is 640 wide, with a depth of 256 (recorded, since
    to count them takes seconds)."""
    upper: list[int] = json.loads(Path(__file__).with_name("mandelbrot.json").read_text())
    return [*upper, *reversed(upper)]
