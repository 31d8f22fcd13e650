"""Who is nudged, and how often; in virtual time."""

from __future__ import annotations

from math import inf
from time import perf_counter
from types import SimpleNamespace
from typing import cast

import trio
from trio.testing import MockClock

from hdphrs.node.nudges import NUDGE_S, Nudges
from hdphrs.node.scheduler import Scheduler
from hdphrs.wire.page import SPEAK


class Busy:
    """Stands in for a scheduler that got a task a second ago, and has not answered the demand byte."""

    def __init__(self, *, running: int = 1, hungry: bool = False, owes: bool = True, asked_s: float = 1.0) -> None:
        self.process = SimpleNamespace(line=SimpleNamespace(running=running))
        self.handed = {1: None}
        self.hungry = hungry
        self.owes_an_answer = owes
        self.asked_s = perf_counter() - asked_s
        self.asked: list[bytes] = []

    def ask(self, what: bytes) -> None:
        self.asked.append(what)


def nudged(*schedulers: Busy, rounds: int = 1) -> Nudges:
    """After so many times that somebody wanted something."""
    nudges = Nudges([cast(Scheduler, one) for one in schedulers])

    async def main() -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(nudges.run)
            for _ in range(rounds):
                nudges.want()
                await trio.sleep(2 * NUDGE_S)
            nursery.cancel_scope.cancel()

    trio.run(main, clock=MockClock(autojump_threshold=0))
    return nudges


def test_who_is_deep_in_a_task_and_has_not_answered_is_nudged_once() -> None:
    one = Busy()
    nudged(one, rounds=3)
    assert one.asked == [SPEAK]
    assert one.asked_s == inf


def test_nobody_else_is_nudged() -> None:
    others = [Busy(owes=False), Busy(hungry=True), Busy(running=0), Busy(asked_s=-3600.0)]
    nudged(*others, rounds=3)
    assert not any(one.asked for one in others)


def test_a_nudge_is_due_when_somebody_has_had_time_to_answer_and_trio_has_not_had_its_turn() -> None:
    late, soon = Busy(), Busy(asked_s=-3600.0)

    async def main() -> None:
        for one, is_due in ((late, True), (soon, False)):
            nudges = Nudges([cast(Scheduler, one)])
            assert not nudges.are_due
            nudges.want(0.0)
            assert nudges.are_due is is_due

    trio.run(main, clock=MockClock())
