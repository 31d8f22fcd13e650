"""How often a run is started again."""

from __future__ import annotations

from hdphrs.cluster.restarts import HOUR_S, Budget


class Clock:
    def __init__(self) -> None:
        self.now_s = 1000.0

    def __call__(self) -> float:
        return self.now_s


def test_restarts_are_bounded_within_any_hour() -> None:
    clock = Clock()
    budget = Budget(2, clock)
    assert budget.take() == 1
    clock.now_s += HOUR_S / 2
    assert budget.take() == 2
    assert budget.take() is None
    clock.now_s += HOUR_S / 2
    assert budget.take() == 2
    assert budget.take() is None


def test_no_restarts_are_none() -> None:
    assert Budget(0).take() is None
