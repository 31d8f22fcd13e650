"""When a node may look out for what its schedulers say, and what it hears in a word of hunger."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, closing
from types import SimpleNamespace
from typing import Any

import pytest

from hdphrs.node import crew
from hdphrs.node.crew import Crew
from hdphrs.node.scheduler import Scheduler
from hdphrs.protocol.events import Hungry, SchedulerUp
from hdphrs.protocol.tasks import Origin
from hdphrs.wire import local
from hdphrs.wire.page import Page
from hdphrs.wire.settings import NodeSettings
from tests.node.processless import processless


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


def test_hunger_has_its_room_and_what_ran_meanwhile_counts_even_if_the_hunger_does_not(
    one: Crew, scheduler: Scheduler
) -> None:
    one._counters.update(sparks_made=0, tasks_run=0)
    assert one._understand(scheduler, [local.HUNGRY, 2, 3, local.NOW]) == Hungry(scheduler.origin, 2)
    scheduler.begin()
    assert one._understand(scheduler, [local.HUNGRY, 2, 4, local.AGAIN]) is None
    assert one._counters == {"sparks_made": 7, "tasks_run": 7}


@pytest.mark.parametrize(("cores", "hear"), [(3, [1, 0, 1]), (2, [0, 0, 0])])
def test_what_one_has_imported_the_others_are_told_if_each_has_a_core(
    one: Crew, monkeypatch: pytest.MonkeyPatch, cores: int, hear: list[int]
) -> None:
    monkeypatch.setattr(crew, "usable_cores", lambda: cores)
    one.tell_nodes([[0, "here", 3]])
    with ExitStack() as stack:
        three = [stack.enter_context(processless()) for _ in hear]
        one._schedulers.update({Origin(number): each for number, each in enumerate(three, 1)})
        assert one._understand(three[1], [local.IMPORTED, ["/there"], ["module"]]) is None
        assert [each.link._posted for each in three] == [[[local.IMPORTED, ["/there"], ["module"]]] * n for n in hear]


@pytest.mark.parametrize("wanted", [True, False])
def test_who_takes_the_place_of_a_dead_one_is_asked_as_the_others_have_been(
    one: Crew, scheduler: Scheduler, wanted: bool
) -> None:
    """The core says no more as long as somebody stays hungry."""
    one.demand(wanted)
    line = one._add(scheduler.process).process.line
    assert (line.demand, line.wanted) == (wanted, wanted)


def test_a_search_whose_find_has_taken_a_scheduler_down_is_closed_to_all_and_to_its_heir(
    one: Crew, scheduler: Scheduler
) -> None:
    one._schedulers[Origin(1)] = scheduler
    assert one.tell(b"search", 1.0, b"kills")
    one._close(b"search")
    assert scheduler.link._posted == []  # it has been sent
    assert not one.tell(b"search", 2.0, b"kills too")
    assert one._understand(scheduler, [local.READY]) == SchedulerUp(scheduler.origin)
    assert scheduler.link._posted == [[local.NODES, []], [local.CLOSED, b"search"]]
