"""When demand is answered, and when it is answered with nothing; without a process."""

from __future__ import annotations

from time import perf_counter
from typing import Any

from hdphrs.api import future as fast
from hdphrs.api.future import get, spawn
from hdphrs.api.places import NodeInfo, Roster
from hdphrs.protocol.tasks import PROGRAM, ROOT, Spark, Task, TaskRef
from hdphrs.scheduler.assigned import Assigned
from hdphrs.scheduler.export import Exporter
from hdphrs.scheduler.pace import AWAY_S
from hdphrs.wire import local
from hdphrs.wire.code import CodeBook
from hdphrs.wire.page import LINE_BYTES, Line
from hdphrs.wire.values import dump_result

TINY_S = 1e-7


def assigned(serial: int) -> Assigned:
    return Assigned(serial, Spark(TaskRef(ROOT, PROGRAM, serial), 0, Task("f", b"", b"", b"")))


class Desk:
    """An exporter and what it tells its node."""

    def __init__(self) -> None:
        self.line = Line(memoryview(bytearray(LINE_BYTES)))
        self.told: list[list[Any]] = []
        self.rests = 0
        self.insists = False
        """Whether the node is hungry again before it has been told all."""
        self.reads_ahead = False
        """Whether the other thread gets what comes of an export while this one is still about it."""
        self.roster = Roster([NodeInfo(ROOT, "near", 1)])
        book = CodeBook(lambda digest, data: None)
        self.exporter = Exporter(self._tell, self.line, book, self.roster, reliable=True)
        self.exporter.on_rest = self._on_rest

    def _tell(self, *messages: list[Any]) -> None:
        self.told += messages
        if self.reads_ahead:
            for slot in self.slots():
                self.exporter.came_back(slot, TINY_S)
                self.exporter.arrived(slot, dump_result("len", 0))
        if self.insists:
            self.line.want(True)

    def _on_rest(self) -> None:
        self.rests += 1

    def slots(self) -> list[int]:
        """Of what has been exported since this was asked last."""
        told, self.told = self.told, []
        return [slot for kind, items in told if kind == local.EXPORT for slot, _ in items]

    def tire(self) -> None:
        """Export tiny tasks until that is not allowed any more."""
        while not self.rests:
            spawn(len, ())
            self.line.want(True)
            self.exporter.export()
            for slot in self.slots():
                self.exporter.came_back(slot, TINY_S)


def test_hunger_that_comes_back_while_the_node_is_being_told_is_not_forgotten(desk: Desk) -> None:
    """The node may be faster than we: it has fed one thief, and another asks, before we are back from telling it."""
    spawn(len, ())
    desk.insists = True
    desk.line.want(True)
    desk.exporter.export()
    assert len(desk.slots()) == 1
    assert desk.line.demand


def test_demand_stays_when_there_is_nothing_to_give(desk: Desk) -> None:
    desk.line.want(True)
    desk.exporter.export()
    assert desk.line.demand
    desk.line.want(False)
    desk.exporter.export()
    assert not desk.line.demand


def test_during_a_rest_demand_is_out_of_the_spawns_way_and_a_dear_task_ends_it(desk: Desk) -> None:
    desk.tire()
    while len(fast.sparks) < 10:
        spawn(len, ())
    desk.exporter.pace.rest_until_s = 0.0
    desk.line.want(True)
    desk.exporter.export()
    (slot,) = desk.slots()
    assert desk.exporter.pace.is_resting
    desk.line.want(True)
    desk.exporter.export()
    assert desk.slots() == []
    assert not desk.line.demand
    assert desk.line.wanted
    rests = desk.rests
    desk.exporter.came_back(slot, 0.1)
    assert desk.rests == rests + 1
    assert desk.exporter.pace.rest_until_s
    assert not desk.exporter.pace.is_resting
    desk.exporter.export()
    assert len(desk.slots()) == 1


def test_handed_over_tasks_that_wait_are_given_back_whatever_own_sparks_are_worth(desk: Desk) -> None:
    fast.sparks.extend([assigned(serial) for serial in range(1, 9)])
    spawn(len, ())
    desk.line.want(True)
    desk.exporter.export()
    ((kind, returned),) = desk.told
    assert kind == local.RETURN
    assert len(returned) == 5


def test_what_waits_behind_a_late_task_is_given_back_but_for_what_is_next_and_what_was_made_here(desk: Desk) -> None:
    fast.sparks.extend([assigned(serial) for serial in range(1, 4)])
    spawn(len, ())
    fast.sparks.append(assigned(4))
    desk.exporter.give_back(but=1)
    ((kind, returned),) = desk.told
    assert kind == local.RETURN
    assert [slot for (_, _, slot), _ in returned] == [1, 2, 3]
    desk.told = []
    desk.exporter.give_back(but=1)
    assert (desk.told, len(fast.sparks)) == ([], 2)
    fast.sparks.clear()
    fast.sparks.append(assigned(5))
    desk.exporter.give_back(but=1)
    assert (desk.told, len(fast.sparks)) == ([], 1), "it is to run before anything else"


def test_what_is_back_before_it_is_known_to_have_left_is_not_waited_for(desk: Desk) -> None:
    """Else it would be the oldest one out for ever, so that everything would seem to take long."""
    desk.reads_ahead = True
    future = spawn(len, ())
    desk.line.want(True)
    desk.exporter.export()
    assert get(future) == 0
    desk.exporter.pace._clock = lambda: perf_counter() + 10 * AWAY_S
    desk.exporter.pace.left([1], 1.0)
    assert desk.exporter.pace.came_back(1, 0.0) is False
    assert desk.exporter.pace.allow() == 1, "neither of them was worth that second"
