"""When a node that was cut off tries to join again."""

from __future__ import annotations

import pytest

from hdphrs.config import REJOIN_PAUSE_MAX_S, REJOIN_PAUSE_MIN_S
from hdphrs.node.member import STEADY_S, Comeback


def test_node_that_was_a_member_for_long_tries_at_once_and_for_as_long_as_it_may() -> None:
    comeback = Comeback(600.0, lambda: 1.0)
    assert not comeback.under_way
    assert comeback.lose(1000.0, STEADY_S)
    assert comeback.under_way
    assert comeback.pause_s() == 0.0
    assert comeback.left_s(1000.0) == 600.0
    assert comeback.left_s(1601.0) == 0.0


def test_failed_attempt_to_come_back_is_no_new_loss_and_gets_no_more_time() -> None:
    comeback = Comeback(600.0, lambda: 1.0)
    comeback.lose(1000.0, STEADY_S)
    assert not comeback.lose(1100.0, 0.0)
    assert comeback.left_s(1100.0) == 500.0


def test_node_that_is_back_has_all_its_time_again_when_it_is_lost_anew() -> None:
    comeback = Comeback(600.0, lambda: 1.0)
    comeback.lose(1000.0, STEADY_S)
    comeback.succeed()
    assert not comeback.under_way
    assert comeback.lose(1700.0, 1.0)
    assert comeback.left_s(1700.0) == 600.0


def test_node_that_is_declared_dead_again_and_again_rests_longer_each_time_up_to_a_bound() -> None:
    comeback = Comeback(600.0, lambda: 1.0)
    pauses = []
    for _ in range(9):
        comeback.lose(1000.0, 0.01)
        pauses.append(comeback.pause_s())
        comeback.succeed()
    assert pauses[0] == REJOIN_PAUSE_MIN_S
    assert pauses == sorted(pauses)
    assert pauses[-2:] == [REJOIN_PAUSE_MAX_S] * 2
    comeback.lose(1000.0, STEADY_S)
    assert comeback.pause_s() == 0.0


@pytest.mark.parametrize("chance", [0.0, 0.5, 1.0])
def test_nodes_that_were_lost_together_rest_for_different_times(chance: float) -> None:
    comeback = Comeback(600.0, lambda: chance)
    comeback.lose(1000.0, 1.0)
    assert comeback.pause_s() == pytest.approx(REJOIN_PAUSE_MIN_S * (1 + chance) / 2)
