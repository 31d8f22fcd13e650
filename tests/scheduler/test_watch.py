"""Who runs for long: samples of the stack."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from hdphrs.api import future as fast
from hdphrs.api.future import Future
from hdphrs.config import PIECE_COST_S
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


def looks(child_s: float, look_s: float = 0.03, count: int = 50) -> list[bool]:
    """What is seen of children of this length, one after the other in one task."""
    wall = Clock()
    watcher = Watcher(Clock(), wall)
    parent = stack(None)
    seen, number, child = [], -1, parent
    for look in range(1, count + 1):
        wall.now_s = look * look_s
        if number != (number := int(wall.now_s / child_s)):
            child = stack(parent)
        fast.here.ran = number
        fast.here.task = child
        watcher.look()
        seen.append(watcher.sees_much)
    return seen[1:]


def test_short_children_are_not_much_to_see_however_rarely_one_looks() -> None:
    assert not any(looks(PIECE_COST_S / 2))
    assert not any(looks(PIECE_COST_S / 2, look_s=0.12))


def test_children_that_may_become_pieces_are_though_each_of_them_is_seen_but_once() -> None:
    for look_s in (0.03, 0.06, 0.12):
        assert any(looks(PIECE_COST_S, look_s))
        assert any(looks(1.5 * PIECE_COST_S, look_s))


def test_child_of_a_child_is_though_at_looks_that_are_rare_nothing_is_seen_twice() -> None:
    wall = Clock()
    watcher = Watcher(Clock(), wall)
    for _ in range(3):
        wall.now_s += 0.12
        fast.here.ran += 100
        fast.here.task = stack(stack(stack(None)))
        watcher.look()
        assert watcher.sees_much


def test_task_without_children_is_not() -> None:
    wall = Clock()
    watcher = Watcher(Clock(), wall)
    fast.here.task = stack(None)
    watcher.look()
    wall.now_s = 1.0
    watcher.look()
    assert not watcher.sees_much


def test_whoever_is_on_the_stack_twice_is_though_what_has_ended_was_short() -> None:
    wall = Clock()
    watcher = Watcher(Clock(), wall)
    fast.here.task = stack(stack(None))
    for look in range(3):
        wall.now_s += 0.03
        fast.here.ran += 100
        watcher.look()
        assert watcher.sees_much is (look > 0)


def test_one_look_that_sees_little_is_none() -> None:
    wall = Clock()
    watcher = Watcher(Clock(), wall)
    parent = stack(None)
    seen = []
    for child in (stack(stack(parent)), stack(parent), stack(parent)):
        wall.now_s += 0.03
        fast.here.ran += 100
        fast.here.task = child
        watcher.look()
        seen.append(watcher.sees_much)
    assert seen == [True, True, False]
