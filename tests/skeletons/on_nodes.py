"""The program that `test_on_nodes.py` runs on clusters: every property, until a node has died, and once more."""

from __future__ import annotations

import sys
from time import monotonic

import hdphrs
from tests.skeletons.properties import PROPERTIES

EXAMPLES = 3
DEADLINE_S = 60.0


def main() -> None:
    expected = int(sys.argv[1])
    print("begun", len(hdphrs.all_nodes()), flush=True)
    began_s = monotonic()
    while True:
        alive = len(hdphrs.all_nodes())
        for check in PROPERTIES.values():
            check(hdphrs.run, EXAMPLES)
        if alive == expected:
            break
        assert monotonic() - began_s < DEADLINE_S, "nobody has died"
    print(f"result: {alive} nodes")


if __name__ == "__main__":
    main()
