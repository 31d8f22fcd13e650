"""What the helper thread comes by for, with stand-ins for all else of the scheduler."""

from __future__ import annotations

import os
import select
import socket
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any, cast

import pytest

from hdphrs.api import future as fast
from hdphrs.protocol.tasks import Task
from hdphrs.scheduler.answers import LATE_S, Answers
from hdphrs.scheduler.habits import OVERDUE_TIMES, Habits
from hdphrs.scheduler.helper import TICK_S, Helper
from hdphrs.scheduler.links import Links
from hdphrs.wire.page import Page

OF_A_TASK: list[Any] = []

TASK = Task("f", bytes(16), b"code", b"")


class Bench:
    """A helper thread that is not started, and what it looks at."""

    def __init__(self) -> None:
        self.control, self._node = socket.socketpair()
        self.page = Page.create(1)
        self.answers = Answers(LATE_S, lambda: self.now_s)
        self.keeper: Any = SimpleNamespace(needs_looks=False, look_s=TICK_S, nodes=1, watcher=SimpleNamespace())
        self.stopper: Any = SimpleNamespace(stopping={}, stuck=list)
        self.bundles: Any = SimpleNamespace(
            may_be_late=lambda somebody_waits: False, have_news=False, look=lambda: None
        )
        self.timers: Any = SimpleNamespace(left_s=lambda: None)
        self.exporter: Any = SimpleNamespace(pace=SimpleNamespace(rest_until_s=0.0))
        self.voice: Any = []
        self.turn = Turn()
        self.somebody_idles = False
        self.now_s = 100.0
        self.habits = Habits(lambda: self.now_s)
        self.flushed = 0

    def helper(self, *, looks: bool = True) -> Helper:
        line, unread = self.page.line(0), cast(Any, None)
        line.run(1, careful=False, again=False)
        return Helper(
            self.control,
            line,
            Links(line),
            unread,
            self.exporter,
            self.keeper,
            None,
            self.stopper,
            self.answers,
            self.voice,
            self.timers,
            self.bundles,
            self.habits,
            self._flush,
            self.turn,
            lambda: self.somebody_idles,
            looks=looks,
        )

    def _flush(self) -> None:
        self.flushed += 1

    def close(self) -> None:
        self.control.close()
        self._node.close()
        self.page.close()


class Turn:
    """Of a task that may have to give way."""

    def __init__(self) -> None:
        self.others_wait = False
        self.interrupted = 0
        self.owed = 0

    def end(self) -> bool:
        return self.others_wait

    def interrupt(self) -> None:
        self.interrupted += 1


@pytest.fixture
def bench() -> Iterator[Bench]:
    bench = Bench()
    yield bench
    bench.close()


def pauses(helper: Helper, count: int = 4) -> list[int]:
    """In ticks, while one task follows the other."""
    found = []
    for _ in range(count):
        fast.here.ran += 1
        helper._tick()
        pause_ms = helper._pause_ms()
        assert pause_ms is not None
        found.append(round(pause_ms / TICK_S / 1000))
    for pipe in (helper._woken, helper._bell):
        os.close(pipe)
    return found


def late_results(bench: Bench) -> None:
    bench.answers.add(OF_A_TASK)
    bench.now_s += 1.0


def looks(bench: Bench) -> None:
    bench.keeper.needs_looks = True
    bench.keeper.watcher.look = bench.keeper.send_due = lambda: None


def late_bundle(bench: Bench) -> None:
    bench.bundles.may_be_late = lambda somebody_waits: True


def cancelled_task(bench: Bench) -> None:
    bench.stopper.stopping[1] = 0.0


def late_timer(bench: Bench) -> None:
    bench.timers.left_s = lambda: 0.0


def somebody_elses_turn(bench: Bench) -> None:
    bench.turn.others_wait = True


def something_said(bench: Bench) -> None:
    bench.voice.append("words")


@pytest.mark.parametrize(
    "what",
    [late_results, late_bundle, late_timer, cancelled_task, somebody_elses_turn, something_said],
    ids=lambda one: one.__name__,
)
def test_what_waits_for_it_makes_it_come_regularly(bench: Bench, what: Callable[[Bench], None]) -> None:
    what(bench)
    assert pauses(bench.helper(looks=False)) == [1, 1, 1, 1]


def test_looks_that_are_of_use_make_it_come_regularly(bench: Bench) -> None:
    looks(bench)
    assert pauses(bench.helper()) == [1, 1, 1, 1]


def test_if_nothing_waits_it_comes_more_and_more_rarely(bench: Bench) -> None:
    looks(bench)  # of which an unreliable run has none
    bench.answers.add(OF_A_TASK)  # which the main thread sends in time
    assert pauses(bench.helper(looks=False)) == [1, 2, 4, 4]
    assert not bench.flushed


def test_what_waits_for_the_end_of_a_late_task_goes_back_though_nobody_asks(bench: Bench) -> None:
    given: list[int] = []
    bench.exporter.give_back = lambda but: given.append(but)
    bench.exporter.export = lambda: None
    bench.turn.owed = 2
    bench.habits.learn(TASK, 0.5, 0)
    bench.habits.begin(TASK, bench.now_s)
    helper = bench.helper(looks=False)
    helper._mail = cast(Any, SimpleNamespace(holds_tasks=False))
    bench.now_s += OVERDUE_TIMES * 0.5 - 0.01
    helper._tick()
    assert given == [], "it may take as long as that"
    bench.now_s += 0.02
    pauses(helper, 1)
    assert given == [2], "but what is to run next stays"


@pytest.mark.parametrize("goes_on", [True, False])
@pytest.mark.parametrize("somebody_idles", [True, False])
def test_what_has_come_too_early_goes_back_if_somebody_has_nothing_to_do(
    bench: Bench, goes_on: bool, somebody_idles: bool
) -> None:
    looks(bench)
    sent_back: list[bool] = []
    bench.exporter.export = lambda: None
    bench.somebody_idles = somebody_idles
    if goes_on:
        bench.habits.learn(TASK, 1.0, 0)
        bench.habits.begin(TASK, bench.now_s)
    helper = bench.helper()
    helper._read_mail = lambda: None  # type: ignore[method-assign]
    helper._send_back = lambda *, urgent=True: sent_back.append(urgent)  # type: ignore[method-assign]
    pauses(helper, 1)
    fast.here.ran += 1  # so it cannot be told from how long nothing has changed
    bench.page.line(0).want(True)
    helper._answer_demand()
    assert bool(sent_back) == (goes_on and somebody_idles)


def test_results_that_the_main_thread_should_have_sent_are_sent(bench: Bench) -> None:
    late_results(bench)
    pauses(bench.helper(looks=False), 1)
    assert bench.flushed == 1


def test_results_for_which_somebody_may_wait_are_sent_at_the_next_tick(bench: Bench) -> None:
    bench.keeper.nodes = 2
    bench.answers.add(OF_A_TASK)
    assert pauses(bench.helper(looks=False)) == [1, 1, 1, 1]
    assert bench.flushed == 4, "the stand-in sends nothing"


def test_whoever_sets_a_timer_wakes_it_if_it_would_come_late(bench: Bench) -> None:
    helper = bench.helper(looks=False)
    woken = select.poll()
    woken.register(helper._woken, select.POLLIN)
    helper._pause_ms()
    helper.hurry()
    assert not woken.poll(0)
    pauses_ms = [helper._pause_ms() for fast.here.ran in range(3)]
    assert pauses_ms[-1] == round(4000 * TICK_S)
    helper.hurry()
    assert woken.poll(0)
    assert helper._pause_ms() == round(1000 * TICK_S)
    for pipe in (helper._woken, helper._bell):
        os.close(pipe)
