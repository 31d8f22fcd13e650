"""The driver: what it does by itself, without being told."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import cast

import pytest
import trio
import trio.testing

from hdphrs.config import CoreConfig
from hdphrs.node.books import Work
from hdphrs.node.driver import WORK_S, Driver
from hdphrs.protocol import effects as fx
from hdphrs.protocol import events as ev
from hdphrs.protocol import messages as msg
from hdphrs.protocol.effects import Effect
from hdphrs.protocol.leaving import Leaving
from hdphrs.protocol.node import Node
from hdphrs.protocol.tasks import PROGRAM, NodeId, Origin, Spark, Task, TaskRef
from hdphrs.transport.interface import Lightened, Transport
from tests.node.virtual import VirtualCrew

FIRST, SECOND = Origin(1), Origin(2)


TIMED = Task("timed", b"\x01" * 16, b"", b"", timeout_s=5.0)


class Deaf(VirtualCrew):
    """Does nothing of what it is told."""

    def start(self, origin: Origin, sparks: Sequence[Spark]) -> None: ...
    def cancel(self, origin: Origin, copies: Sequence[tuple[TaskRef, int]]) -> None: ...
    def replace(self, origin: Origin, copies: Sequence[tuple[TaskRef, int]]) -> None: ...


class Steps(VirtualCrew):
    """A crew and a transport that note what they are told, and when."""

    is_crowded = False

    def __init__(self) -> None:
        super().__init__()
        self.done: list[str] = []

    def hold(self) -> None:
        self.done.append("hold")

    def collect(self) -> None:
        self.done.append("collect")

    def work(self) -> Work:
        self.done.append("work")
        return Work(1.0)

    def note(self, to: NodeId, seconds: Sequence[float]) -> None:
        self.done.append("note")

    def release(self) -> None:
        self.done.append("release")


class Looked(VirtualCrew):
    """Counts how often somebody asks what has been done."""

    looks = 0

    def work(self) -> Work:
        self.looks += 1
        return Work()


def test_a_node_without_anything_to_do_looks_at_its_work_again_only_when_it_has_something() -> None:
    crew = Looked()
    driver = Driver(Node.root(CoreConfig(), lambda n: 0), crew)
    driver.attach_transport(cast(Transport, Steps()))

    async def main() -> Sequence[int]:
        seen = []
        driver.handle([ev.SchedulerUp(FIRST), ev.Hungry(FIRST, 1)])
        async with trio.open_nursery() as nursery:
            nursery.start_soon(driver.keep_telling)
            for _ in range(2):
                await trio.sleep(10.5 * WORK_S)
                seen.append(crew.looks)
                driver.handle([ev.SchedulerUp(SECOND)])  # until it is hungry, it counts as busy
            nursery.cancel_scope.cancel()
        return seen

    assert trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0)) == [1, 11]


def test_what_schedulers_have_laid_down_leaves_together_with_what_the_root_is_told() -> None:
    """One wake-up of the root, which it has anyway."""
    steps = Steps()
    driver = Driver(Node.newcomer(CoreConfig(), lambda n: 0), steps)
    driver.attach_transport(cast(Transport, steps))

    async def main() -> None:
        with trio.move_on_after(1.5 * WORK_S):
            await driver.keep_telling()

    trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0))
    assert steps.done == ["hold", "collect", "work", "work", "note", "release"]


@pytest.mark.parametrize("leaves", [True, False])
def test_before_the_grace_of_a_node_that_leaves_is_over_what_schedulers_have_laid_down_is_heard(leaves: bool) -> None:
    """At no other deadline does the core need it, and there are many."""
    steps = Steps()
    core = Node.root(CoreConfig(), lambda n: 0)
    fed: list[str] = []

    def feed(event: ev.Event, now_s: float) -> list[Effect]:
        fed.append(type(event).__name__)
        return []

    driver = Driver(core, steps, feed=feed)
    core.next_deadline = lambda: None if fed else trio.current_time() + 1.0  # type: ignore[method-assign]
    core.leaving = cast(Leaving, SimpleNamespace(under_way=leaves))

    async def main() -> None:
        with trio.move_on_after(2.0):
            await driver.tick()

    trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0))
    assert fed == ["Tick"]
    assert ("collect" in steps.done) is leaves


def test_what_schedulers_have_laid_down_is_heard_before_the_order_to_leave() -> None:
    """Without grace, nothing is heard after it."""
    steps = Steps()

    def feed(event: ev.Event, now_s: float) -> list[Effect]:
        steps.done.append(type(event).__name__)
        return []

    driver = Driver(Node.root(CoreConfig(), lambda n: 0), steps, feed=feed)

    async def main() -> None:
        driver.leave(0.0)

    trio.run(main)
    assert steps.done == ["collect", "Leave"]


def test_deadline_that_comes_up_within_a_turn_is_kept_after_it() -> None:
    """While a turn lasts, timers have no turn anyway; so the core is asked once, at its end."""
    core = Node.root(CoreConfig(), lambda n: 0)
    driver = Driver(core, Deaf())
    asked: list[float | None] = []
    real = core.next_deadline

    def next_deadline() -> float | None:
        asked.append(real())
        return asked[-1]

    async def main() -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(driver.tick)
            await trio.testing.wait_all_tasks_blocked()
            core.next_deadline = next_deadline  # type: ignore[method-assign]
            driver.begin_turn()
            driver.handle([ev.SchedulerUp(FIRST), ev.Hungry(FIRST, 1)])
            driver.handle([ev.Exported(PROGRAM, ((0, TIMED),))])
            [(ref, replica)] = [(spark.ref, spark.replica) for spark in core.schedulers.held()]
            driver.handle([ev.Begun(FIRST, ref, replica)])
            assert asked == []
            driver.end_turn()
            assert len(asked) == 1
            assert asked[0] is not None
            await trio.sleep(TIMED.timeout_s + 1)
            assert core.counters["timed_out"] == 1
            nursery.cancel_scope.cancel()

    trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0))


class Written(Deaf):
    """Notes when schedulers are given something, and when that leaves."""

    def __init__(self, done: list[str]) -> None:
        super().__init__()
        self.done = done

    def start(self, origin: Origin, sparks: Sequence[Spark]) -> None:
        self.done.append("start")

    def demand(self, wanted: bool) -> None: ...

    def flush(self) -> None:
        self.done.append("flush")


def test_what_an_event_has_said_leaves_before_the_core_is_asked_about_the_next_one() -> None:
    """The next one is mostly the hunger of a scheduler that has just answered."""
    done: list[str] = []
    core = Node.root(CoreConfig(), lambda n: 0)

    def feed(event: ev.Event, now_s: float) -> list[Effect]:
        done.append(type(event).__name__)
        return core.handle(event, now_s)

    driver = Driver(core, Written(done), feed=feed)

    async def main() -> None:
        driver.handle([ev.SchedulerUp(FIRST), ev.Hungry(FIRST, 1), ev.Exported(PROGRAM, ((0, TIMED),))])
        driver.handle([ev.SchedulerUp(SECOND), ev.Hungry(SECOND, 1)])

    trio.run(main)
    assert done == [
        *("SchedulerUp", "flush", "Hungry", "flush", "Exported", "start", "flush"),
        "flush",
        *("SchedulerUp", "flush", "Hungry", "flush"),
        "flush",
    ]


class Loaded(Steps):
    """A transport for which a message is too much, until it is said that it has left."""

    def send(self, to: NodeId, message: object) -> None:
        self.is_crowded = True


def test_the_core_hears_in_time_when_too_much_waits_for_the_links_and_when_it_has_left() -> None:
    loaded, events = Loaded(), list[ev.Event]()

    def feed(event: ev.Event, now: float) -> list[Effect]:
        events.append(event)
        return [fx.Send(NodeId(1), msg.Term())] if event == ev.Terminate() else []

    async def main() -> None:
        driver = Driver(Node.root(CoreConfig(), lambda n: 0), loaded, feed=feed)
        driver.attach_transport(cast(Transport, loaded))
        driver.handle([ev.Tick(), ev.Terminate(), ev.Tick()])
        driver.hear(Lightened())
        loaded.is_crowded = False
        driver.hear(Lightened())
        driver.hear(Lightened())

    trio.run(main)
    assert events == [ev.Tick(), ev.Terminate(), ev.Tick(), ev.Crowded(True), ev.Crowded(False)]
