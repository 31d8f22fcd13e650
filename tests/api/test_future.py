"""The fast path: spawn and get of tasks that nobody steals."""

from __future__ import annotations

import dis
import operator
from collections.abc import Callable, Iterator
from types import FunctionType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hdphrs.api import future as fast
from hdphrs.api.calls import supervised_spawn
from hdphrs.api.future import Future, get, spawn, state
from hdphrs.errors import CannotTravelError

SWITCHING = ("CALL", "JUMP_BACKWARD", "RESUME", "FOR_ITER", "SEND", "YIELD_VALUE", "PRECALL")


class _Exports:
    """A port that takes sparks on demand."""

    def __init__(self) -> None:
        self.exports = 0
        self.wanted: list[Future[Any]] = []

    def want(self, future: Future[Any]) -> None:
        self.wanted.append(future)

    def filled(self, future: Future[Any]) -> None:
        self.wanted.append(future)

    def export(self) -> None:
        self.exports += 1


@pytest.fixture(autouse=True)
def task() -> Iterator[_Exports]:
    """Every test here runs as if inside a task."""
    before, port = fast.here.task, _Exports()
    saved, state.port = state.port, port  # type: ignore[assignment]
    fast.here.task = Future()
    fast.here.task._function = None
    fast.here.task._parent = None
    fast.here.task._spawned = 0
    fast.sparks.clear()
    yield port
    fast.here.task, state.port = before, saved
    fast.sparks.clear()
    fast.demand = False


def fib(n: int) -> int:
    if n < 2:
        return n
    left, right = spawn(fib, n - 1), spawn(fib, n - 2)
    return get(left) + get(right)


def test_get_of_a_waiting_task_runs_it_in_place_and_leaves_no_tombstone() -> None:
    assert get(spawn(fib, 12)) == 144
    assert not fast.sparks


def test_get_twice_runs_the_task_once() -> None:
    calls: list[int] = []
    future = spawn(calls.append, 1)
    assert get(future) is None
    assert get(future) is None
    assert calls == [1]


def test_get_of_a_failed_task_raises_the_same_exception_each_time() -> None:
    future = spawn(operator.truediv, 1, 0)
    errors = []
    for _ in range(2):
        with pytest.raises(ZeroDivisionError) as caught:
            get(future)
        errors.append(caught.value)
    assert errors[0] is errors[1]


def test_spawn_with_keywords_passes_them_on() -> None:
    def area(width: int, *, height: int) -> int:
        return width * height

    assert get(spawn(area, 3, height=4)) == 12
    assert get(supervised_spawn(area, 3, height=5)) == 15


@given(order=st.permutations(range(12)))
def test_get_in_any_order_gives_each_its_own_value(order: list[int]) -> None:
    futures = [spawn(operator.mul, i, i) for i in range(12)]
    assert {i: get(futures[i]) for i in order} == {i: i * i for i in range(12)}


def test_tombstones_of_gets_in_spawn_order_are_swept() -> None:
    for _ in range(100):
        futures = [spawn(abs, -i) for i in range(100)]
        assert [get(future) for future in futures] == list(range(100))
        assert len(fast.sparks) <= 2 * (fast.TOMBSTONES_MAX + 1)


def test_getting_in_the_order_of_the_spawns_leaves_nothing_in_the_deque() -> None:
    other = spawn(abs, -99)
    fast.sparks.popleft()
    futures = [spawn(abs, -i) for i in range(10)]
    for i, future in enumerate(futures):
        assert get(future) == i
        assert list(fast.sparks) == futures[i + 1 :]
    assert get(other) == 99


@pytest.mark.parametrize("left", range(4))
def test_a_get_in_the_middle_leaves_the_order_as_it_is(left: int) -> None:
    """Even while the helper thread removes what is older."""
    futures = [spawn(abs, -i) for i in range(4)]
    for _ in range(left):
        fast.sparks.popleft()
    assert get(futures[1]) == 1
    kept = [future for future in futures[left:] if future is not futures[1]]
    assert [future for future in fast.sparks if future is not futures[1]] == kept
    assert [get(future) for future in futures] == [0, 1, 2, 3]


@pytest.mark.parametrize("place", [0, 5, -2, -1])
def test_a_get_at_the_end_of_the_stack_loses_no_spark(place: int) -> None:
    futures = [spawn(abs, -i) for i in range(2 * fast.TOMBSTONES_MAX)]

    def descend() -> None:
        try:
            descend()
        finally:
            get(futures[place])  # at each depth, from the greatest

    with pytest.raises(RecursionError):
        descend()
    del futures[place]
    assert [get(future) for future in fast.sparks.copy() if future in futures] == list(map(get, futures))


def test_children_are_numbered_by_their_parent_whatever_runs_in_between() -> None:
    first = spawn(fib, 5)
    get(first)
    second = spawn(fib, 5)
    assert (first._index, second._index) == (0, 1)
    assert first._parent is second._parent is fast.here.task


def test_spawn_exports_when_somebody_is_hungry(task: _Exports) -> None:
    spawn(fib, 1)
    assert task.exports == 0
    fast.demand = True
    spawn(fib, 1)
    supervised_spawn(fib, 1)
    assert task.exports == 2


def test_done_is_false_before_and_true_after_the_task_has_run() -> None:
    good, bad = spawn(abs, -1), spawn(operator.truediv, 1, 0)
    assert not good.done()
    assert not bad.done()
    get(good)
    with pytest.raises(ZeroDivisionError):
        get(bad)
    assert good.done()
    assert bad.done()


def test_a_future_says_that_it_cannot_travel() -> None:
    import pickle

    with pytest.raises(CannotTravelError, match="a Future cannot travel"):
        pickle.dumps(spawn(abs, -1))


def test_nested_spawn_reaches_the_depth_of_plain_recursion() -> None:
    def down(depth: int) -> int:
        return 0 if depth == 0 else 1 + get(spawn(down, depth - 1))

    assert down(300) == 300


@pytest.mark.parametrize("function", [get, fast.take])
def test_no_thread_switch_can_come_between_reading_and_clearing_the_function(function: Callable[..., Any]) -> None:
    """Who takes a future is decided by two instructions; see the theory of operation in `api/future.py`."""
    assert isinstance(function, FunctionType)
    instructions = list(dis.get_instructions(function))
    load = next(i for i, op in enumerate(instructions) if op.opname == "LOAD_ATTR" and op.argval == "_function")
    store = next(i for i, op in enumerate(instructions) if op.opname == "STORE_ATTR" and op.argval == "_function")
    between = [op.opname for op in instructions[load + 1 : store]]
    assert between
    assert not [name for name in between if name.startswith(SWITCHING)]


@pytest.mark.parametrize(
    ("given_name", "name"), [("grüß \ud800", "grüß \\ud800"), ("x" * 10_000_000, "x" * 256)], ids=["surrogate", "long"]
)
def test_name_of_a_function_fits_into_a_frame_whatever_it_was_set_to(given_name: str, name: str) -> None:
    def function() -> None:
        pass

    function.__qualname__ = given_name
    assert fast.name_of(function) == name
