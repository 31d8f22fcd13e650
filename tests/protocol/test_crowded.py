"""While too much waits for the links of a node, it begins nothing new, and goes on as soon as there is room."""

from __future__ import annotations

import pytest

from hdphrs.config import CoreConfig
from hdphrs.protocol import effects as fx
from hdphrs.protocol import events as ev
from hdphrs.protocol import messages as msg
from hdphrs.protocol.effects import Effect
from hdphrs.protocol.node import Node
from hdphrs.protocol.paths import PROGRAM_PATH, child_path
from hdphrs.protocol.tasks import (
    PROGRAM,
    ROOT,
    FishId,
    Member,
    NodeId,
    Origin,
    Outcome,
    Spark,
    Task,
    TaskRef,
    Verdict,
)

ME, OTHER = NodeId(1), NodeId(2)
FIRST = Origin(1)


def task(call: int) -> Task:
    return Task("f", child_path(PROGRAM_PATH, call), b"", b"")


def member(config: CoreConfig | None = None) -> Node:
    """Node 1, with a scheduler, beside the root and node 2."""
    core = Node.newcomer(config or CoreConfig(fish_max=1), lambda n: 0)
    members = tuple(Member(node, "h", 1, ("127.0.0.1", 1), 1) for node in (ROOT, ME, OTHER))
    core.handle(ev.Received(ROOT, msg.Welcome(ME, 0, members, ())), 0.0)
    core.handle(ev.SchedulerUp(FIRST), 0.0)
    return core


def fish(effects: list[Effect]) -> list[Effect]:
    return [one for one in effects if isinstance(one, fx.Send) and isinstance(one.message, msg.Fish)]


def starts(effects: list[Effect]) -> list[bytes]:
    return [spark.task.path for one in effects if isinstance(one, fx.Start) for spark in one.sparks]


def test_a_crowded_node_fishes_for_nothing_and_asks_its_schedulers_for_nothing() -> None:
    core = member()
    core.handle(ev.Crowded(True), 0.0)
    assert core.handle(ev.Hungry(FIRST, 1), 0.0) == []
    effects = core.handle(ev.Crowded(False), 0.0)
    assert fish(effects)
    assert fx.Demand(True) in effects


def test_a_node_that_was_hungry_before_it_was_crowded_demands_nothing_any_more() -> None:
    core = member()
    assert fx.Demand(True) in core.handle(ev.Hungry(FIRST, 1), 0.0)
    assert core.handle(ev.Crowded(True), 0.0) == [fx.Demand(False)]
    assert core.next_deadline() is not None  # of the fish that is out


@pytest.mark.parametrize("placed", [False, True])
def test_what_a_crowded_node_is_given_waits_in_its_pool_and_is_started_when_there_is_room(placed: bool) -> None:
    core = member()
    core.handle(ev.Hungry(FIRST, 1), 0.0)
    core.handle(ev.Crowded(True), 0.0)
    spark = Spark(TaskRef(ROOT, PROGRAM, 0), 0, task(7), placed=placed)
    message = msg.Push(spark) if placed else msg.Schedule(FishId(1), (spark,), ())
    assert starts(core.handle(ev.Received(ROOT, message), 0.0)) == []
    assert len(core.pool) == 1
    assert starts(core.handle(ev.Crowded(False), 0.0)) == [task(7).path]


def test_a_crowded_node_still_answers_thieves() -> None:
    core = member()
    core.handle(ev.Hungry(FIRST, 1), 0.0)
    core.handle(ev.Crowded(True), 0.0)
    assert starts(core.handle(ev.Exported(FIRST, ((0, task(7)),)), 0.0)) == []
    effects = core.handle(ev.Received(OTHER, msg.Fish(FishId(1), OTHER, 1, 0.0)), 0.0)
    assert [one.message.sparks[0].task for one in effects if isinstance(one, fx.Send)] == [task(7)]  # type: ignore[union-attr]


def test_what_runs_on_a_crowded_node_comes_to_its_end_and_its_result_is_sent() -> None:
    core = member()
    core.handle(ev.Hungry(FIRST, 1), 0.0)
    spark = Spark(TaskRef(ROOT, PROGRAM, 0), 0, task(7))
    assert starts(core.handle(ev.Received(ROOT, msg.Schedule(FishId(1), (spark,), ())), 0.0)) == [task(7).path]
    core.handle(ev.Crowded(True), 0.0)
    outcome = Outcome(Verdict.VALUE, b"x")
    effects = core.handle(ev.Finished(FIRST, ((spark.ref, 0, outcome),)), 0.0)
    assert fx.Send(ROOT, msg.Result(spark.ref, 0, outcome)) in effects


def test_nothing_is_started_beside_others_on_a_crowded_node() -> None:
    fair_s = 0.01
    core = Node.root(CoreConfig(fair_s=fair_s), lambda n: 0)
    core.handle(ev.SchedulerUp(FIRST), 0.0)
    core.handle(ev.Hungry(FIRST, 1), 0.0)
    core.handle(ev.Exported(PROGRAM, ((0, task(0)),)), 0.0)
    core.handle(ev.Crowded(True), 0.0)
    core.handle(ev.Exported(PROGRAM, ((1, task(1)),)), 0.0)
    now = 0.0
    while (deadline := core.next_deadline()) is not None and deadline < 1.0:
        now = max(now, deadline)
        assert starts(core.handle(ev.Tick(), now)) == []
    core.handle(ev.Crowded(False), now)
    started: list[bytes] = []
    while not started:
        deadline = core.next_deadline()
        assert deadline is not None
        started += starts(core.handle(ev.Tick(), deadline))
    assert started == [task(1).path]


def test_nobody_foresees_that_a_crowded_node_starts_something() -> None:
    core = member()
    core.handle(ev.Hungry(FIRST, 1), 0.0)
    assert core.taker(task(7).path, b"") == FIRST
    core.handle(ev.Crowded(True), 0.0)
    assert core.taker(task(7).path, b"") is None
    core.handle(ev.Crowded(False), 0.0)
    assert core.taker(task(7).path, b"") == FIRST


def test_a_newcomer_may_be_crowded_before_it_is_welcome() -> None:
    core = Node.newcomer(CoreConfig(), lambda n: 0)
    assert core.handle(ev.Crowded(False), 0.0) == []
