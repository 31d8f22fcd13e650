"""Tasks of about ten milliseconds: prints how many seconds they took together.

python coarse.py COUNT
"""

from __future__ import annotations

import sys
from time import perf_counter, sleep

import hdphrs

STEPS = 300_000
"""About 10 ms of plain Python."""


def wait(number: int) -> int:
    """One task that is paced."""
    sleep(0.01)
    return number


def compute(number: int) -> int:
    """One task that computes."""
    total = number
    for step in range(STEPS):
        total = (total + step) & 0xFFFF
    return total


def main(count: int, how: str) -> int:
    """All of them."""
    work = {"paced": wait, "computed": compute}[how]
    return sum(map(hdphrs.get, [hdphrs.spawn(work, number) for number in range(count)]))


if __name__ == "__main__":
    started_s = perf_counter()
    hdphrs.run(main, int(sys.argv[1]), sys.argv[2])
    print(perf_counter() - started_s)
