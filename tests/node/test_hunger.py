"""Whom a node asks for tasks when one of its schedulers is hungry."""

from __future__ import annotations

import pytest
import trio
from trio.testing import MockClock

from hdphrs.node.hunger import Hunger
from hdphrs.node.nudges import NUDGE_S
from hdphrs.node.scheduler import Scheduler
from hdphrs.wire import local
from tests.node.processless import handed


def asked_after(words: list[int], scheduler: Scheduler, *, wanted: bool) -> list[bool | None]:
    """Whether all are asked again after each word of hunger; None if the word does not count."""
    handed(scheduler, 1, b"a")

    async def main() -> list[bool | None]:  # nudges know what time it is
        hunger = Hunger([scheduler])
        hunger.demand(wanted)
        seen: list[bool | None] = []
        for word in words:
            if word == local.START:  # it gets something, and has not read it
                hunger.feed(scheduler)
                continue
            scheduler.process.line.demand = False
            seen.append(scheduler.process.line.demand if hunger.starves(scheduler, word) else None)
        return seen

    return trio.run(main, clock=MockClock())


@pytest.mark.parametrize(
    ("words", "asked"),
    [
        ([local.AHEAD, local.AGAIN], [False, True]),
        ([local.NOW], [False]),
        ([local.AHEAD, local.START, local.AGAIN], [False, None]),
        ([local.AHEAD, local.NOW, local.NOW], [False, True, False]),
    ],
    ids=["again", "nobody has asked ahead", "again, while something was on its way", "once"],
)
def test_who_has_asked_ahead_and_runs_nothing_now_has_the_others_asked_again(
    scheduler: Scheduler, words: list[int], asked: list[bool | None]
) -> None:
    """What they were asked for before, they had no reason to give back."""
    assert asked_after(words, scheduler, wanted=True) == asked


def test_nobody_is_asked_again_if_nobody_is_hungry_whom_the_pool_cannot_feed(scheduler: Scheduler) -> None:
    assert asked_after([local.AHEAD, local.AGAIN], scheduler, wanted=False) == [False, False]


def test_who_has_got_tasks_while_others_are_hungry_is_nudged_in_time(scheduler: Scheduler) -> None:
    clock = MockClock()

    async def main() -> list[bool]:
        hunger = Hunger([scheduler])
        due = []
        for wanted in (False, True):
            hunger.demand(wanted)  # it has nothing yet, so nobody is asked
            hunger.feed(scheduler)
            hunger.sent()
            scheduler.asked_s = 0.0
            clock.jump(2 * NUDGE_S)
            due.append(hunger.nudges.are_due)
        return due

    assert trio.run(main, clock=clock) == [False, True]
