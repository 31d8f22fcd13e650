"""The automatic size of chunks: from the time that the first items take, and of no consequence for the result."""

from __future__ import annotations

from typing import Any

import pytest

import hdphrs
from hdphrs.skeletons import grain
from hdphrs.skeletons.grain import CHUNKS_MIN, FEW, measure, over_chunks
from hdphrs.skeletons.strategy import lazy


class Clock:
    """Time passes when items are worked on, and only then."""

    def __init__(self, item_s: float, first_s: float) -> None:
        self.now_s = 0.0
        self.item_s = item_s
        self.first_s = first_s
        self.parts: list[list[int]] = []

    def __call__(self) -> float:
        return self.now_s

    def work(self, items: list[int]) -> list[int]:
        """Takes its time, the first item a little more."""
        self.now_s += len(items) * self.item_s + (0 if self.parts else self.first_s)
        self.parts.append(items)
        return items


def measured(monkeypatch: pytest.MonkeyPatch, length: int, item_s: float, first_s: float = 0.0) -> tuple[Clock, Any]:
    clock = Clock(item_s, first_s)
    monkeypatch.setattr(grain, "perf_counter", clock)
    with hdphrs.sequential():
        return clock, measure(lazy, clock.work, list(range(length)), [])


@pytest.mark.parametrize(("item_s", "size"), [(1.0, 1), (20e-3, 1), (10e-3, 2), (1e-3, 16), (100e-6, 128)])
def test_a_chunk_takes_between_ten_and_fifty_milliseconds(
    monkeypatch: pytest.MonkeyPatch, item_s: float, size: int
) -> None:
    assert measured(monkeypatch, 100_000, item_s)[1].size == size
    assert size == 1 or 10e-3 <= size * item_s <= 50e-3


def test_short_work_is_cut_nevertheless(monkeypatch: pytest.MonkeyPatch) -> None:
    _, parts = measured(monkeypatch, 10_000, 1e-9)
    assert CHUNKS_MIN <= len(parts.rest) / parts.size < 2 * CHUNKS_MIN


def test_what_the_first_item_takes_longer_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    assert measured(monkeypatch, 100_000, 1e-3, first_s=1.0)[1].size == 16


def test_of_long_items_only_two_are_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    _, parts = measured(monkeypatch, 1000, 1.0)
    assert (len(parts.head), len(parts.rest), len(parts.tail)) == (2, 1000 - 2 - FEW, FEW)


def test_a_few_items_are_tasks_of_their_own_without_a_measurement(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, parts = measured(monkeypatch, 2 * FEW, 1e-6)
    assert (parts.head, parts.rest, len(parts.tail)) == ([], [], 2 * FEW)
    assert clock.parts == [[item] for item in range(2 * FEW)]


@pytest.mark.parametrize("length", [0, 1, 2 * FEW, 2 * FEW + 1, 5000])
@pytest.mark.parametrize("item_s", [1e-9, 1e-3, 1.0])
def test_all_parts_are_in_order_whatever_the_clock_says(
    monkeypatch: pytest.MonkeyPatch, length: int, item_s: float
) -> None:
    clock = Clock(item_s, 0.0)
    monkeypatch.setattr(grain, "perf_counter", clock)
    with hdphrs.sequential():
        parts = list(over_chunks(lazy, clock.work, list(range(length)), None, []))
    assert [item for part in parts for item in part] == list(range(length))
    assert all(parts)
