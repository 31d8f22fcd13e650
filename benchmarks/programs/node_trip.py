"""Prints how long an empty task takes, on the other of two idle nodes and on the same, until its result is here: JSON.

hdphrs run --local-nodes 2 --cores 1 benchmarks/programs/node_trip.py COUNT
"""

from __future__ import annotations

import json
import sys
from statistics import median
from time import perf_counter

from hdphrs import all_nodes, get, my_node, run, spawn_at

WARM_UPS = 20


def noop() -> None:
    """The smallest task."""


def trips_us(count: int) -> tuple[list[float], list[float]]:
    """The task: so many round trips, one after the other, to the other node and to this one in turn."""
    here = my_node()
    (other,) = [node for node in all_nodes() if node != here]
    trips: dict[int, list[float]] = {other: [], here: []}
    for _ in range(WARM_UPS + count):
        for node in (other, here):
            began_s = perf_counter()
            get(spawn_at(node, noop))
            trips[node].append((perf_counter() - began_s) * 1e6)
    return trips[other][WARM_UPS:], trips[here][WARM_UPS:]


if __name__ == "__main__":
    away, own = run(trips_us, int(sys.argv[1]))
    print(json.dumps({"median_us": median(away), "least_us": min(away), "own_us": median(own)}))
