"""When a node may look out for what its schedulers say, and what it does when one is hungry."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from math import inf
from types import SimpleNamespace
from typing import Any

import pytest

from hdphrs.node import crew
from hdphrs.node.crew import Crew
from hdphrs.protocol.events import Hungry
from hdphrs.protocol.tasks import Origin
from hdphrs.wire import local
from hdphrs.wire.page import Page
from hdphrs.wire.settings import NodeSettings


@pytest.fixture
def one() -> Iterator[Crew]:
    """Without schedulers."""
    settings = NodeSettings(root=True, host="here", slots=1, secret=b"")
    with closing(Page.create(1)) as page:
        one = Crew(page, [], settings=settings, say=print)
        with closing(one.exchange):
            yield one


@pytest.mark.parametrize(("cores", "idle", "has_core"), [(2, True, True), (2, False, False), (1, True, False)])
def test_it_takes_the_core_of_a_scheduler_that_waits_and_of_nobody_else(
    one: Crew, monkeypatch: pytest.MonkeyPatch, cores: int, idle: bool, has_core: bool
) -> None:
    monkeypatch.setattr(crew, "usable_cores", lambda: cores)
    one.tell_nodes([[0, "here", 1], [1, "here", 1]])
    waits: Any = SimpleNamespace(is_idle=idle)
    one._schedulers[Origin(1)] = waits
    assert one._has_core() is has_core


@pytest.mark.parametrize(
    ("words", "demands"),
    [
        ([local.AHEAD, local.AGAIN], [False, True]),
        ([local.NOW], [False]),
        ([local.AHEAD, local.START, local.AGAIN], [False, None]),
    ],
    ids=["again", "nobody has asked ahead", "again, while something was on its way"],
)
def test_who_has_asked_ahead_and_runs_nothing_now_has_the_others_asked_again(
    one: Crew, monkeypatch: pytest.MonkeyPatch, words: list[int], demands: list[bool | None]
) -> None:
    """What they were asked for before, they had no reason to give back."""
    line = one._page.line(0)
    waits: Any = SimpleNamespace(
        origin=Origin(1), hungry=False, handed={1: None}, process=SimpleNamespace(line=line), asked_s=inf
    )
    one._schedulers[Origin(1)] = waits
    one._counters.update(sparks_made=0, tasks_run=0)
    one._wanted = True
    monkeypatch.setattr(one._nudges, "want", lambda: None)
    seen: list[bool | None] = []
    for word in words:
        if word == local.START:  # it gets something, and has not read it
            waits.hungry = False
            continue
        line.demand = False
        event = one._understand(waits, [local.HUNGRY, 2, 0, word])
        seen.append(line.demand if event == Hungry(Origin(1), 2) else None)
    assert seen == demands


def test_who_runs_nothing_has_the_others_asked_again_once_if_somebody_has_asked_ahead(
    one: Crew, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[bool] = []
    one._wanted = True
    monkeypatch.setattr(one, "demand", asked.append)
    ahead: Any = SimpleNamespace(hungry=False)
    idle: Any = SimpleNamespace(hungry=False)
    for scheduler, how in ((ahead, local.AHEAD), (idle, local.NOW), (idle, local.NOW)):
        assert one._starves(scheduler, how)
    assert asked == [True]
