"""Health care in a country of villages: each step patients fall ill, wait, are treated, or sent to the village above.

A task for each village of a step; their generators travel with them, so that the outcome is the same in any order.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

import hdphrs

SIZES = {"small": 3, "large": 5}

FAN = 3
"""Villages below each."""
PEOPLE = 12
BEDS = 3
STEPS = 24

ILL_PERCENT = 18
SENT_UP_PERCENT = 35
TREATMENT_STEPS = 3

Totals: TypeAlias = tuple[int, int, int, int, int]
"""People who are well, have waited (in steps), are in treatment, were sent up, were cured."""


@dataclass
class Village:
    """With all below it."""

    seed: int
    level: int
    below: list[Village]
    well: int = PEOPLE
    waiting: list[int] = field(default_factory=list)
    """Of each patient, since how many steps."""
    treated: list[int] = field(default_factory=list)
    """Of each patient, for how many more steps."""
    waited: int = 0
    sent: int = 0
    cured: int = 0

    def draw(self, percent: int) -> bool:
        """Whether something of this probability happens."""
        self.seed = (self.seed * 1_103_515_245 + 12_345) % 2_147_483_648
        return (self.seed >> 16) % 100 < percent


def village(level: int, seed: int) -> Village:
    """The same for everybody."""
    below = [village(level - 1, seed * FAN + child + 1) for child in range(FAN)] if level > 1 else []
    return Village(seed * 2_654_435_761 % 2_147_483_648, level, below)


def step(here: Village, *, parallel: bool) -> tuple[Village, int]:
    """The village one step later, and how many patients it sends up."""
    if parallel and here.level > 1:
        futures = [hdphrs.spawn(step, child, parallel=True) for child in here.below]
        found = [hdphrs.get(future) for future in futures]
    else:
        found = [step(child, parallel=False) for child in here.below]
    here.below = [child for child, _ in found]
    here.waiting += [0] * sum(sent for _, sent in found)
    ill = sum(here.draw(ILL_PERCENT) for _ in range(here.well))
    here.well -= ill
    here.waiting += [0] * ill
    here.treated = [left - 1 for left in here.treated]
    done = here.treated.count(0)
    here.treated = [left for left in here.treated if left]
    here.cured += done
    here.well += done
    up = 0
    while here.waiting and len(here.treated) < BEDS:
        here.waited += here.waiting.pop(0)
        if here.level < SIZES["large"] and here.draw(SENT_UP_PERCENT):
            up += 1
        else:
            here.treated.append(TREATMENT_STEPS)
    here.waiting = [steps + 1 for steps in here.waiting]
    here.sent += up
    return here, up


def totals(here: Village) -> Totals:
    """Over the village and all below it."""
    own = (here.well, here.waited, len(here.treated), here.sent, here.cured)
    parts = [own, *(totals(child) for child in here.below)]
    well, waited, treated, sent, cured = (sum(part) for part in zip(*parts, strict=True))
    return well, waited, treated, sent, cured


def simulate(size: int, *, parallel: bool) -> Totals:
    """The totals at the end."""
    top = village(size, 1)
    for _ in range(STEPS):
        top, _ = step(top, parallel=parallel)
    return totals(top)


def main(size: int) -> Totals:
    """With tasks."""
    return simulate(size, parallel=True)


def answer(size: int) -> Totals:
    """Without."""
    return simulate(size, parallel=False)
