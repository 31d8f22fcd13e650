"""Tasks that compute for a fixed processor time each, flat in one task or as the leaves of a binary tree.

hdphrs run --cores 2 benchmarks/programs/timed.py flat 1000 2

Whatever the machine's speed is just now, the work takes what it takes, so the rest of the time is what hdphrs takes.
Prints the seconds from the first spawn to the last result.
"""

from __future__ import annotations

import sys
from time import perf_counter, thread_time

import hdphrs


def work(milliseconds: float) -> int:
    """One task."""
    end_s = thread_time() + milliseconds / 1e3
    while thread_time() < end_s:
        pass
    return 1


def flat(count: int, milliseconds: float) -> int:
    """How many tasks have run."""
    return sum(map(hdphrs.get, [hdphrs.spawn(work, milliseconds) for _ in range(count)]))


def tree(count: int, milliseconds: float) -> int:
    """The same, each half of them in a task of its own."""
    if count == 1:
        return work(milliseconds)
    halves = [hdphrs.spawn(tree, part, milliseconds) for part in (count // 2, count - count // 2)]
    return sum(map(hdphrs.get, halves))


def main(shape: str, count: int, milliseconds: float) -> float:
    """How long it all takes, in seconds."""
    began_s = perf_counter()
    ran = (flat if shape == "flat" else tree)(count, milliseconds)
    assert ran == count, f"{ran} tasks have run instead of {count}"
    return perf_counter() - began_s


if __name__ == "__main__":
    print(hdphrs.run(main, sys.argv[1], int(sys.argv[2]), float(sys.argv[3])))
