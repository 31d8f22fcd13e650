"""The sliced maps: they are `map`, whatever the number of tasks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hdphrs import skeletons
from hdphrs.errors import UsageError

Map = Callable[..., list[Any]]
Runner = Callable[..., Any]

MAPS: list[Map] = [
    skeletons.par_map_sliced,
    skeletons.push_map_sliced,
    skeletons.par_map_sliced_ft,
    skeletons.push_map_sliced_ft,
]

every_map = pytest.mark.parametrize("map_sliced", MAPS, ids=lambda each: each.__name__)


def square(number: int) -> int:
    return number * number


def reciprocal(number: int) -> float:
    return 1 / number


def refuse_odd(number: int) -> int:
    if number % 2:
        raise ValueError(f"odd: {number}")
    return number


@every_map
@settings(max_examples=60, deadline=None, derandomize=True)
@given(tasks=st.integers(min_value=1, max_value=30), items=st.lists(st.integers(), max_size=40))
def test_any_list_in_any_number_of_tasks_is_mapped_in_order(
    runner: Runner, map_sliced: Map, tasks: int, items: list[int]
) -> None:
    assert runner(map_sliced, tasks, square, items) == [square(item) for item in items]


@every_map
def test_a_generator_of_items_is_accepted(runner: Runner, map_sliced: Map) -> None:
    def program() -> list[int]:
        return map_sliced(3, square, (number for number in range(7)))

    assert runner(program) == [0, 1, 4, 9, 16, 25, 36]


@every_map
def test_a_closure_travels_with_what_it_captured(runner: Runner, map_sliced: Map) -> None:
    offset = 100
    assert runner(map_sliced, 2, lambda number: number + offset, [1, 2, 3]) == [101, 102, 103]


@every_map
def test_maps_nest(runner: Runner, map_sliced: Map) -> None:
    def row(length: int) -> list[int]:
        return map_sliced(2, square, range(length))

    assert runner(map_sliced, 3, row, range(4)) == [[], [0], [0, 1], [0, 1, 4]]


@every_map
def test_an_exception_of_the_function_is_raised_to_the_caller(runner: Runner, map_sliced: Map) -> None:
    with pytest.raises(ZeroDivisionError):
        runner(map_sliced, 2, reciprocal, [1, 0, 2])


@every_map
def test_of_two_exceptions_the_first_slice_decides(runner: Runner, map_sliced: Map) -> None:
    with pytest.raises(ValueError, match="odd: 3"):
        runner(map_sliced, 2, refuse_odd, [2, 5, 3, 4])  # slices: [2, 3], [5, 4]


@every_map
@pytest.mark.parametrize("tasks", [0, -1, 1.5, "3", None, True])
def test_a_bad_number_of_tasks_is_the_callers_mistake(runner: Runner, map_sliced: Map, tasks: object) -> None:
    with pytest.raises(UsageError, match=f"^{map_sliced.__name__}: tasks must be a positive int"):
        runner(map_sliced, tasks, square, [1])


@every_map
def test_a_function_that_cannot_be_called_is_the_callers_mistake(runner: Runner, map_sliced: Map) -> None:
    with pytest.raises(UsageError, match=r"function must be callable, not 42$"):
        runner(map_sliced, 1, 42, [])


@every_map
def test_items_that_cannot_be_iterated_over_are_the_callers_mistake(runner: Runner, map_sliced: Map) -> None:
    with pytest.raises(UsageError, match=r"items must be iterable, not 42$"):
        runner(map_sliced, 1, square, 42)


def test_the_papers_spellings_are_the_same_objects() -> None:
    assert [
        skeletons.parMapSliced,
        skeletons.pushMapSliced,
        skeletons.parMapSlicedFT,
        skeletons.pushMapSlicedFT,
    ] == MAPS
