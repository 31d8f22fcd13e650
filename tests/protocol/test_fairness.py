"""Calls of the program's take turns, and none waits for long because others have the cores."""

from __future__ import annotations

from hdphrs.config import CoreConfig
from hdphrs.protocol import effects as fx
from hdphrs.protocol import events as ev
from hdphrs.protocol.node import Node
from hdphrs.protocol.paths import PROGRAM_PATH, child_path
from hdphrs.protocol.schedulers import Schedulers
from hdphrs.protocol.sparkpool import Sparkpool
from hdphrs.protocol.tasks import PROGRAM, ROOT, Crash, Origin, Outcome, Spark, Task, TaskRef, Verdict

FAIR_S = 0.01
STEP_S = 0.001


def task(call: int, *below: int, priority: int = 0) -> Task:
    path = child_path(PROGRAM_PATH, call)
    for index in below:
        path = child_path(path, index)
    return Task("f", path, b"", b"", priority=priority)


class Cores:
    """A root node whose schedulers are busy with calls that run for ever."""

    def __init__(self, schedulers: int = 2, share_max: int = 4) -> None:
        self.core = Node.root(CoreConfig(fair_s=FAIR_S, share_max=share_max), lambda n: 0)
        self.now = 0.0
        self.slots = 0
        self.first: list[tuple[Origin, Spark, float]] = []
        """What was started before what ran, and when."""
        self.started: list[bytes] = []
        for number in range(1, schedulers + 1):
            self.take(ev.SchedulerUp(Origin(number)))
            self.take(ev.Hungry(Origin(number), 1))

    def take(self, event: ev.Event) -> None:
        for effect in self.core.handle(event, self.now):
            if isinstance(effect, fx.Start):
                self.started += [spark.task.path for spark in effect.sparks]
                if effect.first:
                    self.first.append((effect.scheduler, effect.sparks[0], self.now))

    def call(self, *tasks: Task, origin: Origin = PROGRAM) -> None:
        first, self.slots = self.slots, self.slots + len(tasks)
        self.take(ev.Exported(origin, tuple(enumerate(tasks, first))))

    def go_on(self, for_s: float) -> None:
        """Time passes; the core is woken when it wants to be."""
        end = self.now + for_s
        while (deadline := self.core.next_deadline()) is not None and deadline <= end:
            self.now = max(self.now, deadline)
            self.take(ev.Tick())
        self.now = end

    def finish(self, origin: Origin, spark: Spark) -> None:
        self.take(ev.Finished(origin, ((spark.ref, spark.replica, Outcome(Verdict.VALUE, b"")),)))


def busy(schedulers: int = 2, share_max: int = 4) -> Cores:
    cores = Cores(schedulers, share_max)
    for call in range(schedulers):
        cores.call(task(call))
    assert not cores.first
    return cores


def test_a_call_that_finds_all_cores_busy_is_started_in_time() -> None:
    cores = busy()
    cores.now = 1.0
    cores.call(task(7))
    cores.go_on(1.0)
    [(_, spark, at_s)] = cores.first
    assert spark.task == task(7)
    assert at_s <= 1.0 + 2 * FAIR_S


def test_a_hundred_short_calls_after_each_other_are_each_started_in_time() -> None:
    cores = busy()
    for call in range(100):
        asked_s = cores.now
        cores.call(task(10 + call))
        cores.go_on(2 * FAIR_S)
        origin, spark, at_s = cores.first[-1]
        assert spark.task == task(10 + call)
        assert at_s <= asked_s + 2 * FAIR_S
        cores.finish(origin, spark)


def test_those_who_give_way_do_so_in_turn_and_so_often_at_most() -> None:
    cores = busy(2, share_max=3)
    for call in range(20):
        cores.call(task(10 + call))
    cores.go_on(1.0)
    assert [origin for origin, *_ in cores.first] == [1, 2, 1, 2, 1, 2]
    origin, spark, _ = cores.first[0]
    cores.finish(origin, spark)
    cores.go_on(1.0)
    assert [origin for origin, *_ in cores.first[6:]] == [1]


def test_a_call_that_has_a_core_waits_with_the_rest_of_its_tasks() -> None:
    cores = busy(1)
    cores.call(task(0, 1), task(0, 2), origin=Origin(1))
    cores.go_on(1.0)
    assert not cores.first
    assert cores.core.next_deadline() is None, "nothing is looked for again and again"


def test_where_several_calls_have_cores_none_waits_for_its_own_child_for_long() -> None:
    cores = busy(1)
    cores.call(task(7))
    cores.go_on(1.0)
    assert [spark.task for _, spark, _ in cores.first] == [task(7)]
    asked_s = cores.now
    cores.call(task(7, 0), origin=Origin(1))  # it waits for that, and the other call goes on
    cores.go_on(1.0)
    [(_, spark, at_s)] = cores.first[1:]
    assert spark.task == task(7, 0)
    assert at_s <= asked_s + 2 * FAIR_S


def test_when_the_last_task_of_a_call_has_ended_its_next_one_may_be_started() -> None:
    cores = busy(1)
    cores.call(task(7))
    cores.go_on(1.0)
    [(origin, spark, _)] = cores.first
    cores.finish(origin, spark)
    cores.call(task(7, 1), origin=Origin(1))
    cores.go_on(1.0)
    assert [spark.task for _, spark, _ in cores.first[1:]] == [task(7, 1)]


def test_while_tasks_are_handed_out_nobody_has_to_give_way() -> None:
    cores = Cores(1)
    for call in range(50):
        cores.call(task(call))
    for _ in range(45):
        cores.go_on(FAIR_S / 2)
        [held] = cores.core.schedulers.held()
        cores.finish(Origin(1), held)
        cores.take(ev.Hungry(Origin(1), 1))
    assert not cores.first


def test_a_placed_task_need_not_wait_either() -> None:
    cores = busy()
    cores.take(ev.Placed(PROGRAM, 9, task(9), cores.core.live_nodes()[0]))
    cores.go_on(1.0)
    assert [spark.task for _, spark, _ in cores.first] == [task(9)]


def test_without_the_wish_for_fairness_nothing_of_this_happens() -> None:
    cores = busy()
    cores.core = Node.root(CoreConfig(), lambda n: 0)
    cores.take(ev.SchedulerUp(Origin(1)))
    cores.call(task(1), task(2))
    assert cores.core.next_deadline() is None


def spark(call: int, *below: int, priority: int = 0) -> Spark:
    return Spark(TaskRef(cores_node, PROGRAM, call), 0, task(call, *below, priority=priority))


cores_node = Node.root(CoreConfig(), lambda n: 0).live_nodes()[0]


def test_calls_take_turns_in_the_pool() -> None:
    pool = Sparkpool()
    for index in range(3):
        pool.add(spark(1, index))
    pool.add(spark(2))
    pool.add(spark(3, 0))
    taken = [pool.take().task for _ in range(5)]
    assert taken == [task(1, 0), task(2), task(3, 0), task(1, 1), task(1, 2)]


def test_a_higher_priority_comes_first_whoever_takes() -> None:
    pool = Sparkpool()
    for priority in (0, 5, -5, 5):
        pool.add(spark(1 + len(pool), priority=priority))
    assert [pool.take_for_thief().task.priority for _ in range(4)] == [5, 5, 0, -5]
    assert (len(pool), pool.stealable, list(pool)) == (0, 0, [])


def test_those_far_below_a_call_are_of_that_call() -> None:
    from hdphrs.protocol.paths import BUNDLE, call_of

    path = task(300).path
    call = path
    for index in range(1000):
        path = child_path(path, index % 200)
        assert call_of(path) == call
        assert call_of(BUNDLE + path) == call
    assert call_of(BUNDLE + call) == BUNDLE + call, "a bundle of several calls"


def test_a_bundle_of_calls_waits_longer_and_not_for_ever() -> None:
    from hdphrs.protocol.paths import BUNDLE

    cores = busy()
    asked_s = cores.now
    cores.call(Task("f", BUNDLE + task(9).path, b"", b""))
    cores.go_on(1.0)
    [(_, _, at_s)] = cores.first
    assert 3 * FAIR_S < at_s - asked_s < 7 * FAIR_S


def test_what_is_given_up_meanwhile_is_passed_over_and_what_has_crashed_waits() -> None:
    pool = Sparkpool()
    wanted: list[Spark] = []
    schedulers = Schedulers(CoreConfig(), pool, wanted.__contains__)
    schedulers.rise(Origin(1))
    schedulers.starve(Origin(1), 1)
    running, given_up, good, crashed = (
        Spark(TaskRef(ROOT, PROGRAM, slot), 0, task(slot), crashes=(Crash("here", 1, "died"),) if slot == 3 else ())
        for slot in range(4)
    )
    wanted += [running, good, crashed]
    pool.add(running)
    assert schedulers.assign(alone=True) == ([(Origin(1), [running])], [])
    pool.add(given_up)
    pool.add(good)
    assert schedulers.squeeze(bundles=True) == (Origin(1), good)
    pool.add(crashed)
    assert schedulers.squeeze(bundles=True) is None
    assert list(pool) == [crashed]
