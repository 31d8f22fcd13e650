"""Who runs for long: samples of the stack."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from hdphrs.api import future as fast
from hdphrs.api.future import Future
from hdphrs.scheduler.watch import Watcher


class Clock:
    now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture(autouse=True)
def nobody_runs() -> Iterator[None]:
    yield
    fast.here.task = fast.watched = None


def stack(*parents: Future[int] | None) -> Future[int]:
    """A child of the last one."""
    future: Future[int] = Future()
    future._parent = parents[-1]
    return future


def test_future_that_is_seen_twice_is_watched_and_timed_from_the_first_time() -> None:
    clock = Clock()
    watcher = Watcher(clock)
    assigned = stack(None)
    outer = stack(assigned)
    inner = stack(outer)
    fast.here.task = inner
    watcher.look()
    assert fast.watched is None
    clock.now_s = 1.0
    watcher.look()
    assert fast.watched is inner
    clock.now_s = 1.5
    assert watcher.finished(inner) == (1.5, 1.5)
    assert fast.watched is outer
    clock.now_s = 2.0
    assert watcher.finished(outer) == (2.0, 2.0)
    assert fast.watched is None


def test_those_that_are_new_began_between_two_looks() -> None:
    clock = Clock()
    watcher = Watcher(clock)
    outer = stack(stack(None))
    fast.here.task = outer
    watcher.look()
    clock.now_s = 1.0
    fast.here.task = inner = stack(outer)
    watcher.look()
    clock.now_s = 2.0
    assert watcher.finished(inner) == (1.5, 1.0)


def test_only_the_outer_one_is_watched_if_the_inner_is_new() -> None:
    watcher = Watcher(Clock())
    outer = stack(stack(None))
    fast.here.task = stack(outer)
    watcher.look()
    fast.here.task = stack(outer)
    watcher.look()
    assert fast.watched is outer


def test_suspended_stack_is_watched_again_when_it_goes_on() -> None:
    clock = Clock()
    watcher = Watcher(clock)
    waiting, other = stack(stack(None)), stack(stack(None))
    fast.here.task = waiting
    watcher.look()
    watcher.look()
    sample = watcher.leave()
    assert fast.watched is None
    fast.here.task = other
    watcher.look()
    watcher.look()
    assert fast.watched is other
    watcher.resume(sample)
    assert fast.watched is waiting
    clock.now_s = 3.0
    assert watcher.finished(waiting) == (3.0, 3.0)


def test_future_that_ends_just_when_it_is_looked_at_costs_nothing() -> None:
    watcher = Watcher(Clock())
    assert watcher.finished(stack(stack(None))) == (0.0, 0.0)
    assert fast.watched is None
