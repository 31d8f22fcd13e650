"""What leaves before the core is asked, and that it is what the core would have sent."""

from __future__ import annotations

from typing import Any

import msgpack
import pytest

from hdphrs.config import CoreConfig
from hdphrs.node.ahead import Ahead
from hdphrs.protocol import effects as fx
from hdphrs.protocol import events as ev
from hdphrs.protocol.messages import DeadNode, Fish, Push, Result
from hdphrs.protocol.node import Node
from hdphrs.protocol.tasks import PROGRAM, ROOT, FishId, NodeId, Origin, Outcome, Spark, Task, TaskRef, Verdict
from hdphrs.wire import local
from hdphrs.wire.items import pack_outcome, pack_spark, pack_task

ONE, OTHER = Origin(1), NodeId(1)
TASK = Task("f", b"a", b"", b"payload")
VALUE = Outcome(Verdict.VALUE, b"value")


class World:
    """A root with one hungry scheduler and another node, and what leaves it."""

    def __init__(self) -> None:
        self.core = Node.root(CoreConfig(), lambda n: 0)
        self.started: list[Any] = []
        self.delivered: list[Any] = []
        self.posted: list[Any] = []
        self.ahead = Ahead(self.core, self, self)
        self.core.handle(ev.Arrived(1, "host", 1, ("host", 1), 1), 0.0)
        self.core.handle(ev.SchedulerUp(ONE), 0.0)
        self.core.handle(ev.Hungry(ONE, 4), 0.0)

    def start_ahead(self, origin: Origin, ref: TaskRef, spark: list[Any]) -> None:
        self.started.append((origin, ref, wired(spark)))

    def deliver_ahead(self, origin: Origin, slot: int, outcome: list[Any]) -> None:
        self.delivered.append((origin, slot, outcome))

    def post(self, message: list[Any]) -> None:
        self.posted.append(message)

    def flush(self) -> None:
        """At once."""

    def first(self, event: ev.Event) -> fx.Effect:
        """The first effect of an event."""
        return self.core.handle(event, 0.0)[0]


def wired(obj: object) -> Any:
    """As it arrives."""
    return msgpack.unpackb(msgpack.packb(obj))


def call(*tasks: Task, slot: int = 0) -> list[list[Any]]:
    """What a program sends."""
    return [[local.EXPORT, wired([[slot + i, pack_task(task)] for i, task in enumerate(tasks)])]]


def results(*outcomes: tuple[TaskRef, Outcome]) -> list[list[Any]]:
    """What a scheduler sends."""
    return [[local.RESULTS, [[list(ref), 0, pack_outcome(outcome), 0.0, 0.0] for ref, outcome in outcomes]]]


def test_a_lone_call_of_the_programs_starts_as_the_core_would_have_it() -> None:
    world = World()
    world.ahead.call(call(TASK))
    effect = world.first(ev.Exported(PROGRAM, ((0, TASK),)))
    assert isinstance(effect, fx.Start)
    (spark,) = effect.sparks
    assert world.started == [(effect.scheduler, spark.ref, wired(pack_spark(spark)))]


@pytest.mark.parametrize(
    "messages",
    [
        call(TASK, TASK),
        [*call(TASK), *call(TASK)],
        call(Task("f", b"a", b"", b"", pin=(ROOT,))),
        [[local.CODE, b"digest", b"code"]],
    ],
    ids=["two", "two messages", "pinned", "no call"],
)
def test_all_else_that_a_program_says_is_for_the_core(messages: list[list[Any]]) -> None:
    world = World()
    world.ahead.call(messages)
    assert not world.started


def test_a_lone_result_goes_to_the_program_once() -> None:
    world = World()
    world.core.handle(ev.Exported(PROGRAM, ((0, TASK),)), 0.0)
    ref = TaskRef(ROOT, PROGRAM, 0)
    world.ahead.answer(results((ref, VALUE)))
    assert world.posted == [[local.DELIVER, 0, pack_outcome(VALUE)]]
    assert world.first(ev.Finished(ONE, ((ref, 0, VALUE),))) == fx.Deliver(PROGRAM, 0, VALUE)
    assert world.ahead.has_filled(PROGRAM, 0)
    assert not world.ahead.has_filled(PROGRAM, 0)


def test_all_else_that_a_scheduler_says_is_for_the_core() -> None:
    world = World()
    world.core.handle(ev.Exported(PROGRAM, ((0, TASK), (1, TASK))), 0.0)
    mine, others = TaskRef(ROOT, PROGRAM, 0), TaskRef(OTHER, ONE, 0)
    world.ahead.answer(results((mine, VALUE), (TaskRef(ROOT, PROGRAM, 1), VALUE)))
    world.ahead.answer(results((others, VALUE)))
    world.ahead.answer([[local.HUNGRY, 4, 0, local.NOW]])
    assert not world.posted
    assert not world.ahead.has_filled(PROGRAM, 0)


def test_a_thread_starts_and_its_result_arrives() -> None:
    world = World()
    thread = Spark(TaskRef(OTHER, ONE, 7), 0, TASK, placed=True)
    world.ahead.message(OTHER, Push(thread))
    assert world.first(ev.Received(OTHER, Push(thread))) == fx.Start(ONE, (thread,))
    assert world.started == [(ONE, thread.ref, wired(pack_spark(thread)))]
    world.core.handle(ev.Placed(ONE, 3, TASK, OTHER), 0.0)
    result = Result(TaskRef(ROOT, ONE, 3), 0, VALUE)
    world.ahead.message(OTHER, result)
    assert world.first(ev.Received(OTHER, result)) == fx.Deliver(ONE, 3, VALUE)
    assert world.delivered == [(ONE, 3, pack_outcome(VALUE))]


def test_nothing_of_the_dead_is_passed_on_and_nothing_else_of_the_living() -> None:
    world = World()
    world.core.handle(ev.Placed(ONE, 3, TASK, OTHER), 0.0)
    world.ahead.message(OTHER, Fish(FishId(1), OTHER, 1, 0.0))
    world.core.handle(ev.Suspected(OTHER), 0.0)
    world.ahead.message(OTHER, Push(Spark(TaskRef(OTHER, ONE, 7), 0, TASK, placed=True)))
    world.ahead.message(OTHER, Result(TaskRef(ROOT, ONE, 3), 0, VALUE))
    world.ahead.message(ROOT, DeadNode(OTHER, 1))
    assert not world.started
    assert not world.delivered


def test_a_core_that_does_something_else_ends_the_node() -> None:
    world = World()
    world.core.handle(ev.Exported(PROGRAM, ((0, TASK),)), 0.0)
    world.ahead.answer(results((TaskRef(ROOT, PROGRAM, 0), VALUE)))
    with pytest.raises(AssertionError, match="was filled"):
        world.ahead.has_filled(PROGRAM, 1)
