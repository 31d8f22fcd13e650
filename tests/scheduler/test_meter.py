"""For how long tasks run, and how much work is behind a value."""

from __future__ import annotations

from typing import Any

import pytest

from hdphrs.api.future import Future
from hdphrs.scheduler.meter import Account, Meter, Share
from hdphrs.wire.page import Page


class Clock:
    now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def page() -> Any:
    page = Page.create(1)
    yield page
    page.close()


def child(parent: Future[Any] | None) -> Future[Any]:
    future: Future[Any] = Future()
    future._parent = parent
    return future


def test_only_the_running_stack_is_charged(page: Page) -> None:
    clock, line = Clock(), page.line(0)
    meter = Meter(line, clock)
    one, other = meter.open(child(None)), meter.open(child(None))
    meter.enter(one)
    clock.now_s += 2
    assert meter.ran_s() == 2
    meter.enter(other)
    clock.now_s += 3
    meter.enter(None)
    clock.now_s += 5
    meter.enter(one)
    assert (one.cost_s, other.cost_s, meter.ran_s()) == (2, 3, 2)


def test_a_stack_may_have_begun_and_ended_a_moment_ago(page: Page) -> None:
    clock, line = Clock(), page.line(0)
    meter = Meter(line, clock)
    account = meter.open(child(None))
    meter.enter(account, clock.now_s - 4)
    clock.now_s += 2
    assert meter.ran_s() == 6
    assert line.busy_up_to(clock.now_s) == 6
    meter.enter(None, clock.now_s - 1)
    clock.now_s += 3
    assert account.cost_s == line.busy_s == line.busy_up_to(clock.now_s) == 5


def test_page_tells_of_the_running_task_too(page: Page) -> None:
    clock, line = Clock(), page.line(0)
    meter = Meter(line, clock)
    meter.enter(meter.open(child(None)))
    clock.now_s += 2
    assert line.busy_up_to(clock.now_s) == 2
    meter.enter(None)
    clock.now_s += 3
    assert line.busy_up_to(clock.now_s) == 2


def test_value_from_elsewhere_counts_for_all_tasks_above_it(page: Page) -> None:
    meter = Meter(page.line(0))
    bottom = child(None)
    account = meter.open(bottom)
    outer = child(bottom)
    inner = child(outer)
    meter.credit(child(inner), 10.0, Share(4.0, 1.0))
    meter.credit(child(outer), 2.0)
    assert (account.own_s, account.here_s, account.other_s) == (4.0, 1.0, 7.0)
    assert account.below_s == {inner: 10.0, outer: 12.0}


def test_value_that_nobody_wants_any_more_counts_for_nobody(page: Page) -> None:
    meter = Meter(page.line(0))
    bottom = child(None)
    account = meter.open(bottom)
    assert meter.close(bottom) is account
    meter.credit(child(bottom), 1.0)
    assert account.cost_s == 0


def test_share_leaves_once() -> None:
    account = Account()
    account.own_s, account.here_s, account.other_s = 3.0, 2.0, 1.0
    assert account.give(4.0, 3.0) == Share(3.0, 1.0)
    assert account.give(4.0, 3.0) == Share(0.0, 1.0)
    assert account.cost_s == 6.0


def test_pieces_that_have_left_count_for_what_is_around_them() -> None:
    account = Account()
    for at_s, ran_s in (1.0, 0.5), (2.0, 0.3), (3.0, 0.7):
        account.ran_s = at_s
        account.give(ran_s, ran_s)
    account.ran_s = 3.5
    assert account.left(0.2) == (3.5, 0.0, 0.0)
    assert account.left(2.4) == (3.5, 1.0, 0.7)
    account.ran_s = 4.0
    assert account.left(0.4) == (4.0, 0.0, 0.0)
    assert account.left(4.0) == (4.0, 1.5, 0.7)
    account.give(4.0, 4.0)
    assert account.left(4.0) == (4.0, 4.0, 4.0)


def test_stack_that_enters_its_account_again_has_had_the_core_all_the_time() -> None:
    """As it does when a child has ended whose value is kept."""
    now_s = [10.0]
    page = Page.create(1)
    meter = Meter(page.line(0), lambda: now_s[0])
    one, other = Account(), Account()
    for account, since_s in ((one, 10.0), (one, 10.0), (None, 12.0), (one, 13.0), (other, 14.0)):
        meter.enter(account)
        assert meter.stack_since_s == since_s
        now_s[0] += 1.0
    page.close()
