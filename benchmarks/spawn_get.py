"""The cost of a task that nobody steals: spawn and get, against a plain call.

fib(25) with every call spawned does next to nothing but spawn and get, 242785 times.  On one core there is no
thief, which gives the pure cost; on two, a thief asks for sparks all the time.  `instructions.py` counts what a clock
cannot show on a busy machine.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from benchmarks.figures import Budget, Figure
from benchmarks.launch import HDPHRS_RUN, PROGRAMS, launch

SIZE = "25"
PROGRAM = str(PROGRAMS / "fib_cost.py")


def measure(repeat: int) -> Iterator[Figure]:
    """Microseconds that spawn + get add to a call, and the ratio of the whole; on 1 and on 2 cores."""
    for cores in (1, 2):
        run = launch([*HDPHRS_RUN, "--cores", str(cores), PROGRAM, SIZE, "--repeat", str(repeat)])
        facts = json.loads(run.last_line)
        pairs = list(zip(facts["spawned_s"], facts["plain_s"], strict=True))
        added_us = tuple((spawned - plain) / facts["calls"] * 1e6 for spawned, plain in pairs)
        ratios = tuple(spawned / plain for spawned, plain in pairs)
        in_budget = cores == 1
        where = f"{cores} core{'s' if cores > 1 else ''}"
        yield Figure(f"spawn + get, {where}", "us", added_us, Budget(1.0) if in_budget else None)
        yield Figure(f"spawned fib / plain fib, {where}", "x", ratios, Budget(15.0) if in_budget else None)
