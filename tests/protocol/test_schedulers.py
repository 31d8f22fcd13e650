"""Schedulers: shares, and what becomes of the tasks of one that dies."""

from __future__ import annotations

from dataclasses import replace

from hdphrs.config import CoreConfig
from hdphrs.explore.cluster import Cluster
from hdphrs.explore.work import CODE, CRASH, spark, task
from hdphrs.protocol import events as ev
from hdphrs.protocol import messages as msg
from hdphrs.protocol.effects import Deliver, Start, Teach
from hdphrs.protocol.schedulers import BLAME_MAX
from hdphrs.protocol.tasks import PROGRAM, ROOT, Blame, NodeId, Origin, Outcome, TaskRef, Verdict
from tests.protocol.scenes import pooled, record_of


def started(cluster: Cluster, node: int, origin: int) -> list[int]:
    return [ref.slot for ref, _ in cluster.hosts[NodeId(node)].schedulers[Origin(origin)].queue]


def crew(schedulers: int, config: CoreConfig | None = None) -> Cluster:
    cluster = Cluster(1, config=config)
    for _ in range(schedulers):
        cluster.up(0)
    return cluster


def test_hungry_scheduler_gets_its_share_of_the_pool_oldest_first() -> None:
    cluster = crew(2)
    cluster.spawn(16)
    cluster.hungry(0, 1)
    assert started(cluster, 0, 1) == [0, 1, 2, 3, 4, 5, 6, 7]


def test_half_of_the_pool_is_left_if_other_nodes_may_ask_for_some() -> None:
    cluster = Cluster(2)
    for _ in range(2):
        cluster.up(0)
    cluster.spawn(16)
    cluster.hungry(0, 1)
    assert started(cluster, 0, 1) == [0, 1, 2, 3]


def test_who_says_again_that_it_is_hungry_is_fed_first() -> None:
    """It has asked ahead, like the others, and has nothing to do now."""
    cluster = crew(2)
    for origin in (1, 2, 1):
        cluster.hungry(0, origin)
    cluster.spawn(1)
    assert [started(cluster, 0, origin) for origin in (1, 2)] == [[0], []]


def test_share_is_bounded_by_room_and_by_the_setting() -> None:
    cluster = crew(1, CoreConfig(start_max=5))
    cluster.spawn(100)
    cluster.hungry(0, 1, room=3)
    assert len(started(cluster, 0, 1)) == 3
    cluster.give_back(0)
    cluster.hungry(0, 1, room=50)
    assert len(started(cluster, 0, 1)) == 5


def test_hungry_one_that_asked_last_is_fed_first() -> None:
    """Its caches are warm.  No order is unfair here: who is hungry has nothing to do, so nothing of its waits."""
    cluster = crew(3)
    for origin in (2, 1, 3):
        cluster.hungry(0, origin)
    cluster.spawn(2)
    assert [started(cluster, 0, origin) for origin in (2, 1, 3)] == [[], [1], [0]]


def test_one_task_after_the_other_goes_to_the_same_scheduler_while_the_others_sleep() -> None:
    cluster = crew(3)
    for origin in (1, 2, 3):
        cluster.hungry(0, origin)
    for _ in range(4):
        (ref,) = cluster.spawn()
        assert started(cluster, 0, 3) == [ref.slot]
        cluster.run(0, 3)
        cluster.hungry(0, 3)


def test_more_tasks_than_the_last_one_can_take_wake_those_that_have_waited_longer() -> None:
    cluster = crew(3)
    for origin in (1, 2, 3):
        cluster.hungry(0, origin)
    for origin in (3, 2, 1):
        (ref,) = cluster.spawn()
        assert started(cluster, 0, origin) == [ref.slot]


def test_scheduler_whose_future_is_filled_is_not_fed_until_it_asks_again() -> None:
    """It may have a parent to go on with; a task that it got now would wait behind that."""
    cluster = crew(2)
    cluster.spawn(depth=1)
    cluster.hungry(0, 1)
    cluster.run(0, 1)
    cluster.hungry(0, 2)
    cluster.run(0, 2)
    cluster.hungry(0, 2)  # it has the second child now
    cluster.hungry(0, 1)
    cluster.run(0, 2)
    (ref,) = cluster.spawn()
    assert pooled(cluster, 0) == [ref]
    cluster.run(0, 1)
    cluster.hungry(0, 1)
    assert started(cluster, 0, 1) == [ref.slot]


def test_placed_task_is_started_before_older_sparks() -> None:
    cluster = crew(1)
    cluster.spawn(2)
    placed = cluster.place(0)
    cluster.hungry(0)
    assert started(cluster, 0, 1)[0] == placed.slot


def test_code_is_taught_once_before_the_first_start() -> None:
    cluster = crew(1)
    cluster.spawn(8)
    teach, start = cluster.hungry(0)
    assert teach == Teach(Origin(1), CODE, b"def f")
    assert isinstance(start, Start)
    cluster.give_back(0)
    assert not any(isinstance(effect, Teach) for effect in cluster.hungry(0))


def test_tasks_of_a_dead_scheduler_are_queued_again_in_their_order_and_only_the_running_one_is_blamed() -> None:
    cluster = crew(1)
    refs = cluster.spawn(6)
    cluster.hungry(0)
    running, *_ = cluster.hosts[ROOT].schedulers[Origin(1)].queue
    cluster.crash(0, 1, running)
    assert pooled(cluster, 0) == refs
    assert [len(copy.crashes) for copy in cluster.core(0).pool] == [1, 0, 0, 0, 0, 0]
    assert record_of(cluster, refs[0]).crashes == (CRASH,)
    cluster.finish()


def test_task_that_has_crashed_here_runs_carefully_when_it_comes_again_from_elsewhere() -> None:
    """Then what took it down, if it was a child run in place, crashes alone; an innocent parent is not given up."""
    cluster = crew(2)
    for slot in (0, 1, 2):
        cluster.feed(0, ev.Exported(PROGRAM, ((slot, task(b"same path")),)))
        cluster.spawned[TaskRef(ROOT, PROGRAM, slot)] = b"same path"
    for origin in (1, 2):
        cluster.hungry(0, origin, room=1)
    for origin in (1, 2):  # both ran without care, so these do not add up
        running, *_ = cluster.hosts[ROOT].schedulers[Origin(origin)].queue
        cluster.crash(0, origin, running)
    cluster.up(0)
    for origin in (3, 4, 5):
        cluster.hungry(0, origin, room=1)
    assert [copy.crashes for copy in cluster.core(0).schedulers.held()] == [(CRASH,)] * 3


def test_copy_of_a_task_that_is_given_up_meanwhile_is_not_started_and_fails_too() -> None:
    """It was still in the pool when another copy, made by an earlier run of its parent, used up the last attempt."""
    cluster = crew(1)
    for slot in (0, 1):
        cluster.feed(0, ev.Exported(PROGRAM, ((slot, task(b"same path")),)))
        cluster.spawned[TaskRef(ROOT, PROGRAM, slot)] = b"same path"
    first, other = TaskRef(ROOT, PROGRAM, 0), TaskRef(ROOT, PROGRAM, 1)
    for origin in (1, 2, 3):
        cluster.hungry(0, origin, room=1)
        running, *_ = cluster.hosts[ROOT].schedulers[Origin(origin)].queue
        assert running == (first, 0)
        cluster.crash(0, origin, running)
    assert list(cluster.delivered) == [first]
    effects = cluster.hungry(0, 4)
    assert not [effect for effect in effects if isinstance(effect, Start)]
    assert cluster.delivered[other] == Outcome(Verdict.CRASHED, b"f", (CRASH,) * 3)
    assert not list(cluster.core(0).pool)


def test_blameless_death_is_charged_to_nobody() -> None:
    cluster = crew(1)
    (ref,) = cluster.spawn()
    cluster.hungry(0)
    cluster.crash(0, 1, (ref, 0), blameless=True)
    assert [copy.crashes for copy in cluster.core(0).pool] == [()]


def test_death_while_nothing_ran_is_charged_to_nobody() -> None:
    cluster = crew(1)
    cluster.spawn()
    cluster.hungry(0)
    cluster.crash(0, 1, None)
    assert [copy.crashes for copy in cluster.core(0).pool] == [()]


def test_task_whose_leftover_took_a_scheduler_down_runs_carefully_when_it_is_made_again() -> None:
    """One charge for what ran without care: it may be innocent, and what it leaves behind then crashes alone."""
    cluster = crew(1)
    for origin in (1, 2):
        cluster.feed(0, ev.SchedulerDied(Origin(origin), None, CRASH, leftover_of=b"0"))
        cluster.up(0)
    cluster.feed(0, ev.SchedulerDied(Origin(3), None, CRASH, blameless=True, leftover_of=b"1"))
    cluster.spawn(2)
    assert [copy.crashes for copy in cluster.core(0).pool] == [(CRASH,), ()]


def test_task_whose_leftover_takes_schedulers_down_though_it_ran_carefully_is_given_up() -> None:
    """What it leaves behind may not leave its process, so its parent is all that one can give up."""
    cluster = crew(1)
    for slot in range(3):  # made again by whoever waited in the same process
        cluster.feed(0, ev.Exported(PROGRAM, ((slot, task(b"same path")),)))
        cluster.spawned[TaskRef(ROOT, PROGRAM, slot)] = b"same path"
        cluster.hungry(0, slot + 1)
        (spark,) = cluster.core(0).schedulers.held()
        assert spark.crashes == (CRASH,) * slot
        cluster.run(0, slot + 1)
        died = ev.SchedulerDied(Origin(slot + 1), None, CRASH, leftover_of=spark.task.path, charged=spark.crashes)
        cluster.feed(0, died)
        cluster.up(0)
    cluster.feed(0, ev.Exported(PROGRAM, ((3, task(b"same path")),)))
    cluster.hungry(0, 4)
    assert cluster.delivered[TaskRef(ROOT, PROGRAM, 3)] == Outcome(Verdict.CRASHED, b"f", (CRASH,) * 3)


def test_scheduler_that_dies_before_it_is_up_takes_nothing_along() -> None:
    """A process may die while it starts; its number is never used again, so there is nothing to take back."""
    cluster = crew(1)
    refs = cluster.spawn(2)
    assert cluster.feed(0, ev.SchedulerDied(Origin(7), None, CRASH)) == []
    assert pooled(cluster, 0) == refs
    assert cluster.core(0).counters["crashes"] == 1


def test_placed_task_of_a_dead_scheduler_stays_a_thread_here() -> None:
    cluster = Cluster(2)
    cluster.place(1)
    cluster.settle()
    cluster.hungry(1)
    (running,) = cluster.hosts[NodeId(1)].schedulers[Origin(1)].queue
    cluster.crash(1, 1, running)
    cluster.settle()
    assert [copy.placed for copy in cluster.core(1).pool] == [True]
    cluster.finish()


def test_futures_of_a_dead_scheduler_and_their_sparks_are_forgotten() -> None:
    cluster = crew(1)
    cluster.spawn(depth=1)
    cluster.hungry(0)
    cluster.run(0)
    assert len(pooled(cluster, 0)) == 2
    ((parent, _),) = cluster.hosts[ROOT].schedulers[Origin(1)].waiting.items()
    cluster.crash(0, 1, parent)
    assert pooled(cluster, 0) == [parent[0]]
    assert cluster.core(0).counters["orphans"] == 2
    cluster.finish()


def test_child_that_is_exported_again_starts_with_its_crashes_and_fails_when_they_are_used_up() -> None:
    """Its parent waited in the very scheduler that it took down, so each re-run of the parent makes it anew."""
    cluster = crew(1)
    (parent,) = cluster.spawn(depth=1)
    for origin in (1, 2, 3):
        cluster.hungry(0, origin)
        cluster.run(0, origin)
        cluster.hungry(0, origin)
        child = next(iter(cluster.hosts[ROOT].schedulers[Origin(origin)].queue))
        assert child[0].origin == origin
        held = {(spark.ref, spark.replica): spark for spark in cluster.core(0).schedulers.held()}
        assert len(held[child].crashes) == origin - 1
        cluster.crash(0, origin, child)
    cluster.hungry(0, 4)
    cluster.run(0, 4)
    child_future = next(ref for ref in cluster.delivered if ref.origin == 4)
    assert cluster.delivered[child_future].verdict is Verdict.CRASHED
    assert len(cluster.delivered[child_future].crashes) == 3
    assert parent not in cluster.delivered


def test_task_that_was_given_up_elsewhere_fails_at_once_when_its_parent_makes_it_again() -> None:
    """Simulator seed 0x3c5: it took down the process in which an ancestor waited, and was made anew for ever."""
    cluster = Cluster(2)
    made_again = [cluster.place(1) for _ in range(2)]
    crashes = (CRASH,) * cluster.config.attempts_max
    verdict = Outcome(Verdict.CRASHED, b"f", crashes)
    cluster.feed(0, ev.Received(NodeId(1), msg.Result(made_again[0], 0, verdict)))
    again = task(b"0")
    effects = cluster.feed(0, ev.Placed(PROGRAM, 2, again, NodeId(1)))
    assert effects == [Deliver(PROGRAM, 2, verdict)]


def test_crashes_of_a_task_add_up_over_all_that_its_parents_make_of_it() -> None:
    cluster = Cluster(2, checked=False)
    for attempt in range(cluster.config.attempts_max):
        ref = TaskRef(ROOT, PROGRAM, attempt)
        cluster.spawned[ref] = b"p"
        cluster.feed(0, ev.Placed(PROGRAM, attempt, task(b"p"), NodeId(1)))
        cluster.settle()
        cluster.hungry(1, attempt + 1)
        cluster.crash(1, attempt + 1, (ref, 0))
        cluster.feed(1, ev.Received(ROOT, msg.Purge(NodeId(1), (ref,))))
    cluster.settle()
    assert [outcome.verdict for outcome in cluster.delivered.values()] == [Verdict.CRASHED]


def test_crashes_of_a_child_go_along_when_its_parent_is_stolen() -> None:
    """It waited in the very scheduler that the child took down, so whoever is up is hungry, and gets it."""
    cluster = Cluster(2)
    cluster.up(0)
    cluster.spawn(depth=1)
    for attempt in range(cluster.config.attempts_max):
        node = attempt % 2
        origin = max(cluster.hosts[NodeId(node)].schedulers)
        cluster.hungry(node, origin)
        cluster.settle()
        cluster.run(node, origin)
        cluster.hungry(node, origin)
        child = next(iter(cluster.hosts[NodeId(node)].schedulers[origin].queue))
        assert child[0].node == node
        cluster.crash(node, origin, child)
    assert cluster.core(0).schedulers.crashes_of(b"0.0") == (CRASH,) * cluster.config.attempts_max
    cluster.finish()


def test_only_the_newest_crashes_of_what_descends_from_a_spark_go_along() -> None:
    schedulers = crew(1).core(0).schedulers
    schedulers.charge(b"1.0", (CRASH,))
    for child in range(BLAME_MAX + 1):
        schedulers.charge(b"0.%d" % child, (CRASH,))
    parent = replace(spark(), task=task(b"0", depth=1))
    assert schedulers.blame_of([parent.task.path]) == tuple(
        Blame(b"0.%d" % child, (CRASH,)) for child in range(1, BLAME_MAX + 1)
    )


def test_paths_of_crashed_tasks_are_remembered_up_to_a_bound() -> None:
    cluster = crew(1, CoreConfig(remembered_crashes_max=1))
    refs = cluster.spawn(2)
    cluster.hungry(0, 1)
    cluster.crash(0, 1, (refs[0], 0))
    assert cluster.core(0).schedulers.crashes_of(b"0") == (CRASH,)
    cluster.hungry(0, 2)
    cluster.run(0, 2)
    cluster.hungry(0, 2)
    cluster.crash(0, 2, (refs[1], 0))
    assert cluster.core(0).schedulers.crashes_of(b"0") == ()
    assert cluster.core(0).schedulers.crashes_of(b"1") == (CRASH,)


def test_used_up_attempts_fail_a_placed_task_at_once() -> None:
    cluster = Cluster(1, config=CoreConfig(attempts_max=1))
    cluster.up(0)
    (ref,) = cluster.spawn()
    cluster.hungry(0)
    cluster.crash(0, 1, (ref, 0))
    cluster.feed(0, ev.Placed(Origin(0), 7, task(b"0"), ROOT))
    assert [outcome.verdict for outcome in cluster.delivered.values()] == [Verdict.CRASHED] * 2


def test_orphans_of_a_dead_scheduler_are_purged_on_the_nodes_that_hold_them() -> None:
    """Else they are run for nobody, and those that crash take innocent tasks along."""
    cluster = Cluster(2)
    cluster.up(0)
    cluster.up(1)
    cluster.spawn(1)
    cluster.hungry(0)
    cluster.feed(0, ev.Exported(Origin(1), tuple((slot, task(b"child %d" % slot)) for slot in range(8))))
    cluster.hungry(1, room=1)
    cluster.settle()
    assert cluster.core(1).pool.stealable > 0
    cluster.crash(0, 1)
    cluster.settle()
    assert cluster.core(1).pool.stealable == 0
    assert cluster.core(1).counters["orphans"] > 0
    cluster.check()
