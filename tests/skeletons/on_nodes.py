"""The program that `test_on_nodes.py` runs on clusters: every property, until a node has died, and once more.

In turns from a task, and from the program itself.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from itertools import cycle
from time import monotonic
from typing import Any

import hdphrs
from tests.skeletons.properties import PROPERTIES, Runner

EXAMPLES = 2
DEADLINE_S = 60.0


def directly(main: Callable[..., Any], *args: Any) -> Any:
    return main(*args)


def main() -> None:
    expected = int(sys.argv[1])
    print("begun", len(hdphrs.all_nodes()), flush=True)
    began_s = monotonic()
    runners: list[Runner] = [hdphrs.run, directly]
    for number, runner in enumerate(cycle(runners)):
        alive = len(hdphrs.all_nodes())
        for check in PROPERTIES.values():
            check(runner, EXAMPLES, 10 * expected + number)
        if alive == expected:
            print(f"result: {alive} nodes")
            break
        assert monotonic() - began_s < DEADLINE_S, "nobody has died"


if __name__ == "__main__":
    main()
