"""Spans of synthetic programs, whose work and chains are known, by a clock that only they advance."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from hdphrs.api import future as fast
from hdphrs.api.future import Future, get, spawn, state, take
from hdphrs.protocol.tasks import PROGRAM, ROOT, Spark, Task, TaskRef
from hdphrs.scheduler.assigned import Assigned
from hdphrs.scheduler.meter import Account, Meter
from hdphrs.scheduler.note import FUNCTIONS_MAX, plain
from hdphrs.scheduler.strands import OTHERS, Strands
from hdphrs.wire import local
from hdphrs.wire.page import Page


class Core:
    """A scheduler without a node."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self.page = Page.create(1)
        self.meter = Meter(self.page.line(0), lambda: self.now_s)
        self.strands = Strands(self.meter)

    def work(self, seconds: float) -> None:
        self.now_s += seconds

    def export(self) -> None:
        """The port's: a spark has just been made."""
        self.strands.wrap(fast.sparks[-1])

    def begin(self, task: Future[Any]) -> Account:
        account = self.meter.open(task)
        self.strands.begin(account)
        self.meter.enter(account)
        task._spawned = 0
        fast.here.task = task
        return account

    def end(self, task: Future[Any], account: Account) -> float:
        fast.here.task = None
        self.meter.enter(None)
        self.meter.close(task)
        return self.strands.end(account, "main")

    def measure(self, main: Callable[[], object]) -> tuple[float, float]:
        """Work and span of a task."""
        task = assigned()
        account = self.begin(task)
        main()
        span_s = self.end(task, account)
        return account.ran_s, span_s


def assigned() -> Assigned:
    return Assigned(1, Spark(TaskRef(ROOT, PROGRAM, 1), 0, Task("f", b"\0", b"", b"")))


@pytest.fixture
def core(monkeypatch: pytest.MonkeyPatch) -> Iterator[Core]:
    core = Core()
    monkeypatch.setattr(fast, "demand", True)
    monkeypatch.setattr(state, "port", core, raising=False)
    yield core
    fast.sparks.clear()
    fast.here.task = None
    core.page.close()


def test_tasks_that_wait_for_each_other_are_one_chain(core: Core) -> None:
    def chain(length: int) -> None:
        core.work(1.0)
        if length > 1:
            get(spawn(chain, length - 1))

    assert core.measure(lambda: chain(10)) == (10.0, 10.0)


def test_balanced_tree_has_the_span_of_one_path(core: Core) -> None:
    def tree(depth: int) -> None:
        core.work(0.25)
        if depth == 0:
            core.work(1.0)
            return
        left = spawn(tree, depth - 1)
        tree(depth - 1)
        get(left)

    work_s, span_s = core.measure(lambda: tree(6))
    assert work_s == 2**6 * 1.0 + (2**7 - 1) * 0.25
    assert span_s == pytest.approx(6 * 0.25 + 0.25 + 1.0)


def test_map_has_the_span_of_its_longest_task_behind_the_spawns_before_it(core: Core) -> None:
    def parallel() -> None:
        futures = []
        for took_s in (3.0, 1.0, 8.0, 2.0):
            core.work(0.5)
            futures.append(spawn(core.work, took_s))
        for future in futures:
            get(future)
        core.work(1.0)

    assert core.measure(parallel) == (17.0, 3 * 0.5 + 8.0 + 1.0)


def test_rounds_add_up(core: Core) -> None:
    def rounds() -> None:
        for _ in range(3):
            for future in [spawn(core.work, 2.0), spawn(core.work, 5.0)]:
                get(future)

    assert core.measure(rounds) == (21.0, 15.0)


def test_task_that_raises_has_a_span_too(core: Core) -> None:
    def fail() -> None:
        core.work(2.0)
        raise ZeroDivisionError

    def parent() -> None:
        with pytest.raises(ZeroDivisionError):
            get(spawn(fail))

    assert core.measure(parent) == (2.0, 2.0)


def test_value_from_elsewhere_brings_its_span(core: Core) -> None:
    task = assigned()
    account = core.begin(task)
    core.work(1.0)
    away = spawn(core.work, 0.0)
    assert take(away) is not None
    core.work(2.0)
    core.strands.joined(away, 9.0)
    core.strands.joined(away, 99.0)
    core.work(0.5)
    assert core.end(task, account) == 1.0 + 9.0 + 0.5


def test_time_for_which_a_task_is_set_aside_is_nobodys(core: Core) -> None:
    waiting = assigned()
    account = core.begin(waiting)
    core.work(1.0)
    child = spawn(core.work, 0.0)
    assert plain(take(child) or print) == core.work
    core.meter.enter(None)  # it is set aside, and another task of this core runs the child
    core.work(50.0)
    own = assigned()
    other = core.begin(own)
    core.work(4.0)
    core.strands.joined(child, core.end(own, other))
    core.meter.enter(account)
    core.work(1.0)
    assert core.end(waiting, account) == 1.0 + 4.0 + 1.0


def test_functions_are_counted_with_their_own_time_and_recursion_is_not_counted_twice(core: Core) -> None:
    def leaf() -> None:
        core.work(1.0)

    def down(depth: int) -> None:
        core.work(2.0)
        if depth:
            get(spawn(down, depth - 1))
        else:
            get(spawn(leaf))

    def main() -> None:
        core.work(4.0)
        for _ in range(2):
            get(spawn(down, 2))

    core.measure(main)
    (message,) = core.strands.gathered()
    kind, rows = message
    assert kind == local.CALLS
    assert {name.split(".")[-1]: figures for name, *figures in rows} == {
        "leaf": [2.0, 2.0, 2.0],
        "down": [6.0, 14.0, 12.0],
        "main": [1.0, 18.0, 4.0],
    }
    assert core.strands.gathered() == []


def test_a_function_that_fails_is_counted_too_and_too_many_have_one_name(core: Core) -> None:
    def fail() -> None:
        core.work(1.0)
        raise ValueError("mine")

    def main() -> None:
        with pytest.raises(ValueError, match="mine"):
            get(spawn(fail))
        for number in range(FUNCTIONS_MAX + 10):
            one = lambda: core.work(0.5)  # noqa: E731
            one.__qualname__ = f"one{number}"
            get(spawn(one))

    core.measure(main)
    (message,) = core.strands.gathered()
    _, rows = message
    counted = {name.split(".")[-1]: figures for name, *figures in rows}
    assert counted["fail"] == [1.0, 1.0, 1.0]
    assert len(counted) <= FUNCTIONS_MAX + 1
    assert sum(figures[2] for figures in counted.values()) == pytest.approx(1.0 + 0.5 * (FUNCTIONS_MAX + 10))
    assert counted[OTHERS][0] >= 10
