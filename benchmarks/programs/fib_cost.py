"""Measures, inside one task, fib with every call spawned against plain recursive fib; prints JSON.

hdphrs run --cores 1 benchmarks/programs/fib_cost.py 25
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from typing import Any

from hdphrs import get, run, spawn

Fib = Callable[[int], int]


def plain_fib(number: int) -> int:
    return number if number < 2 else plain_fib(number - 1) + plain_fib(number - 2)


def spawned_fib(number: int) -> int:
    if number < 2:
        return number
    left = spawn(spawned_fib, number - 1)
    right = spawn(spawned_fib, number - 2)
    return get(left) + get(right)


def seconds_of(fib: Fib, number: int) -> float:
    start = time.perf_counter()
    fib(number)
    return time.perf_counter() - start


def measure(number: int, repeat: int) -> dict[str, Any]:
    """The task: both in turn, so that a slow moment of the machine hits both."""
    seconds_of(spawned_fib, number - 5)  # the interpreter specialises code that has run before
    plain_s, spawned_s = [], []
    for _ in range(repeat):
        plain_s.append(seconds_of(plain_fib, number))
        spawned_s.append(seconds_of(spawned_fib, number))
    return {"calls": 2 * plain_fib(number + 1) - 1, "plain_s": plain_s, "spawned_s": spawned_s}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("size", type=int)
    parser.add_argument("--repeat", type=int, default=5)
    options = parser.parse_args()
    print(json.dumps(run(measure, options.size, options.repeat)))


if __name__ == "__main__":
    main()
