"""What a node counts, and the hints that it gives."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hdphrs.node import figures as counting
from hdphrs.node.figures import BUSY_US, GRAIN, LARGE_BYTES, SMALL_MIN, WAITED_S, Figures, had_core_s, median_of
from hdphrs.wire.page import Page


class Clock:
    """Of this process and of others."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.node_s = 0.0
        self.computed_s = 0.0
        monkeypatch.setattr(counting, "process_time", lambda: self.node_s)
        monkeypatch.setattr(counting, "had_core_s", lambda pid: self.computed_s)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


@pytest.fixture
def page() -> Page:
    return Page.create(1)


class Advised(Figures):
    def __init__(self) -> None:
        self.hints: list[tuple[str, str]] = []
        super().__init__(lambda kind, sentence: self.hints.append((kind, sentence)))


def test_small_tasks_are_named_with_what_their_way_costs(clock: Clock) -> None:
    figures = Advised()
    for _ in range(SMALL_MIN):
        clock.node_s += 60e-6
        figures.finished("tiny", 8e-6)
    ((kind, sentence),) = figures.hints
    assert kind == "small"
    assert "takes 12 µs, the way through the node 60 µs (tiny was the last of 1000)" in sentence


@pytest.mark.parametrize(("count", "own_s"), [(SMALL_MIN - 1, 8e-6), (SMALL_MIN, 1e-3)])
def test_few_small_tasks_or_many_large_ones_are_no_matter(clock: Clock, count: int, own_s: float) -> None:
    figures = Advised()
    for _ in range(count):
        clock.node_s += 60e-6
        figures.finished("task", own_s)
    assert not figures.hints


def item(size: int) -> list[Any]:
    return [0, ["f", b"", b"", bytes(size), True, b""]]


def test_large_arguments_are_named_once(clock: Clock) -> None:
    figures = Advised()
    figures.exported([item(LARGE_BYTES - 1)])
    assert not figures.hints
    figures.exported([item(LARGE_BYTES), item(LARGE_BYTES)])
    figures.exported([item(LARGE_BYTES)])
    ((kind, sentence),) = figures.hints
    assert kind == "large"
    assert "a task f takes 16.0 MiB along" in sentence


def test_core_that_waits_within_tasks_is_noticed(clock: Clock, page: Page) -> None:
    figures, line = Advised(), page.line(0)
    figures.finished("fetch", WAITED_S)
    line.ran(WAITED_S + 0.5, 0.0)
    clock.computed_s = 0.5
    figures.looked(0, 7, line)
    ((kind, sentence),) = figures.hints
    assert kind == "waits"
    assert "waited for 2.0 of 2.5 s in tasks, now in fetch" in sentence
    page.close()


@pytest.mark.parametrize(("busy_s", "computed_s"), [(WAITED_S - 0.1, 0.0), (10.0, 7.0)])
def test_core_that_waits_little_is_no_matter(clock: Clock, page: Page, busy_s: float, computed_s: float) -> None:
    figures, line = Advised(), page.line(0)
    line.ran(busy_s, 0.0)
    clock.computed_s = computed_s
    figures.looked(0, 7, line)
    assert not figures.hints
    page.close()


def test_new_process_in_place_of_a_dead_one_begins_anew(clock: Clock, page: Page) -> None:
    figures, line = Advised(), page.line(0)
    clock.computed_s = 100.0
    line.ran(clock.computed_s, 0.0)
    figures.looked(0, 7, line)
    clock.computed_s = 1.0
    line.ran(clock.computed_s, 0.0)
    figures.looked(0, 8, line)
    assert not figures.hints
    page.close()


def test_counters_have_busy_times_with_those_of_the_dead_and_grains(clock: Clock, page: Page) -> None:
    figures, line = Advised(), page.line(0)
    line.ran(2.0, 0.0)
    figures.bury(0, line)
    line.ran(3.0, 0.0)
    for own_s in (0.0, 1.5e-6, 1e-6, 1e-3):
        figures.finished("f", own_s)
    counters: dict[str, int] = {}
    figures.tally({0: line}, counters)
    grains = {name: count for name, count in counters.items() if name.startswith(GRAIN)}
    assert (counters[f"{BUSY_US}0"], grains) == (5_000_000, {"grain_0": 1, "grain_1": 2, "grain_10": 1})
    page.close()


def test_median_is_in_the_bucket_where_half_have_been_seen() -> None:
    assert median_of({}) == 0.0
    assert median_of({1: 1, 10: 3, 20: 2}) == pytest.approx(768e-6)


def test_time_of_a_process_that_is_not_there_is_not_known(monkeypatch: pytest.MonkeyPatch) -> None:
    assert had_core_s(2**22 + 1) is None
    if Path("/proc/self/schedstat").exists():
        assert had_core_s(1) is not None
