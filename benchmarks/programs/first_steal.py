"""Prints the time at which the first result came from another node: seconds since the epoch.

hdphrs run --local-nodes 2 --cores 1 benchmarks/programs/first_steal.py
"""

from __future__ import annotations

import sys
import time

from hdphrs import get, my_node, run, spawn

TASK_S = 0.001
TASKS = 8
GIVE_UP_AFTER_S = 30.0


def work() -> int:
    """Keep a core busy for a moment, and say where."""
    end = time.perf_counter() + TASK_S
    while time.perf_counter() < end:
        pass
    return int(my_node())


def wait_for_thief() -> float:
    """The task: offer small tasks until another node has run one."""
    here = my_node()
    give_up_at = time.time() + GIVE_UP_AFTER_S
    while time.time() < give_up_at:
        offers = [spawn(work) for _ in range(TASKS)]
        for offer in offers:
            if get(offer) != here:
                return time.time()
    sys.exit(f"nobody has stolen anything in {GIVE_UP_AFTER_S:g} s")


if __name__ == "__main__":
    print(run(wait_for_thief))
