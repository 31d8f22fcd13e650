"""Prints how long an empty task takes that is placed on the other of two idle nodes, until its result is here, as JSON.

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


def trips_us(count: int) -> list[float]:
    """The task: so many round trips, one after the other."""
    (other,) = [node for node in all_nodes() if node != my_node()]
    trips = []
    for _ in range(WARM_UPS + count):
        began_s = perf_counter()
        get(spawn_at(other, noop))
        trips.append((perf_counter() - began_s) * 1e6)
    return trips[WARM_UPS:]


if __name__ == "__main__":
    trips = run(trips_us, int(sys.argv[1]))
    print(json.dumps({"median_us": median(trips), "least_us": min(trips)}))
