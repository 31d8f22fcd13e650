"""Who dies when: a pure function of the seed, the options and the number of nodes.

Nodes are numbers of the plan, from 1; the root, 0, never dies by our hand, and no node dies twice.  Only
`random.Random.random` is drawn from, the one method whose sequence Python promises to keep.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

MONKEY_FIRST_S = 0.1
MONKEY_LAST_S = 30.0


@dataclass(frozen=True, slots=True)
class Kill:
    """One kill -9."""

    at_s: float
    """Counted from the moment when all nodes have joined."""
    node: int


def kills_at(seed: int, times_s: Sequence[float], nodes: int) -> list[Kill]:
    """One kill at each of these times (`--kill-at`), each of another node that the seed draws.

    Args:
        nodes: how many there are, the root among them; must be more than `len(times_s)`.
    """
    return _with_victims(Random(seed), times_s, nodes)


def monkey_kills(seed: int, nodes: int) -> list[Kill]:
    """The kills of the Chaos Monkey (`--chaos-monkey`): how many, when, and of whom is drawn.

    The number is uniform from 1 to `nodes - 1`.  The logarithm of each time is uniform between 0.1 s and 30 s, so that
    short programs meet a death as well as long ones: half of the times are below 1.7 s.

    Args:
        nodes: how many there are, the root among them; at least 2.
    """
    random = Random(seed)
    count = 1 + int(random.random() * (nodes - 1))
    spread = math.log(MONKEY_LAST_S / MONKEY_FIRST_S)
    times_s = [round(MONKEY_FIRST_S * math.exp(random.random() * spread), 3) for _ in range(count)]
    return _with_victims(random, times_s, nodes)


def _with_victims(random: Random, times_s: Sequence[float], nodes: int) -> list[Kill]:
    alive = list(range(1, nodes))
    return [Kill(at_s, alive.pop(int(random.random() * len(alive)))) for at_s in sorted(times_s)]
