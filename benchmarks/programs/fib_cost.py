"""Measures, inside one task, fib with every call spawned against plain recursive fib; prints JSON.

hdphrs run --cores 1 benchmarks/programs/fib_cost.py 25 [--count]
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from types import FrameType
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


def bytecodes_of(fib: Fib, number: int) -> int:
    """How many bytecode instructions the call executes, in all Python code that it enters."""
    executed = 0

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal executed
        frame.f_trace_opcodes = True
        frame.f_trace_lines = False
        executed += event == "opcode"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        fib(number)
    finally:
        sys.settrace(before)
    return executed


def count(number: int) -> dict[str, Any]:
    """The task: the same in executed bytecodes, which do not depend on the machine."""
    return {
        "calls": 2 * plain_fib(number + 1) - 1,
        "plain_bytecodes": bytecodes_of(plain_fib, number),
        "spawned_bytecodes": bytecodes_of(spawned_fib, number),
    }


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("size", type=int)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--count", action="store_true")
    options = parser.parse_args()
    facts = run(count, options.size) if options.count else run(measure, options.size, options.repeat)
    print(json.dumps(facts))


if __name__ == "__main__":
    main()
