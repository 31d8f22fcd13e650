"""Random interleavings of work, messages, deaths, crashes, false suspicions, broken links and joins.

After each event the invariants hold, and in the end every future of the program is full (see `harness.py`).  The
second half plants bugs, some of them the published protocol's own, and shows that the same plays catch them: a check
that nothing can fail proves nothing.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hdphrs.protocol.node import Node
from hdphrs.protocol.supervisor import Supervisor
from hdphrs.protocol.tasks import NodeId, Outcome, Spark, TaskRef
from hdphrs.protocol.victim import Victim
from tests.protocol.harness import Cluster
from tests.protocol.play import Faults, Play

SEEDS = 250


@settings(derandomize=True, max_examples=300, deadline=None, database=None)
@given(
    numbers=st.lists(st.integers(0, 999), max_size=150),
    nodes=st.integers(3, 4),
    schedulers=st.integers(1, 2),
    faults=st.builds(
        Faults,
        deaths=st.integers(0, 2),
        false_suspicions=st.integers(0, 1),
        cuts=st.integers(0, 1),
        crashes=st.integers(0, 2),
        blameless=st.integers(0, 1),
        joins=st.integers(0, 1),
    ),
    wander=st.booleans(),
)
def test_every_future_is_filled_once_whatever_happens(
    numbers: list[int], nodes: int, schedulers: int, faults: Faults, wander: bool
) -> None:
    Play(faults, nodes=nodes, schedulers=schedulers, wander=wander).run(numbers)


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
    )
    one = Play(
        faults,
        nodes=draw.choice([3, 4]),
        schedulers=draw.choice([1, 2]),
        sparks=draw.choice([1, 2]),
        wander=draw.random() < 0.2,
    )
    return one.run(draw.randrange(1000) for _ in range(300))


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


# ---- planted bugs --------------------------------------------------------------------------------------------


def orphans_go_back_into_the_pool(self: Node, sparks: list[Spark]) -> None:
    """R1."""
    self.pool.put_back(sparks)


def guards_outlive_their_supervisor(self: Victim, dead: NodeId) -> tuple[list[Any], int]:
    """R1."""
    return [], 0


def nothing_is_recreated(self: Supervisor, dead: NodeId) -> tuple[list[Spark], list[tuple[TaskRef, Outcome]]]:
    """No recovery at all."""
    return [], []


def replica_number_stays(self: Supervisor, dead: NodeId) -> tuple[list[Spark], list[tuple[TaskRef, Outcome]]]:
    """A copy that survives cannot be told from its re-creation."""
    right = RIGHT_ON_DEATH(self, dead)
    for spark in right[0]:
        self._records[spark.ref].replica = 0
    return [Spark(spark.ref, 0, spark.task, spark.crashes) for spark in right[0]], right[1]


def later_results_are_delivered_too(self: Supervisor, ref: TaskRef) -> bool:
    """R7."""
    self._records.pop(ref, None)
    return True


RIGHT_ON_DEATH = Supervisor.on_death


@pytest.mark.parametrize(
    ("owner", "method", "bug"),
    [
        (Node, "_put_back", orphans_go_back_into_the_pool),
        (Victim, "on_death", guards_outlive_their_supervisor),
        (Supervisor, "on_death", nothing_is_recreated),
        (Supervisor, "on_death", replica_number_stays),
        (Supervisor, "on_result", later_results_are_delivered_too),
    ],
    ids=lambda value: value.__name__ if callable(value) and not isinstance(value, type) else "",
)
def test_planted_bug_is_caught(
    monkeypatch: pytest.MonkeyPatch, owner: type, method: str, bug: Callable[..., Any]
) -> None:
    monkeypatch.setattr(owner, method, bug)
    with pytest.raises(AssertionError):
        play_many(SEEDS)
