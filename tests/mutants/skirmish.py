"""Short random plays with children, deaths and newcomers, and little else: many sparks change hands meanwhile.

What lives here: `skirmish`.  The long plays of `tests/protocol/test_interleavings.py` have everything, so a rare
coincidence of two things is rarer there.
"""

from __future__ import annotations

import random

from tests.protocol.play import Faults, Play, Scene


def skirmish(seed: int) -> None:
    """A short play; rerun one with `skirmish(seed)`."""
    draw = random.Random(seed)
    faults = Faults(
        deaths=draw.choice([1, 2]),
        cuts=draw.choice([0, 0, 1]),
        joins=draw.choice([0, 0, 2]),
        late=draw.choice([0, 0, 2]),
        blameless=draw.choice([0, 0, 8]),
    )
    scene = Scene(
        nodes=4,
        sparks=draw.choice([0, 1, 3, 6]),
        root_works=draw.random() < 0.3,
        wander=draw.random() < 0.7,
        nested=draw.choice([0, 1, 2, 3]),
        fish_max=draw.choice([1, 2, 3]),
        calm=draw.choice([3, 10, 20]),
        pace=draw.choice(range(13)),
    )
    Play(faults, scene).run(draw.randrange(1000) for _ in range(draw.choice([60, 120])))
