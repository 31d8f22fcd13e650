"""The schedule of deaths is a pure function, and spares the root."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from hdphrs.chaos.schedule import MONKEY_FIRST_S, MONKEY_LAST_S, Kill, kills_at, monkey_kills

seeds = st.integers(min_value=0, max_value=2**53)
times = st.lists(st.floats(min_value=0, max_value=1e6), min_size=1, max_size=8)


def test_the_schedule_of_a_seed_never_changes() -> None:
    assert kills_at(42, (3.0, 5.5), 4) == [Kill(3.0, 2), Kill(5.5, 1)]
    assert monkey_kills(42, 4) == [Kill(0.115, 1), Kill(0.48, 3)]


@settings(deadline=None, derandomize=True)
@given(seed=seeds, times_s=times, spare=st.integers(min_value=0, max_value=5))
def test_kills_at_given_times_spare_the_root_and_hit_nobody_twice(seed: int, times_s: list[float], spare: int) -> None:
    nodes = len(times_s) + 1 + spare
    kills = kills_at(seed, times_s, nodes)
    assert [kill.at_s for kill in kills] == sorted(times_s)
    victims = [kill.node for kill in kills]
    assert len(set(victims)) == len(victims)
    assert all(1 <= victim < nodes for victim in victims)


@settings(deadline=None, derandomize=True)
@given(seed=seeds, nodes=st.integers(min_value=2, max_value=40))
def test_the_monkey_kills_at_least_one_and_never_the_root(seed: int, nodes: int) -> None:
    kills = monkey_kills(seed, nodes)
    assert 1 <= len(kills) <= nodes - 1
    assert len({kill.node for kill in kills}) == len(kills)
    assert all(1 <= kill.node < nodes for kill in kills)
    assert all(MONKEY_FIRST_S <= kill.at_s <= MONKEY_LAST_S for kill in kills)
    assert kills == sorted(kills, key=lambda kill: kill.at_s)


def test_every_number_of_deaths_and_every_victim_is_drawn_by_some_seed() -> None:
    drawn = [monkey_kills(seed, 4) for seed in range(200)]
    assert {len(kills) for kills in drawn} == {1, 2, 3}
    assert {kill.node for kills in drawn for kill in kills} == {1, 2, 3}
    early = sum(kill.at_s < 1.74 for kills in drawn for kill in kills)
    assert 0.4 < early / sum(len(kills) for kills in drawn) < 0.6
