"""Whom a node asks for tasks when one of its schedulers is hungry."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from math import inf
from types import SimpleNamespace
from typing import Any, cast

import pytest

from hdphrs.node.hunger import Hunger
from hdphrs.node.nudges import Nudges
from hdphrs.wire import local
from hdphrs.wire.page import Line, Page


class Waiting:
    """Stands in for a scheduler that has a task, and has been hungry."""

    def __init__(self, line: Line) -> None:
        self.process = SimpleNamespace(line=line)
        self.handed = {1: None}
        self.hungry = False
        self.fed = False
        self.asked_s = inf

    def begin(self) -> None:
        self.hungry = False


@pytest.fixture
def line() -> Iterator[Line]:
    with closing(Page.create(1)) as page:
        yield page.line(0)


@pytest.mark.parametrize(
    ("words", "demands"),
    [
        ([local.AHEAD, local.AGAIN], [False, True]),
        ([local.NOW], [False]),
        ([local.AHEAD, local.START, local.AGAIN], [False, None]),
        ([local.AHEAD, local.NOW, local.NOW], [False, True, False]),
    ],
    ids=["again", "nobody has asked ahead", "again, while something was on its way", "once"],
)
def test_who_has_asked_ahead_and_runs_nothing_now_has_the_others_asked_again(
    line: Line, words: list[int], demands: list[bool | None]
) -> None:
    """What they were asked for before, they had no reason to give back."""
    one: Any = Waiting(line)
    hunger = Hunger([one])
    hunger.nudges = cast(Nudges, SimpleNamespace(want=lambda: None))  # trio does not run
    hunger.demand(True)
    seen: list[bool | None] = []
    for word in words:
        if word == local.START:  # it gets something, and has not read it
            hunger.feed(one)
            continue
        line.demand = False
        seen.append(line.demand if hunger.starves(one, word) else None)
    assert seen == demands


def test_nobody_is_asked_again_if_nobody_is_hungry_whom_the_pool_cannot_feed(line: Line) -> None:
    one: Any = Waiting(line)
    hunger = Hunger([one])
    for word in (local.AHEAD, local.AGAIN):
        assert hunger.starves(one, word)
    assert not line.demand
