"""The sparkpool: order, threads apart, and no cost that grows with what waits."""

from __future__ import annotations

import sys
from dataclasses import replace
from time import process_time

from hdphrs.explore.work import spark
from hdphrs.protocol.paths import PROGRAM_PATH, call_of, child_path
from hdphrs.protocol.sparkpool import Sparkpool
from hdphrs.protocol.tasks import Spark


def test_sparks_come_out_oldest_first_and_threads_before_them() -> None:
    pool = Sparkpool()
    thread = replace(spark(slot=2), placed=True)
    for waiting in (spark(slot=0), spark(slot=1), thread):
        pool.add(waiting)
    assert [pool.take() for _ in range(3)] == [thread, spark(slot=0), spark(slot=1)]


def test_thread_is_never_given_to_a_thief() -> None:
    pool = Sparkpool()
    pool.add(replace(spark(), placed=True))
    assert (len(pool), pool.stealable) == (1, 0)


def test_put_back_keeps_the_order_at_the_old_end() -> None:
    pool = Sparkpool()
    pool.add(spark(slot=2))
    pool.put_back([spark(slot=0), spark(slot=1)])
    assert [waiting.ref.slot for waiting in pool] == [0, 1, 2]
    assert pool.take_for_thief() == spark(slot=0)


def test_purge_drops_what_matches_and_counts_it() -> None:
    pool = Sparkpool()
    for node in (1, 2, 1):
        pool.add(spark(node, slot=len(pool)))
    assert pool.purge(lambda waiting: waiting.ref.node == 1) == 2
    assert [waiting.ref.node for waiting in pool] == [2]


def test_hundred_thousand_waiting_sparks_cost_no_more_than_ten_each() -> None:
    def per_spark(count: int) -> float:
        pool = Sparkpool()
        for slot in range(count):
            pool.add(waiting[slot])
        start_s = process_time()
        for slot in range(count):
            pool.put_back([pool.take_for_thief()])
            pool.add(waiting[slot])
            pool.take()
        return (process_time() - start_s) / count

    waiting = [spark(slot=slot) for slot in range(50_000)]
    assert per_spark(50_000) < 20 * max(per_spark(1_000), sys.float_info.epsilon)


def test_least_served_call_is_taken_though_another_one_is_older() -> None:
    pool = Sparkpool()
    older, newer = task_of(1), task_of(2)
    pool.add(older)
    pool.add(newer)
    served = {call_of(older.task.path): 1}
    assert pool.take_least(served, 0) == newer
    assert pool.take_least(served, 0) is None
    assert pool.take_least(served, 1) == older


def test_least_served_call_is_taken_of_placed_tasks_too() -> None:
    pool = Sparkpool()
    older, newer = (replace(task_of(call), placed=True) for call in (1, 2))
    pool.add(older)
    pool.add(newer)
    assert pool.take_least({call_of(older.task.path): 1}, 0) == newer
    assert list(pool) == [older]


def task_of(call: int) -> Spark:
    made = spark(slot=call)
    return replace(made, task=replace(made.task, path=child_path(PROGRAM_PATH, call)))
