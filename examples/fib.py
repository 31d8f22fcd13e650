"""Fibonacci: the smallest tasks there are, every call one of its own.

Shows `spawn` and `get` themselves, and what they cost: almost nothing is computed here.  With `--skeleton
push` the calls down to `--threshold` are placed by `push_divide_and_conquer`: a placed task is a message, so
they had better be coarse.

    hdphrs run examples/fib.py 25
"""

from __future__ import annotations

import argparse
from functools import partial

import hdphrs


def fib(number: int) -> int:
    """The plain recursion."""
    return number if number < 2 else fib(number - 1) + fib(number - 2)


def spawn_fib(threshold: int, number: int) -> int:
    """The same, each call from `threshold` on being a task."""
    if number < threshold:
        return fib(number)
    left = hdphrs.spawn(spawn_fib, threshold, number - 1)
    right = hdphrs.spawn(spawn_fib, threshold, number - 2)
    return hdphrs.get(left) + hdphrs.get(right)


def is_small(threshold: int, number: int) -> bool:
    return number < threshold


def two_before(number: int) -> list[int]:
    return [number - 1, number - 2]


def total(number: int, terms: list[int]) -> int:
    return sum(terms)


def push_fib(threshold: int, number: int) -> int:
    """The same, the calls from `threshold` on being spread over all nodes as soon as they are made."""
    return hdphrs.push_divide_and_conquer(partial(is_small, threshold), two_before, total, fib, number)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("size", nargs="?", type=int, default=25, help="which number (default %(default)s)")
    parser.add_argument("--skeleton", choices=["par", "push", "seq"], default="par")
    parser.add_argument(
        "--threshold",
        type=int,
        help="smaller numbers are plain calls (default: for par 2: every call is a task; for push size - 6)",
    )
    options = parser.parse_args()
    if options.size < 0 or (options.threshold is not None and options.threshold < 2):
        parser.error("size must be at least 0, and threshold at least 2")

    match options.skeleton:
        case "seq":
            result = fib(options.size)
        case "par":
            result = hdphrs.run(spawn_fib, options.threshold or 2, options.size)
        case _:
            result = hdphrs.run(push_fib, options.threshold or max(2, options.size - 6), options.size)
    print(f"result: {result}")


if __name__ == "__main__":
    main()
