"""Large arguments that are away: what is enough, what stays then, and who waits."""

from __future__ import annotations

from typing import Any

import pytest

from hdphrs.api import future as fast
from hdphrs.api.future import get, spawn
from hdphrs.api.places import NodeInfo, Roster
from hdphrs.protocol.tasks import ROOT
from hdphrs.scheduler import held
from hdphrs.scheduler.held import TASKS_PER_CORE_MIN, Held
from hdphrs.scheduler.pace import EXPORT_MAX
from hdphrs.wire import local
from hdphrs.wire.bulk import BULK_BYTES_MIN
from hdphrs.wire.values import dump_result
from tests.scheduler.test_export import Desk

LARGE = bytes(4 * BULK_BYTES_MIN)


@pytest.fixture(autouse=True)
def _little(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(held, "HELD_BYTES_MAX", 3 * len(LARGE))


def answer(desk: Desk, slot: int) -> None:
    desk.exporter.came_back(slot, 1.0)
    desk.exporter.arrived(slot, dump_result("len", len(LARGE)))


def fill(desk: Desk) -> list[int]:
    """Have as much exported as may be; the slots."""
    slots: list[int] = []
    for _ in range(3):
        desk.exporter.pace.rest_until_s = 0.0
        desk.line.want(True)
        desk.exporter.export()
        slots += desk.slots()
    assert desk.exporter.held.is_full
    return slots


def test_enough_is_away_at_so_many_bytes_but_two_tasks_a_core_may_always_be(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(held, "HELD_BYTES_MAX", BULK_BYTES_MIN)
    roster = Roster([NodeInfo(ROOT, "near", 2)])
    count = Held(roster)
    for slot in range(2 * TASKS_PER_CORE_MIN):
        assert not count.is_full
        count.add(slot, BULK_BYTES_MIN)
    assert count.is_full
    roster.hear([[0, "near", 2], [1, "far", 1]])
    assert not count.is_full


def test_small_arguments_do_not_count_and_what_is_back_counts_once() -> None:
    count = Held(Roster([NodeInfo(ROOT, "near", 1)]))
    count.add(0, BULK_BYTES_MIN - 1)
    count.add(1, BULK_BYTES_MIN)
    count.add(2, BULK_BYTES_MIN)
    assert list(count) == [1, 2]
    for slot in (0, 1, 1, 7):
        count.drop(slot)
    assert count.bytes == BULK_BYTES_MIN


def test_large_sparks_stay_when_enough_are_away_and_one_leaves_for_each_that_is_back(desk: Desk) -> None:
    futures = [spawn(len, LARGE) for _ in range(20)]
    slots = fill(desk)
    assert len(slots) == 3
    assert desk.exporter.pace.is_resting
    desk.exporter.pace.rest_until_s = 0.0
    desk.line.want(True)
    rests = desk.rests
    desk.exporter.export()
    assert desk.slots() == []
    assert desk.rests == rests + 1, "else nobody would answer the demand when there is room"
    answer(desk, slots[0])
    assert not desk.exporter.pace.is_resting
    desk.exporter.export()
    assert len(desk.slots()) == 1
    assert sum(future._function is not None for future in futures) == 16


def test_what_was_taken_together_and_may_not_leave_is_in_its_place_again(desk: Desk) -> None:
    """The last exports paid, so that many sparks are taken at once, before it is known how large they are."""
    desk.exporter.pace._most = EXPORT_MAX
    futures = [spawn(len, LARGE) for _ in range(20)]
    desk.line.want(True)
    desk.exporter.export()
    assert len(desk.slots()) == 3
    assert [one for one in fast.sparks if one._function is not None] == futures[3:]
    assert [get(future) for future in futures[3:]] == [len(LARGE)] * 17


def test_small_sparks_leave_as_ever(desk: Desk) -> None:
    desk.exporter.pace._most = EXPORT_MAX
    for _ in range(8):
        spawn(len, ())
    desk.line.want(True)
    desk.exporter.export()
    assert len(desk.slots()) == 4
    assert desk.exporter.held.bytes == 0


@pytest.mark.parametrize("how", ["back", "cancelled", "with its task"])
def test_whatever_becomes_of_them_makes_room(desk: Desk, how: str) -> None:
    futures = [spawn(len, LARGE) for _ in range(6)]
    slots = fill(desk)
    away: list[Any] = desk.exporter.large_away()
    assert away == futures[:3]
    match how:
        case "back":
            for slot in slots:
                answer(desk, slot)
        case "cancelled":
            for future in away:
                assert desk.exporter.cancel(future)
        case _:
            desk.exporter._give_up(slots)
    assert desk.exporter.held.bytes == 0
    assert desk.exporter.large_away() == []


def test_placed_tasks_count_too(desk: Desk) -> None:
    desk.exporter.place(ROOT, len, (LARGE,), b"\x01", None, 0)
    ((kind, *_),) = desk.told
    assert kind == local.PLACE
    assert desk.exporter.held.bytes >= len(LARGE)
