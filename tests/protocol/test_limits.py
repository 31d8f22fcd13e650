"""Tasks that may run for so long only (decision 19), on certain nodes only, or crash so often only (decision 20)."""

from __future__ import annotations

import pytest

from hdphrs.config import CoreConfig
from hdphrs.explore.cluster import Cluster
from hdphrs.explore.work import CRASH, task
from hdphrs.protocol import events as ev
from hdphrs.protocol import messages as msg
from hdphrs.protocol.effects import Replace
from hdphrs.protocol.supervisor import OnNode
from hdphrs.protocol.tasks import PROGRAM, ROOT, NodeId, Origin, Spark, Task, TaskRef, Verdict
from tests.protocol.scenes import pooled, record_of

N1, N2 = NodeId(1), NodeId(2)
FIRST = Origin(1)
REF = TaskRef(ROOT, PROGRAM, 0)
LIMIT_S = 5.0


def spawned(cluster: Cluster, one: Task) -> TaskRef:
    return cluster.spawn_all([(0, one)])[0]


def running_on_1(depth: int = 1) -> Cluster:
    """Node 1 runs a task with a limit, which waits for its children there."""
    cluster = Cluster(3)
    spawned(cluster, task(b"0", depth=depth, timeout_s=LIMIT_S))
    cluster.hungry(1)
    cluster.settle()
    cluster.run(1)
    return cluster


def test_time_counts_from_the_beginning_of_the_run() -> None:
    cluster = Cluster(2)
    spawned(cluster, task(b"0", depth=1, timeout_s=LIMIT_S))
    cluster.hungry(1)
    cluster.settle()
    cluster.tick(10 * LIMIT_S)
    assert cluster.core(1).next_deadline() is None
    cluster.run(1)
    assert cluster.core(1).next_deadline() == cluster.now + LIMIT_S


def test_task_that_runs_too_long_fails_and_is_stopped_with_its_children() -> None:
    cluster = running_on_1()
    cluster.tick(LIMIT_S)
    assert list(cluster.hosts[N1].schedulers[FIRST].stopped) == [(REF, 0)]
    cluster.settle()
    outcome = cluster.delivered[REF]
    assert outcome.verdict is Verdict.TIMED_OUT
    assert outcome.data == b"task f has run for 5 s on node 1, as long as it may"
    cluster.run(1)
    cluster.finish()
    assert len(cluster.core(1).limits) == 0
    assert cluster.core(1).counters["timed_out"] == 1
    assert cluster.core(0).counters["duplicates"] == 0
    assert all(host.is_idle for host in cluster.hosts.values())


def test_task_that_ends_in_time_is_left_alone() -> None:
    cluster = running_on_1(depth=0)
    assert len(cluster.core(1).limits) == 0
    cluster.settle()
    assert cluster.delivered[REF].verdict is Verdict.VALUE


def test_scheduler_of_a_task_that_does_not_end_is_replaced_after_the_grace() -> None:
    cluster = running_on_1()
    cluster.tick(LIMIT_S)
    cluster.now += cluster.config.cancel_grace_s
    assert Replace(FIRST, ((REF, 0),)) in cluster.feed(1, ev.Tick())


def test_task_that_was_cancelled_before_its_time_was_over_is_not_answered_for() -> None:
    cluster = running_on_1()
    cluster.cancel(0)
    cluster.settle()
    cluster.tick(LIMIT_S)
    assert cluster.core(1).counters["timed_out"] == 0
    assert not any(isinstance(message, msg.Result) for message in cluster.in_flight(1, 0))


def test_copy_that_is_run_again_has_all_of_its_time_again() -> None:
    cluster = running_on_1()
    cluster.now += LIMIT_S - 1
    cluster.kill(1)
    cluster.suspect(1)
    cluster.up(0)
    cluster.hungry(0)
    cluster.settle()
    cluster.run(0)
    assert cluster.core(0).limits.next_deadline() == cluster.now + LIMIT_S


def test_limits_of_a_dead_scheduler_are_forgotten() -> None:
    cluster = running_on_1()
    cluster.crash(1, 1)
    assert len(cluster.core(1).limits) == 0


@pytest.mark.parametrize("supervised", [True, False])
def test_child_whose_time_was_over_is_not_run_again_by_a_parent_that_is(supervised: bool) -> None:
    cluster = Cluster(2)
    cluster.spawn(1, depth=1)
    cluster.hungry(1)
    cluster.settle()
    child = task(b"0.9", depth=1, timeout_s=LIMIT_S, supervised=supervised)
    cluster.feed(1, ev.Exported(FIRST, ((7, child),)))
    second = int(cluster.up(1))
    cluster.hungry(1, second)
    cluster.run(1, second)
    cluster.tick(LIMIT_S)
    kept = [message for message in cluster.in_flight(1, 0) if isinstance(message, msg.Keep)]
    assert [piece.outcome.verdict for message in kept for piece in message.pieces] == [Verdict.TIMED_OUT] * supervised
    cluster.settle()
    assert (cluster.core(0).pieces.at(child.path) is not None) == supervised


# ---- attempts ------------------------------------------------------------------------------------------------


def test_budget_of_a_task_takes_the_place_of_the_runs() -> None:
    cluster = Cluster(1, config=CoreConfig(attempts_max=3, pieces_bytes_max=0))
    one = Task("f", b"0", b"", b"\0\0", attempts=1)
    spawned(cluster, one)
    cluster.up(0)
    cluster.hungry(0)
    cluster.crash(0, 1, (REF, 0))
    assert cluster.delivered[REF].verdict is Verdict.CRASHED
    assert cluster.delivered[REF].crashes == (CRASH,)


# ---- pins ----------------------------------------------------------------------------------------------------


def pinned(*nodes: int, depth: int = 0) -> Task:
    return task(b"0", depth=depth, pin=tuple(map(NodeId, nodes)))


def test_pinned_task_goes_to_its_node_and_stays_there() -> None:
    cluster = Cluster(3)
    spawned(cluster, pinned(2))
    cluster.settle()
    assert pooled(cluster, 2) == [REF]
    cluster.hungry(1)
    cluster.settle()
    assert pooled(cluster, 2) == [REF]
    assert record_of(cluster, REF).location == OnNode(N2)


def test_task_that_is_pinned_to_its_own_node_is_a_thread_there() -> None:
    cluster = Cluster(2)
    spawned(cluster, pinned(0))
    assert cluster.core(0).pool.stealable == 0
    assert pooled(cluster, 0) == [REF]


def test_pinned_task_moves_on_to_the_next_of_its_nodes_when_one_dies() -> None:
    cluster = Cluster(3)
    spawned(cluster, pinned(1, 2))
    cluster.settle()
    (first,) = [node for node in (1, 2) if pooled(cluster, node)]
    cluster.kill(first)
    cluster.suspect(first)
    cluster.settle()
    assert pooled(cluster, 3 - first) == [REF]
    cluster.finish()
    assert cluster.delivered[REF].verdict is Verdict.VALUE


@pytest.mark.parametrize("config", [CoreConfig(), CoreConfig(pieces_bytes_max=0)])
def test_pinned_task_fails_when_none_of_its_nodes_is_left(config: CoreConfig) -> None:
    cluster = Cluster(3, config=config)
    spawned(cluster, pinned(1))
    cluster.settle()
    cluster.kill(1)
    cluster.suspect(1)
    cluster.settle()
    outcome = cluster.delivered[REF]
    assert outcome.verdict is Verdict.LOST
    assert outcome.data == b"task f is pinned to node 1, and there is no such node any more"


def test_node_that_leaves_is_none_to_be_pinned_to() -> None:
    cluster = Cluster(3)
    cluster.feed(1, ev.Leave(1e6))
    cluster.deliver(1, 0)
    spawned(cluster, pinned(1))
    assert cluster.delivered[REF].verdict is Verdict.LOST


def test_pinned_task_of_a_scheduler_that_dies_stays_on_its_node() -> None:
    cluster = Cluster(3)
    spawned(cluster, pinned(2))
    cluster.settle()
    cluster.hungry(2)
    cluster.crash(2, 1)
    cluster.settle()
    assert pooled(cluster, 2) == [REF]
    assert cluster.core(2).pool.stealable == 0


def test_pinned_task_that_nobody_wants_any_more_goes_nowhere() -> None:
    core = Cluster(3, checked=False).core(0)
    assert core.homes.put_back([Spark(REF, 0, pinned(1, 2))]) == []
    assert len(core.pool) == 0
