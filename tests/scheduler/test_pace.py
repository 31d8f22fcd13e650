"""How much leaves a scheduler, by what it has turned out to be worth (decision 17)."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from hdphrs.scheduler.pace import AWAY_S, EXPORT_MAX, PAYS, REST_S_MAX, SHARE, Pace

EXPORT_S = 6e-5
SPARK_S = 15e-6
"""What an export takes, and each spark of it."""


class Scheduler:
    """Exports whenever it may, of tasks that all cost the same, and come back at once or never."""

    def __init__(self) -> None:
        self.now_s = 1.0
        self.pace = Pace(lambda: self.now_s)
        self.exported = 0
        self.spent_s = 0.0

    def ask(self) -> list[int]:
        """Somebody is hungry; the slots of what leaves."""
        most = self.pace.allow()
        slots = list(range(self.exported, self.exported + most))
        if most:
            took_s = EXPORT_S + SPARK_S * most
            self.exported += most
            self.now_s += took_s
            self.spent_s += took_s
            self.pace.left(slots, took_s)
        return slots

    def feed(self, cost_s: float, times: int, every_s: float = 1e-3) -> None:
        """Somebody is hungry again and again, and gets tasks that cost so much."""
        for _ in range(times):
            slots = self.ask()
            self.now_s += every_s
            for slot in slots:
                self.pace.came_back(slot, cost_s)


def test_exports_that_pay_double_up_to_the_bound() -> None:
    scheduler = Scheduler()
    sizes = []
    for _ in range(8):
        slots = scheduler.ask()
        sizes.append(len(slots))
        for slot in slots:
            scheduler.pace.came_back(slot, 0.01)
    assert sizes == [1, 2, 4, 8, 16, 32, EXPORT_MAX, EXPORT_MAX]


def test_tiny_tasks_take_a_small_share_of_the_time_and_leave_one_by_one() -> None:
    scheduler = Scheduler()
    scheduler.feed(1e-6, 100)
    assert scheduler.pace.is_resting
    began_s, exported, spent_s = scheduler.now_s, scheduler.exported, scheduler.spent_s
    scheduler.feed(1e-6, 1000)
    assert scheduler.spent_s - spent_s <= 1.01 * SHARE * (scheduler.now_s - began_s)
    assert scheduler.exported - exported == pytest.approx((scheduler.spent_s - spent_s) / (EXPORT_S + SPARK_S))


def test_few_tiny_tasks_leave_before_it_is_known_that_they_are() -> None:
    scheduler = Scheduler()
    scheduler.feed(1e-6, 100, every_s=1e-5)
    assert scheduler.exported < EXPORT_MAX


def test_credit_is_gone_when_some_have_come_back() -> None:
    """Seven tiny ones leave, and one more by which it is seen that this does not pay."""
    scheduler = Scheduler()
    for _ in range(4):
        for slot in scheduler.ask():
            scheduler.pace.came_back(slot, 1e-6)
    assert scheduler.exported == 1 + 2 + 4 + 1
    assert scheduler.pace.is_resting


def test_what_pays_only_if_many_leave_together_gets_that_far() -> None:
    """One alone takes longer to export than it is worth, one of many does not."""
    scheduler = Scheduler()
    for _ in range(5):
        scheduler.feed(PAYS * (EXPORT_S + SPARK_S) / 2, 1)
    assert not scheduler.pace.is_resting
    assert len(scheduler.ask()) == 32


def test_first_dear_task_after_tiny_ones_ends_the_rest() -> None:
    scheduler = Scheduler()
    scheduler.feed(1e-6, 1000)
    while not (slots := scheduler.ask()):
        scheduler.now_s += 1e-3
    assert scheduler.pace.is_resting
    assert scheduler.pace.came_back(slots[0], 0.05)
    assert scheduler.ask()
    assert len(scheduler.ask()) == 2


def test_task_that_stays_away_for_long_is_not_tiny() -> None:
    scheduler = Scheduler()
    scheduler.feed(1e-6, 1000)
    while not scheduler.ask():
        scheduler.now_s += 1e-3
    scheduler.now_s += 2 * max(AWAY_S, REST_S_MAX)
    sizes = [len(scheduler.ask()) for _ in range(4)]
    assert sizes == [1, 2, 4, 8]


FIRST_REST_S = (EXPORT_S + SPARK_S) / SHARE


def rests(scheduler: Scheduler, count: int, every_s: float = 0.0) -> list[float]:
    """How long the next so many last, of a scheduler whose exports do not pay."""
    rests_s: list[float] = []
    while len(rests_s) < count:
        scheduler.feed(1e-6, 1, every_s)
        if scheduler.pace.is_resting:
            rests_s.append(scheduler.pace.rest_until_s - scheduler.now_s)
            scheduler.now_s = scheduler.pace.rest_until_s
    return rests_s


def test_the_longer_nothing_pays_the_longer_are_the_rests() -> None:
    rests_s = rests(Scheduler(), 6)
    expected_s = [min(FIRST_REST_S * 2**number, REST_S_MAX) for number in range(6)]
    assert rests_s == pytest.approx(expected_s)
    assert rests_s[-1] == pytest.approx(REST_S_MAX)


def test_dear_export_that_does_not_pay_takes_no_more_than_its_share() -> None:
    scheduler = Scheduler()
    rests(scheduler, 6)
    assert scheduler.pace.allow() == 1
    scheduler.pace.left([10**6], 0.05)
    assert scheduler.pace.rest_until_s - scheduler.now_s == pytest.approx(0.05 / SHARE)


def test_rests_are_short_again_after_something_has_paid() -> None:
    scheduler = Scheduler()
    rests(scheduler, 6)
    scheduler.pace.came_back(scheduler.ask()[0], 0.01)
    assert rests(scheduler, 1) == pytest.approx([FIRST_REST_S])


def test_rests_are_short_again_after_nobody_was_hungry_for_a_while() -> None:
    scheduler = Scheduler()
    rests(scheduler, 6)
    scheduler.now_s += 2 * REST_S_MAX
    assert rests(scheduler, 1) == pytest.approx([FIRST_REST_S])


def sent_together(scheduler: Scheduler, back: Sequence[int]) -> int:
    """Eight tasks leave at once, and some are back, one after the other, and were tiny; how many may leave then."""
    scheduler.pace.left(list(range(8)), 8 * EXPORT_S)
    for slot in back:
        scheduler.now_s += AWAY_S / 2
        scheduler.pace.came_back(slot, 1e-6)
    return scheduler.pace.allow()


def test_tiny_task_that_waits_for_its_turn_is_not_taken_for_one_that_takes_long() -> None:
    assert sent_together(Scheduler(), range(7)) == 1


def test_task_that_others_have_overtaken_takes_long() -> None:
    assert sent_together(Scheduler(), range(1, 8)) == 2


def test_large_task_pays_for_tiny_ones_that_left_with_it() -> None:
    """Divide and conquer: the oldest is large, and the small ones are back long before it."""
    scheduler = Scheduler()
    scheduler.feed(0.05, 4)
    scheduler.feed(1e-6, 2)
    assert not scheduler.pace.is_resting
    assert len(scheduler.ask()) > 8


def test_what_was_not_exported_says_nothing() -> None:
    scheduler = Scheduler()
    scheduler.feed(1e-6, 1000)
    assert not scheduler.pace.came_back(10**6, 100.0)
    assert not scheduler.pace.came_back(0, 100.0)  # it has come back before
    assert scheduler.pace.is_resting


def test_cancelled_task_is_not_taken_for_one_that_stays_away() -> None:
    scheduler = Scheduler()
    scheduler.feed(1e-6, 1000)
    while not (slots := scheduler.ask()):
        scheduler.now_s += 1e-3
    scheduler.pace.forget(slots)
    scheduler.now_s += 1.0
    assert len(scheduler.ask()) == 1
    assert scheduler.pace.is_resting
