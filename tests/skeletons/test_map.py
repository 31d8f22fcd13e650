"""The maps: they are `map`, in however many tasks."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import pytest

from hdphrs import skeletons
from hdphrs.errors import UsageError

Map = Callable[..., list[Any]]
Runner = Callable[..., Any]

SLICED: list[Map] = [
    skeletons.par_map_sliced,
    skeletons.push_map_sliced,
    skeletons.par_map_sliced_ft,
    skeletons.push_map_sliced_ft,
]

CHUNKED: list[Map] = [
    skeletons.par_map_chunked,
    skeletons.push_map_chunked,
    skeletons.par_map_chunked_ft,
    skeletons.push_map_chunked_ft,
]

MAPS = [*SLICED, *CHUNKED, skeletons.fork_map_sliced, skeletons.fork_map_chunked]
PLAIN: list[Map] = [
    skeletons.par_map,
    skeletons.push_map,
    skeletons.par_map_ft,
    skeletons.push_map_ft,
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


@pytest.mark.parametrize("map_chunked", [*CHUNKED, skeletons.fork_map_chunked])
@pytest.mark.parametrize("chunk", [None, 1, 3])
def test_of_two_exceptions_that_of_the_first_item_is_raised(
    runner: Runner, map_chunked: Map, chunk: int | None
) -> None:
    with pytest.raises(ValueError, match="odd: 5"):
        runner(map_chunked, chunk, refuse_odd, [2, 5, 3, 4] * 50)


@pytest.mark.parametrize("map_sliced", SLICED)
def test_of_two_exceptions_the_first_slice_decides(runner: Runner, map_sliced: Map) -> None:
    with pytest.raises(ValueError, match="odd: 3"):
        runner(map_sliced, 2, refuse_odd, [2, 5, 3, 4])  # slices: [2, 3], [5, 4]


@every_map
@pytest.mark.parametrize("tasks", [0, -1, 1.5, "3", True])
def test_a_bad_number_of_tasks_is_the_callers_mistake(runner: Runner, map_sliced: Map, tasks: object) -> None:
    with pytest.raises(UsageError, match=f"^{map_sliced.__name__}: (tasks|chunk) must be a positive int"):
        runner(map_sliced, tasks, square, [1])


@every_map
def test_a_function_that_cannot_be_called_is_the_callers_mistake(runner: Runner, map_sliced: Map) -> None:
    with pytest.raises(UsageError, match=r"function must be callable, not 42$"):
        runner(map_sliced, 1, 42, [])


@every_map
def test_items_that_cannot_be_iterated_over_are_the_callers_mistake(runner: Runner, map_sliced: Map) -> None:
    with pytest.raises(UsageError, match=r"items must be iterable, not 42$"):
        runner(map_sliced, 1, square, 42)


@pytest.mark.parametrize("name", ["function", "items"])
@pytest.mark.parametrize("plain", [*PLAIN, skeletons.fork_map, skeletons.par_map_two_level])
def test_a_mistake_with_a_plain_map_is_the_callers(runner: Runner, plain: Map, name: str) -> None:
    with pytest.raises(UsageError, match=f"^{plain.__name__}: {name} must be"):
        runner(plain, *((1, []) if name == "function" else (abs, 1)))


def test_a_skeleton_travels_as_its_name() -> None:
    for name in skeletons.__all__:
        skeleton = getattr(skeletons, name)
        assert pickle.loads(pickle.dumps(skeleton)) is skeleton
        assert repr(skeleton) == f"<skeleton {skeleton.name}>"
        assert getattr(skeletons, skeleton.name) is skeleton


def test_the_papers_spellings_are_the_same_objects() -> None:
    assert [
        skeletons.parMapSliced,
        skeletons.pushMapSliced,
        skeletons.parMapSlicedFT,
        skeletons.pushMapSlicedFT,
    ] == SLICED
    assert [
        skeletons.parMapChunked,
        skeletons.pushMapChunked,
        skeletons.parMapChunkedFT,
        skeletons.pushMapChunkedFT,
    ] == CHUNKED
    assert [skeletons.parMap, skeletons.pushMap, skeletons.parMapFT, skeletons.pushMapFT] == PLAIN
    assert [skeletons.parMapM, skeletons.pushMapM, skeletons.parMapMFT, skeletons.pushMapMFT] == PLAIN
    assert skeletons.parMapLocal is skeletons.fork_map
