"""Children in place that are timed one by one, for the ledger."""

from __future__ import annotations

import dis
from collections.abc import Iterator
from typing import Any

import pytest

from hdphrs.api import future as fast
from hdphrs.api.future import Future, get, name_of, spawn
from hdphrs.api.options import task
from hdphrs.scheduler.note import FEW, Noter, Timed, plain

Kept = list[tuple[Any, Any, float]]


def double(n: int) -> int:
    return 2 * n


@task(memo=True)
def keen(n: int) -> int:
    return n


@pytest.fixture(autouse=True)
def inside_a_task() -> Iterator[Future[Any]]:
    parent: Future[Any] = Future()
    parent._parent = None
    parent._function = double
    ran = fast.here.ran
    parent._spawned = 0
    fast.here.task = parent
    yield parent
    fast.here.task = None
    fast.here.ran = ran
    fast.sparks.clear()


def noter(kept: Kept) -> Noter:
    """Counts its clock's ticks as seconds."""
    ticks = iter(range(1000))

    def keep(timed: Timed, future: Future[Any], value: Any, began_s: float, ended_s: float) -> None:
        kept.append((timed.function, value, ended_s - began_s))

    return Noter(lambda: float(next(ticks)), keep)


def test_when_tasks_are_coarse_those_that_wait_are_timed_and_the_new_ones_too() -> None:
    kept: Kept = []
    notes = noter(kept)
    waiting = spawn(double, 3)
    assert notes.look()
    assert not notes.look()
    fresh = spawn(keen, 4)
    notes.time(fresh)
    assert (get(waiting), get(fresh)) == (6, 4)
    assert kept == [(double, 6, 1.0), (keen, 4, 1.0)]


def test_when_they_are_fine_the_fast_path_is_left_alone() -> None:
    notes = noter([])
    notes.look()
    fast.here.ran += FEW + 1
    assert not notes.look()
    assert not notes.on
    fast.here.ran += FEW
    assert notes.look()


def test_what_is_taken_or_handed_over_or_timed_already_stays_as_it_is(inside_a_task: Future[Any]) -> None:
    notes = noter([])
    taken = spawn(double, 1)
    assert fast.take(taken) is double
    timed = spawn(double, 1)
    for _ in range(2):
        for future in (taken, timed, inside_a_task):
            notes.time(future)
    assert taken._function is None
    assert inside_a_task._function is double
    assert plain(timed._function or keen) is double
    assert plain(double) is double
    assert name_of(timed._function or keen) == "double"


def test_nobody_can_take_a_spark_between_the_look_at_its_function_and_the_change() -> None:
    code = list(dis.get_instructions(Noter.time))
    change = next(i for i, step in enumerate(code) if step.opname == "STORE_ATTR" and step.argval == "_function")
    look = max(i for i, step in enumerate(code[:change]) if step.opname == "LOAD_ATTR" and step.argval == "_function")
    between = {step.opname for step in code[look:change]}
    assert not [name for name in between if name.startswith(("CALL", "JUMP_BACKWARD", "RESUME", "PRECALL"))]
