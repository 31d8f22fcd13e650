"""Random interleavings of work, messages, deaths, crashes, false suspicions, broken links, leaves and joins.

After each event the invariants hold, and in the end every future of the program is full (see
`hdphrs.explore.cluster`, and `stage.py` for what must hold when nothing is under way).  `tests/mutants` shows what
these plays catch.
"""

from __future__ import annotations

import random

from hypothesis import given, settings
from hypothesis import strategies as st

from hdphrs.explore.cluster import Cluster
from tests.protocol.play import Faults, Play, Scene

SEEDS = 250


@settings(derandomize=True, max_examples=300, deadline=None, database=None)
@given(
    numbers=st.lists(st.integers(0, 999), max_size=150),
    faults=st.builds(
        Faults,
        deaths=st.integers(0, 2),
        false_suspicions=st.integers(0, 1),
        cuts=st.integers(0, 1),
        crashes=st.integers(0, 2),
        blameless=st.integers(0, 1),
        joins=st.integers(0, 1),
        late=st.integers(0, 2),
        leaves=st.integers(0, 2),
    ),
    scene=st.builds(
        Scene,
        nodes=st.integers(3, 4),
        schedulers=st.integers(1, 2),
        root_works=st.booleans(),
        wander=st.booleans(),
        poison=st.booleans(),
        unsupervised=st.integers(0, 2),
        limited=st.integers(0, 1),
        fish_max=st.integers(1, 2),
        parked_max=st.integers(1, 3),
        calm=st.integers(0, 20),
        pace=st.integers(0, 12),
    ),
)
def test_every_future_is_filled_once_whatever_happens(numbers: list[int], faults: Faults, scene: Scene) -> None:
    Play(faults, scene).run(numbers)


def play(seed: int) -> Cluster:
    """A long play, with all that can go wrong; rerun one with `play(seed)`."""
    draw = random.Random(seed)
    faults = Faults(
        deaths=draw.choice([1, 2]),
        false_suspicions=draw.choice([0, 1]),
        cuts=draw.choice([0, 1]),
        crashes=1,
        blameless=1,
        joins=draw.choice([0, 1]),
        late=draw.choice([0, 2]),
        leaves=random.Random(f"leaves {seed}").choice([0, 0, 1, 2]),
    )
    scene = Scene(
        nodes=draw.choice([3, 4]),
        schedulers=draw.choice([1, 2]),
        sparks=draw.choice([1, 2, 3]),
        root_works=draw.random() < 0.5,
        wander=draw.random() < 0.3,
        poison=draw.random() < 0.3,
        unsupervised=draw.choice([0, 0, 2]),
        limited=random.Random(f"limited {seed}").choice([0, 0, 0, 0, 0, 0, 2]),
        fish_max=draw.choice([1, 2]),
        parked_max=draw.choice([1, 2, 3]),
        calm=draw.choice([0, 5, 20]),
        pace=draw.choice(range(13)),
        speculate=draw.random() < 0.3,
    )
    return Play(faults, scene).run(draw.randrange(1000) for _ in range(300))


def play_many(count: int) -> dict[str, int]:
    """The plays with seeds below `count`; the sum of all counters."""
    reached: dict[str, int] = {}
    for seed in range(count):
        for host in play(seed).hosts.values():
            for name, value in host.core.counters.items():
                reached[name] = reached.get(name, 0) + value
    return reached


def test_long_plays_reach_what_they_are_meant_to_check() -> None:
    """Not one of these may be vacuous: steals, re-creations, duplicates, stale replies, orphans, crashes, deaths."""
    reached = play_many(SEEDS)
    assert all(reached.values()), reached
