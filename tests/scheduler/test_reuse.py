"""Spawns that meet pieces of an earlier run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hdphrs.api.future import Future
from hdphrs.protocol.paths import child_path
from hdphrs.protocol.tasks import PROGRAM, ROOT, Piece, Spark, Task, TaskRef
from hdphrs.scheduler.reuse import Reuse, fill
from hdphrs.wire.values import dump_result

TOP = child_path(b"", 3)


def check(function: Callable[..., Any], args: tuple[Any, ...], path: bytes = TOP, context: bytes = b"") -> bytes:
    return repr((function.__name__, args)).encode()


def work(n: int) -> int:
    raise AssertionError("it is finished already")


def piece(*path: int, n: int = 7) -> Piece:
    full = TOP
    for index in path:
        full = child_path(full, index)
    return Piece(full, check(work, (n,)), dump_result("work", n * n))


def reuse(*pieces: Piece) -> tuple[Reuse, Future[int]]:
    spark = Spark(TaskRef(ROOT, PROGRAM, 0), 1, Task("f", TOP, b"", b""), pieces=pieces)
    root: Future[int] = Future()
    root._parent = None
    return Reuse(spark, check, lambda future, cost_s: None, lambda future, outcome, label: fill(future, outcome)), root


def spawned(parent: Future[int], index: int) -> Future[int]:
    future: Future[int] = Future()
    future._function = work
    future._content = (7,)
    future._parent = parent
    future._index = index
    return future


def test_child_that_is_finished_already_has_its_value_at_once() -> None:
    met, root = reuse(piece(2))
    child = spawned(root, 2)
    met.meet(child, root)
    assert child.done()
    assert (child._content, met.used, met.mismatched) == (49, 1, 0)


def test_grandchild_is_found_through_its_parent_and_others_are_not_looked_at() -> None:
    met, root = reuse(piece(2, 5))
    inside, outside = spawned(root, 2), spawned(root, 1)
    met.meet(inside, root)
    met.meet(outside, root)
    assert inside._function is outside._function is work
    found, lost = spawned(inside, 5), spawned(outside, 5)
    met.meet(found, root)
    met.meet(lost, root)
    assert found.done()
    assert lost._function is work


def test_other_call_at_the_same_place_is_not_answered() -> None:
    met, root = reuse(piece(2, n=8))
    child = spawned(root, 2)
    met.meet(child, root)
    assert child._function is work
    assert (met.used, met.mismatched) == (0, 1)


def test_child_that_somebody_has_taken_is_left_alone() -> None:
    met, root = reuse(piece(2))
    child = spawned(root, 2)
    child._function = None
    met.meet(child, root)
    assert not hasattr(child, "_status")
