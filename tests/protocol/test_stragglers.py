"""The last few tasks of many are started once more when they take too long (decision 12)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hdphrs.config import CoreConfig
from hdphrs.explore.cluster import Cluster
from hdphrs.explore.work import COST_S, task, value_of
from hdphrs.protocol import events as ev
from hdphrs.protocol import messages as msg
from hdphrs.protocol.effects import Double, Effect, Start
from hdphrs.protocol.tasks import PROGRAM, ROOT, NodeId, Origin, Outcome, TaskRef, Verdict

N1 = NodeId(1)
FIRST = Origin(1)
CONFIG = CoreConfig(speculate=True, siblings_min=2)


def one_left(config: CoreConfig = CONFIG, *, supervised: bool = True) -> Cluster:
    """Node 1 has run five tasks, one after the other, and runs the sixth; the root has a scheduler."""
    cluster = Cluster(3, config=config, checked=False)
    cluster.spawn(6, supervised=supervised)
    cluster.up(0)
    queue = cluster.hosts[N1].schedulers[FIRST].queue
    while len(cluster.core(0).supervisor) > 1 or not queue:
        if queue:
            cluster.run(1)
        else:
            cluster.hungry(1)
        cluster.settle()
    return cluster


def straggler(cluster: Cluster) -> TaskRef:
    ((ref, _),) = cluster.core(0).supervisor.records()
    return ref


def doubled(effects: list[Effect]) -> list[Double]:
    return [effect for effect in effects if isinstance(effect, Double)]


def wait(cluster: Cluster, for_s: float) -> list[Effect]:
    cluster.now += for_s
    return cluster.feed(0, ev.Tick())


def test_straggler_is_started_once_more_when_it_could_have_been_run_twice() -> None:
    cluster = one_left()
    ref = straggler(cluster)
    cluster.hungry(0)
    deadline = cluster.core(0).stragglers.next_deadline()
    assert deadline == cluster.now + 2 * COST_S
    assert not doubled(wait(cluster, 2 * COST_S - 0.1))
    effects = wait(cluster, 0.1)
    assert doubled(effects) == [Double(ref, 1, "f")]
    assert [spark.ref for effect in effects if isinstance(effect, Start) for spark in effect.sparks] == [ref]
    assert cluster.core(0).counters["doubled"] == 1
    assert cluster.core(0).stragglers.next_deadline() is None


def test_first_answer_wins_and_the_other_copy_is_stopped() -> None:
    cluster = one_left()
    ref = straggler(cluster)
    cluster.hungry(0)
    wait(cluster, 2 * COST_S)
    path = b"%d" % ref.slot
    cluster.feed(0, ev.Finished(FIRST, ((ref, 1, value_of(path)),)))
    assert cluster.delivered[ref] == value_of(path)
    assert msg.Cancel(N1, (ref,)) in cluster.in_flight(0, 1)
    cluster.settle()
    assert list(cluster.hosts[N1].schedulers[FIRST].stopped) == [(ref, 0)]
    cluster.feed(1, ev.Finished(FIRST, ((ref, 0, value_of(path)),)))
    assert not any(isinstance(message, msg.Result) for message in cluster.in_flight(1, 0))


def test_straggler_that_ends_after_all_wins_over_its_double() -> None:
    cluster = one_left()
    ref = straggler(cluster)
    cluster.hungry(0)
    wait(cluster, 2 * COST_S)
    path = b"%d" % ref.slot
    cluster.feed(1, ev.Finished(FIRST, ((ref, 0, value_of(path)),)))
    cluster.settle()
    assert cluster.delivered[ref] == value_of(path)
    assert list(cluster.hosts[ROOT].schedulers[FIRST].stopped) == [(ref, 1)]
    assert cluster.core(0).stragglers._doubled == {}


def test_node_with_work_waits_for_nobody() -> None:
    cluster = one_left()
    assert not doubled(wait(cluster, 100.0))
    assert cluster.core(0).stragglers.next_deadline() is None


def test_thief_that_waits_is_idle_too() -> None:
    cluster = one_left()
    cluster.hungry(2)
    cluster.settle()
    assert cluster.core(0).victim.parked
    assert cluster.core(0).stragglers.next_deadline() is not None


@pytest.mark.parametrize(
    "config",
    [
        replace(CONFIG, speculate=False),
        replace(CONFIG, siblings_min=100),
        replace(CONFIG, stragglers_max=0),
    ],
    ids=["not asked for", "few have ended", "many are left"],
)
def test_when_there_is_nothing_to_judge_by_nothing_is_started_again(config: CoreConfig) -> None:
    cluster = one_left(config)
    cluster.hungry(0)
    assert not doubled(wait(cluster, 100.0))


def test_tasks_that_failed_tell_nothing_about_those_that_run() -> None:
    stragglers = one_left().core(0).stragglers
    known = {kind: (ended.count, ended.cost_s) for kind, ended in stragglers._ended.items()}
    stragglers.on_end(TaskRef(ROOT, PROGRAM, 7), task(b"7"), Outcome(Verdict.RAISED, b""))
    assert {kind: (ended.count, ended.cost_s) for kind, ended in stragglers._ended.items()} == known


def test_unsupervised_tasks_and_threads_are_never_started_again() -> None:
    cluster = one_left(supervised=False)
    cluster.hungry(0)
    assert not doubled(wait(cluster, 100.0))
    cluster = one_left()
    cluster.feed(1, ev.Finished(FIRST, ((straggler(cluster), 0, value_of(b"%d" % straggler(cluster).slot)),)))
    cluster.settle()
    cluster.place_one(1, 99, task(b"9"))
    cluster.settle()
    cluster.hungry(0)
    assert not doubled(wait(cluster, 100.0))


def test_task_that_was_recreated_is_waited_for_from_then_on() -> None:
    """Simulator seed 0xc7: a death and the end of patience came at once."""
    cluster = one_left()
    cluster.hungry(0)
    cluster.now += 2 * COST_S
    cluster.kill(1)
    cluster.unruled.append(N1)
    assert not doubled(cluster.feed(0, ev.Suspected(N1)))
    cluster.settle()
    assert cluster.core(0).counters["doubled"] == 0


def test_tasks_of_a_dead_scheduler_are_forgotten() -> None:
    cluster = Cluster(2, config=CONFIG, checked=False)
    cluster.up(0)
    cluster.hungry(1)
    cluster.feed(0, ev.Exported(FIRST, tuple((slot, task(b"%d" % slot)) for slot in range(3))))
    cluster.settle()
    held = list(cluster.hosts[N1].schedulers[FIRST].queue)
    cluster.feed(1, ev.Finished(FIRST, tuple((*copy, value_of(b"%d" % copy[0].slot)) for copy in held)))
    cluster.settle()
    stragglers = cluster.core(0).stragglers
    assert stragglers._ended
    cluster.crash(0, 1, None)
    assert not stragglers._ended


def test_doubles_of_one_task_end_with_it_wherever_they_are() -> None:
    """Node 1 has stolen the double as well: what it has of the two is stopped but for the one that ends."""
    for winner in range(2):
        cluster = one_left()
        ref = straggler(cluster)
        core = cluster.core(0)
        core.pool.add(core.supervisor.double(ref))
        cluster.up(1)
        cluster.hungry(1, 2)
        cluster.settle()
        assert {(spark.ref, spark.replica) for spark in cluster.core(1).schedulers.held()} == {(ref, 0), (ref, 1)}
        cluster.feed(1, ev.Finished(Origin(winner + 1), ((ref, winner, value_of(b"%d" % ref.slot)),)))
        cluster.settle()
        loser = cluster.hosts[N1].schedulers[Origin(2 - winner)]
        assert list(loser.stopped) == [(ref, 1 - winner)]


def test_double_on_its_way_when_the_first_copy_ends_is_stopped_when_it_has_arrived() -> None:
    cluster = one_left()
    ref = straggler(cluster)
    core = cluster.core(0)
    core.pool.add(core.supervisor.double(ref))
    cluster.hungry(2)
    cluster.deliver(2, 0)
    assert isinstance(cluster.in_flight(0, 2)[-1], msg.Schedule)
    cluster.feed(1, ev.Finished(FIRST, ((ref, 0, value_of(b"%d" % ref.slot)),)))
    cluster.deliver(1, 0)
    assert core.supervisor.vanishing == 1
    assert not any(isinstance(message, msg.Cancel) for message in cluster.in_flight(0, 2))
    cluster.settle()
    assert core.supervisor.vanishing == 0
    assert list(cluster.hosts[NodeId(2)].schedulers[FIRST].stopped) == [(ref, 1)]


def test_double_that_wins_before_its_arrival_is_known_is_not_looked_for() -> None:
    cluster = one_left()
    ref = straggler(cluster)
    core = cluster.core(0)
    core.pool.add(core.supervisor.double(ref))
    cluster.hungry(2)
    cluster.deliver(2, 0)
    assert isinstance(cluster.in_flight(0, 2)[-1], msg.Schedule)
    cluster.feed(0, ev.Received(NodeId(2), msg.Result(ref, 1, value_of(b"%d" % ref.slot))))
    assert core.supervisor.vanishing == 0
    assert cluster.in_flight(0, 1)[-1] == msg.Cancel(N1, (ref,))


def test_the_next_deadline_is_that_of_the_quickest_kind() -> None:
    cluster = Cluster(2, config=CONFIG, checked=False)
    stragglers = cluster.core(0).stragglers
    for slot, (name, cost_s) in enumerate(((b"quick", 2.0), (b"slow", 20.0))):
        for number in range(2):
            ended = replace(value_of(b""), cost_s=cost_s)
            stragglers.on_end(TaskRef(ROOT, PROGRAM, 10 + number), task(b"1", code=name), ended)
        cluster.core(0).supervisor.register(TaskRef(ROOT, PROGRAM, slot), task(b"1", code=name), ())
    assert stragglers.look(5.0, idle=True) == []
    assert stragglers.next_deadline() == 5.0 + 2 * 2.0
