"""Cancelled tasks end wherever they are, and nobody is told of it (decision 14)."""

from __future__ import annotations

from collections import deque
from random import Random

import pytest

from hdphrs.config import CoreConfig
from hdphrs.explore.cluster import Cluster
from hdphrs.explore.work import task, value_of
from hdphrs.protocol import effects as fx
from hdphrs.protocol import events as ev
from hdphrs.protocol import messages as msg
from hdphrs.protocol.effects import Effect, Replace
from hdphrs.protocol.tasks import PROGRAM, ROOT, FishId, NodeId, Origin, Piece, TaskRef
from hdphrs.protocol.unwanted import PURGE_MAX
from tests.protocol.scenes import orphan_to_be, pooled, stolen_spark
from tests.protocol.test_orphans import orphan_on_2, spawn_again

N1, N2, N3 = NodeId(1), NodeId(2), NodeId(3)
FIRST = Origin(1)


def ref(slot: int = 0) -> TaskRef:
    return TaskRef(ROOT, PROGRAM, slot)


def running(cluster: Cluster, node: int) -> list[TaskRef]:
    """What the schedulers of a node have."""
    return [spark.ref for spark in cluster.core(node).schedulers.held()]


def cancel(cluster: Cluster, *slots: int) -> list[Effect]:
    cluster.cancelled.update((ref(slot), None) for slot in slots)
    return cluster.feed(0, ev.Cancelled(PROGRAM, slots))


def told(effects: list[Effect]) -> list[tuple[NodeId, msg.Cancel]]:
    return [
        (one.to, one.message) for one in effects if isinstance(one, fx.Send) and isinstance(one.message, msg.Cancel)
    ]


def is_clean(cluster: Cluster) -> bool:
    """Nothing of any task is left anywhere."""
    return all(host.is_idle for host in cluster.hosts.values() if host.runs)


def in_transition(nodes: int = 3) -> Cluster:
    """The root has given its only spark to node 1, where SCHEDULE is still to arrive."""
    cluster = Cluster(nodes)
    cluster.spawn(1)
    cluster.hungry(1)
    cluster.deliver(1, 0)
    return cluster


def test_cancelled_spark_vanishes_from_the_pool_of_its_supervisor() -> None:
    cluster = Cluster(2)
    cluster.spawn(2)
    assert told(cancel(cluster, 0)) == []
    assert pooled(cluster, 0) == [ref(1)]
    assert cluster.core(0).counters["cancelled"] == 1


def test_cancelled_spark_vanishes_from_the_pool_of_another_node() -> None:
    cluster, waiting = stolen_spark()
    assert told(cancel(cluster, waiting.slot)) == [(N1, msg.Cancel(N1, (waiting,)))]
    cluster.settle()
    assert pooled(cluster, 1) == []
    cluster.finish()
    assert waiting not in cluster.delivered
    assert is_clean(cluster)


def test_cancelling_twice_or_what_is_full_does_nothing() -> None:
    cluster = Cluster(2)
    cluster.spawn(1)
    cluster.finish()
    assert cancel(cluster, 0) == []
    cluster.spawn(1)
    cancel(cluster, 1)
    assert cancel(cluster, 1) == []
    assert cluster.core(0).counters["cancelled"] == 1


def test_running_task_is_stopped_and_its_answer_is_dropped() -> None:
    cluster = in_transition()
    cluster.settle()
    cancel(cluster, 0)
    cluster.deliver(0, 1)
    scheduler = cluster.hosts[N1].schedulers[FIRST]
    assert list(scheduler.stopped) == [(ref(), 0)]
    cluster.run(1)
    cluster.settle()
    assert cluster.core(0).counters["duplicates"] == 0
    assert not cluster.delivered
    assert is_clean(cluster)


def test_stopped_task_is_told_so_once() -> None:
    cluster = in_transition()
    cluster.settle()
    cancel(cluster, 0)
    cluster.settle()
    assert cluster.feed(1, ev.Received(ROOT, msg.Cancel(N1, (ref(),)))) == []


def test_children_of_a_stopped_task_are_cancelled_with_it() -> None:
    cluster = Cluster(3)
    cluster.spawn(1, depth=1)
    cluster.hungry(1)
    cluster.settle()
    cluster.run(1)  # two children
    cluster.hungry(2)
    cluster.settle()
    assert running(cluster, 2) == [TaskRef(N1, FIRST, 0)]
    cancel(cluster, 0)
    cluster.settle()
    cluster.run(1)
    cluster.settle()
    assert list(cluster.hosts[N2].schedulers[FIRST].stopped) == [(TaskRef(N1, FIRST, 0), 0)]
    cluster.finish()
    assert is_clean(cluster)


def test_waiting_hunger_is_taken_back_by_a_cancellation() -> None:
    """A task that has waited in a hungry scheduler ends there: the scheduler asks again."""
    cluster = Cluster(2)
    cluster.spawn(1, depth=1)
    cluster.hungry(1)
    cluster.settle()
    cluster.run(1)
    cluster.feed(1, ev.Cancelled(FIRST, (0, 1)))
    cluster.hosts[N1].schedulers[FIRST].waiting[ref(), 0][1].clear()
    cluster.hungry(1)
    assert cluster.core(1).schedulers.hungry
    cancel(cluster, 0)
    cluster.settle()
    assert not cluster.core(1).schedulers.hungry
    cluster.run(1)
    assert is_clean(cluster)


def test_spark_on_its_way_is_stopped_when_it_has_arrived() -> None:
    cluster = in_transition()
    assert told(cancel(cluster, 0)) == []
    assert cluster.core(0).supervisor.vanishing == 1
    cluster.settle()
    assert cluster.core(0).supervisor.vanishing == 0
    assert list(cluster.hosts[N1].schedulers[FIRST].stopped) == [(ref(), 0)]
    cluster.finish()
    assert is_clean(cluster)


def test_ack_of_an_older_replica_or_a_stranger_says_nothing_of_where_a_cancelled_spark_is() -> None:
    cluster = in_transition()
    cancel(cluster, 0)
    cluster.feed(0, ev.Received(N1, msg.Ack(ref(), 7, N1)))
    cluster.feed(0, ev.Received(N2, msg.Ack(ref(), 0, N2)))
    assert cluster.core(0).supervisor.vanishing == 1


def test_spark_that_comes_home_after_its_cancellation_is_dropped() -> None:
    cluster, waiting = stolen_spark()
    cluster.feed(1, ev.Received(ROOT, msg.Fish(FishId(99), ROOT, 1, 0.1)))
    cluster.deliver(1, 0)  # REQ
    cancel(cluster, waiting.slot)
    assert cluster.core(0).supervisor.vanishing == 1
    cluster.settle()
    assert cluster.core(0).supervisor.vanishing == 0
    assert waiting not in pooled(cluster, 0)
    cluster.finish()
    assert is_clean(cluster)


def guarded() -> tuple[Cluster, TaskRef]:
    """Node 1 has a spark of the root's, and AUTH to give it to node 2 is on its way."""
    cluster, waiting = stolen_spark(CoreConfig(pieces_bytes_max=0))
    cluster.feed(1, ev.Received(N2, msg.Fish(FishId(99), N2, 1, 0.1)))
    cluster.deliver(1, 0)  # REQ
    return cluster, waiting


def test_victim_that_dies_leaves_a_cancelled_spark_to_its_thief_who_hears_of_it_from_the_root() -> None:
    cluster, waiting = guarded()
    cancel(cluster, waiting.slot)
    assert cluster.core(0).supervisor.vanishing == 1
    cluster.deliver(0, 1)  # AUTH
    cluster.kill(1)
    cluster.suspect(1)
    assert cluster.core(0).supervisor.vanishing == 0
    order = cluster.in_flight(0, 2)
    assert isinstance(order[-2], msg.DeadNode)
    assert order[-1] == msg.Cancel(N2, (waiting,))
    cluster.finish()
    assert is_clean(cluster)


def test_thief_that_dies_leaves_a_cancelled_spark_to_its_victim() -> None:
    cluster, waiting = guarded()
    cancel(cluster, waiting.slot)
    cluster.kill(2)
    cluster.suspect(2)
    assert [type(message) for message in cluster.in_flight(0, 1)] == [msg.Auth, msg.DeadNode, msg.Cancel]
    cluster.settle()
    assert waiting not in pooled(cluster, 1)
    cluster.finish()
    assert is_clean(cluster)


def test_copy_that_outlives_the_death_of_its_victim_is_stopped_when_the_other_has_ended() -> None:
    """The thief hears of it from the root: it may have to hear of the death first, and accept what the dead has sent
    until then."""
    cluster, waiting = guarded()
    cluster.deliver(0, 1)  # AUTH
    while cluster.in_flight(1, 2):
        cluster.deliver(1, 2)
    assert [spark.ref for spark in cluster.core(2).victim.guarded()] == [waiting]  # for another one who waits
    cluster.kill(1)
    cluster.suspect(1)
    cluster.up(0)
    cluster.hungry(0)
    while waiting not in cluster.delivered:
        cluster.run(0)
    order = cluster.in_flight(0, 2)
    assert order[-1] == msg.Cancel(N2, (waiting,))
    assert any(isinstance(message, msg.DeadNode) for message in order[:-1])
    cluster.settle()
    assert waiting not in pooled(cluster, 2)
    cluster.finish()
    assert is_clean(cluster)


def test_deaths_of_others_do_not_settle_where_a_cancelled_spark_is() -> None:
    cluster, waiting = guarded()
    other = cluster.join()
    cancel(cluster, waiting.slot)
    cluster.kill(other)
    cluster.suspect(other)
    assert cluster.core(0).supervisor.vanishing == 1


def test_guarded_spark_vanishes_and_its_thief_is_told() -> None:
    cluster, child = orphan_to_be()
    cluster.checked = False  # its supervisor knows nothing of it
    cluster.feed(2, ev.Received(N3, msg.Fish(FishId(99), N3, 1, 0.1)))
    assert [spark.ref for spark in cluster.core(2).victim.guarded()] == [child]
    effects = cluster.feed(2, ev.Received(N1, msg.Cancel(N2, (child,))))
    assert not list(cluster.core(2).victim.guarded())
    assert fx.Send(N3, msg.NoWork(FishId(99), 0.0)) in effects


def test_cancel_by_way_of_the_root_ends_there_if_its_receiver_is_dead() -> None:
    cluster, child = orphan_to_be()
    passed = msg.Cancel(N2, (child,))
    assert told(cluster.feed(0, ev.Received(N1, passed))) == [(N2, passed)]
    cluster.kill(2)
    cluster.suspect(2)
    assert told(cluster.feed(0, ev.Received(N1, passed))) == []


def test_cancel_of_somebody_else_s_task_is_not_listened_to() -> None:
    cluster, waiting = stolen_spark()
    cluster.feed(1, ev.Received(N2, msg.Cancel(N1, (waiting,))))
    assert pooled(cluster, 1) == [waiting]
    assert cluster.core(1).counters["stale"] == 1


def test_many_are_cancelled_in_several_messages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hdphrs.protocol.unwanted.PURGE_MAX", 1)
    assert PURGE_MAX > 1
    cluster = Cluster(2)
    cluster.spawn(4)
    cluster.hungry(1)
    cluster.settle()
    there = running(cluster, 1) + pooled(cluster, 1)
    assert len(there) > 1
    assert told(cancel(cluster, *range(4))) == [(N1, msg.Cancel(N1, (one,))) for one in there]


def test_unsupervised_spark_that_has_left_is_looked_for_everywhere() -> None:
    cluster = Cluster(3)
    cluster.spawn(2, supervised=False)
    cluster.hungry(1)
    cluster.settle()
    assert [to for to, _ in told(cancel(cluster, 0))] == [N1, N2]
    cluster.settle()
    cluster.finish()
    assert is_clean(cluster)


def test_unsupervised_spark_that_has_not_left_is_at_home() -> None:
    cluster = Cluster(3)
    cluster.spawn(1, supervised=False)
    assert told(cancel(cluster, 0)) == []
    assert pooled(cluster, 0) == []


def test_cancelled_thread_is_stopped_where_it_was_placed() -> None:
    cluster = Cluster(3)
    placed = cluster.place(2)
    cancel(cluster, placed.slot)
    cluster.settle()
    assert pooled(cluster, 2) == []


# ---- those that do not end -----------------------------------------------------------------------------------


def stopped_for(cluster: Cluster, for_s: float) -> list[Effect]:
    cluster.now += for_s
    return [effect for effect in cluster.feed(1, ev.Tick()) if isinstance(effect, Replace)]


def test_scheduler_is_to_be_replaced_when_the_grace_is_over_and_again_after_another() -> None:
    cluster = in_transition()
    cluster.settle()
    cancel(cluster, 0)
    cluster.deliver(0, 1)
    grace_s = cluster.config.cancel_grace_s
    assert cluster.core(1).next_deadline() == cluster.now + grace_s
    assert stopped_for(cluster, grace_s / 2) == []
    assert stopped_for(cluster, grace_s / 2) == [Replace(FIRST, ((ref(), 0),))]
    assert stopped_for(cluster, grace_s / 2) == []
    assert stopped_for(cluster, grace_s / 2) == [Replace(FIRST, ((ref(), 0),))]


def test_replaced_scheduler_charges_nobody_and_its_stopped_tasks_are_not_run_again() -> None:
    cluster = Cluster(2)
    cluster.spawn(4)
    cluster.hungry(1)
    cluster.settle()
    first, *others = running(cluster, 1)
    cancel(cluster, first.slot)
    cluster.settle()
    cluster.crash(1, 1, (first, 0), blameless=True)
    again = [*cluster.core(1).pool, *cluster.core(1).reruns]
    assert first not in [spark.ref for spark in again]
    assert not any(spark.crashes for spark in again)
    assert len(cluster.core(1).cancelling) == 0
    cluster.finish()
    assert first not in cluster.delivered
    assert len(cluster.delivered) == 3
    assert others or cluster.delivered


def test_stopped_task_that_crashes_for_the_last_time_is_given_up_in_silence() -> None:
    cluster = Cluster(2, config=CoreConfig(attempts_max=1))
    cluster.spawn(1)
    cluster.hungry(1)
    cluster.settle()
    cancel(cluster, 0)
    cluster.settle()
    cluster.crash(1, 1, (ref(), 0))
    cluster.settle()
    assert not cluster.delivered
    assert is_clean(cluster)


def test_children_of_a_stopped_task_that_dies_with_its_scheduler_are_cancelled_too() -> None:
    cluster = Cluster(3)
    cluster.spawn(1, depth=1)
    cluster.hungry(1)
    cluster.settle()
    cluster.run(1)
    cluster.hungry(2)
    cluster.settle()
    child = TaskRef(N1, FIRST, 0)
    assert running(cluster, 2) == [child]
    cancel(cluster, 0)
    cluster.deliver(0, 1)
    cluster.crash(1, 1, (ref(), 0), blameless=True)
    cluster.settle()
    assert list(cluster.hosts[N2].schedulers[FIRST].stopped) == [(child, 0)]
    cluster.finish()
    assert is_clean(cluster)


def test_stopped_task_that_is_given_back_is_dropped() -> None:
    cluster = in_transition()
    cluster.settle()
    cancel(cluster, 0)
    cluster.deliver(0, 1)
    cluster.give_back(1)
    assert pooled(cluster, 1) == []
    assert is_clean(cluster)


# ---- with orphans, doubles and pieces ------------------------------------------------------------------------


def test_loser_of_a_task_that_was_started_once_more_is_stopped() -> None:
    cluster = in_transition()
    cluster.settle()
    spark = cluster.core(0).supervisor.double(ref())
    cluster.core(0).pool.add(spark)
    cluster.up(0)
    cluster.hungry(0)
    cluster.run(0)
    assert cluster.in_flight(0, 1)[-1] == msg.Cancel(N1, (ref(),))
    cluster.settle()
    assert list(cluster.hosts[N1].schedulers[FIRST].stopped) == [(ref(), 0)]
    cluster.finish()
    assert is_clean(cluster)


def test_all_copies_of_a_task_that_was_started_once_more_are_stopped() -> None:
    cluster = in_transition()
    cluster.settle()
    cluster.core(0).pool.add(cluster.core(0).supervisor.double(ref()))
    assert [to for to, _ in told(cancel(cluster, 0))] == [N1]
    assert pooled(cluster, 0) == []


def test_orphan_that_a_cancelled_future_waits_for_is_stopped_and_the_root_learns_that_it_is_gone() -> None:
    cluster, orphan = orphan_on_2()
    spawn_again(cluster)
    cluster.settle()
    assert list(cluster.core(0).orphans.awaited())
    cluster.feed(3, ev.Cancelled(FIRST, (0,)))
    cluster.settle()
    assert list(cluster.hosts[N2].schedulers[FIRST].stopped) == [(orphan, 0)]
    assert not list(cluster.core(0).orphans.awaited())
    cluster.run(2)
    assert len(cluster.core(2).cancelling) == 0


def test_disowned_orphan_that_is_stopped_leaves_no_trace() -> None:
    cluster, _ = orphan_to_be()
    cluster.checked = False  # its supervisor knows nothing of it
    (held,) = running(cluster, 2)
    cluster.feed(2, ev.Received(ROOT, msg.Purge(N2, (held,))))
    assert cluster.core(2).reruns.is_orphan(held)
    cluster.feed(2, ev.Received(N1, msg.Cancel(N2, (held,))))
    cluster.run(2)
    assert not cluster.core(2).reruns.is_orphan(held)


def test_stopped_task_is_no_orphan_when_its_supervisor_forgets_it() -> None:
    cluster, _ = orphan_to_be()
    cluster.checked = False  # its supervisor knows nothing of it
    (held,) = running(cluster, 2)
    cluster.feed(2, ev.Received(N1, msg.Cancel(N2, (held,))))
    cluster.feed(2, ev.Received(ROOT, msg.Purge(N2, (held,))))
    assert not cluster.core(2).reruns.is_orphan(held)


def test_pieces_of_a_cancelled_task_are_forgotten() -> None:
    cluster = Cluster(2)
    cluster.spawn(1)
    piece = Piece(b"0.0", b"check", value_of(b"0.0"))
    cluster.feed(0, ev.Kept((piece,)))
    assert len(cluster.core(0).pieces) == 1
    cancel(cluster, 0)
    assert len(cluster.core(0).pieces) == 0


def test_nothing_is_left_of_a_thousand_cancellations() -> None:
    cluster = Cluster(4, checked=False)
    for slot in range(1000):
        cluster.spawn_all([(slot, task(b"%d" % slot, depth=1))])
        for node in (1, 2, 3):
            scheduler = cluster.hosts[NodeId(node)].schedulers[FIRST]
            if scheduler.queue:
                cluster.run(node)
            elif not scheduler.hungry:
                cluster.hungry(node)
        if slot % 3:
            cluster.settle()
        cancel(cluster, slot)
    cluster.finish()
    assert is_clean(cluster)
    assert sum(host.core.counters["cancelled"] for host in cluster.hosts.values()) >= 1000
    for host in cluster.hosts.values():
        reruns = host.core.reruns
        assert not reruns._disowned
        assert not reruns._told
        assert not list(reruns)


def weight(thing: object, seen: set[int]) -> int:
    """How much there is in a core: the items of all that it holds."""
    if id(thing) in seen or isinstance(thing, CoreConfig | str | bytes):
        return 0
    seen.add(id(thing))
    if isinstance(thing, dict):
        return len(thing) + sum(weight(one, seen) for one in (*thing.keys(), *thing.values()))
    if isinstance(thing, list | tuple | set | frozenset | deque):
        return len(thing) + sum(weight(one, seen) for one in thing)
    if not type(thing).__module__.startswith("hdphrs."):
        return 0
    names = [name for cls in type(thing).__mro__ for name in getattr(cls, "__slots__", ())]
    parts = [getattr(thing, name) for name in names if name != "__weakref__" and hasattr(thing, name)]
    return weight([*parts, *getattr(thing, "__dict__", {}).values()], seen)


def test_nothing_is_left_in_any_core_of_a_thousand_cancelled_tasks() -> None:
    chance = Random(14)
    cluster = Cluster(3)
    cluster.up(0)
    weights = []
    for number in range(1100):
        cluster.spawn(1, depth=chance.randrange(3))
        if chance.randrange(4) == 0:
            cluster.place(chance.randrange(3), depth=1)
        for _ in range(chance.randrange(8)):  # it waits somewhere, is on its way, runs, has children
            links = cluster.links()
            node = chance.randrange(3)
            if links and chance.randrange(3):
                cluster.deliver(*chance.choice(links))
            elif cluster.hosts[NodeId(node)].schedulers[FIRST].queue:
                cluster.run(node)
            elif not cluster.hosts[NodeId(node)].schedulers[FIRST].hungry:
                cluster.hungry(node)
        for waiting in list(cluster.spawned):
            if waiting not in cluster.delivered and waiting not in cluster.cancelled:
                cluster.cancel(waiting.slot)
        cluster.settle()
        if number % 100 == 99:
            cluster.finish()
            assert is_clean(cluster)
            weights.append(sum(weight(host.core, set()) for host in cluster.hosts.values()))
    assert max(weights[1:]) <= weights[0] + 20, weights
