"""How skeletons are called: several iterables, orders and names of arguments, mistakes, and what `help` shows."""

from __future__ import annotations

import inspect
import pickle
import pydoc
import re
from collections.abc import Callable, Iterator
from operator import add, mul
from typing import Any

import pytest

import hdphrs
from hdphrs import skeletons
from hdphrs.api.future import name_of
from hdphrs.errors import UsageError
from hdphrs.skeletons.skeleton import Skeleton

Runner = Callable[..., Any]

NAMES = sorted({each.name for each in map(skeletons.__getattribute__, dir(skeletons)) if isinstance(each, Skeleton)})
"""Of each skeleton, without its other spellings."""

MAPS: dict[str, tuple[object, ...]] = {
    name: (3,) if "chunked" in name or "sliced" in name else ()
    for name in NAMES
    if "_map" in name and "reduce" not in name
}
"""What comes before the function."""

every_map = pytest.mark.parametrize("name", MAPS)


def three(first: int, second: int, third: int) -> tuple[int, int, int]:
    return first, second, third


def skeleton(name: str) -> Callable[..., Any]:
    found: Callable[..., Any] = getattr(hdphrs, name)
    return found


# ---- several iterables ---------------------------------------------------------------------------------------


@every_map
def test_a_map_takes_as_many_iterables_as_map_does(runner: Runner, name: str) -> None:
    columns = range(10), [n * n for n in range(8)], (100 - n for n in range(9))
    expected = list(map(three, range(10), [n * n for n in range(8)], (100 - n for n in range(9))))
    assert runner(skeleton(name), *MAPS[name], three, *columns) == expected


@every_map
def test_the_shortest_iterable_ends_a_map_unless_it_is_strict(runner: Runner, name: str) -> None:
    assert runner(skeleton(name), *MAPS[name], add, [1, 2, 3], [10, 20]) == [11, 22]
    assert runner(skeleton(name), *MAPS[name], add, [1, 2], [10, 20], strict=True) == [11, 22]
    with pytest.raises(UsageError, match=f"^{name}: the iterables are not of one length, and strict is True"):
        runner(skeleton(name), *MAPS[name], add, [1, 2, 3], [10, 20], strict=True)


@every_map
def test_what_an_iterable_raises_is_not_taken_for_a_mistake_with_strict(runner: Runner, name: str) -> None:
    def broken() -> Iterator[int]:
        yield 1
        raise ValueError("mine")

    with pytest.raises(ValueError, match=r"^mine$"):
        runner(skeleton(name), *MAPS[name], add, [1, 2], broken(), strict=True)


@every_map
def test_one_that_cannot_be_iterated_over_is_named(runner: Runner, name: str) -> None:
    with pytest.raises(UsageError, match=f"^{name}: the 2nd of the items must be iterable, not 5$"):
        runner(skeleton(name), *MAPS[name], add, [1], 5)
    with pytest.raises(UsageError, match=f"^{name}: the 4th of the items must be iterable, not None$"):
        runner(skeleton(name), *MAPS[name], add, [1], [2], [3], None)
    with pytest.raises(UsageError, match=f"^{name}: strict must be True or False, not 1$"):
        runner(skeleton(name), *MAPS[name], add, [1], [2], strict=1)


@pytest.mark.parametrize("ordered", [True, False])
def test_a_buffer_takes_several_streams_one_item_of_each_at_a_time(runner: Runner, ordered: bool) -> None:
    taken: list[int] = []

    def stream(base: int) -> Iterator[int]:
        for n in range(100):
            taken.append(base + n)
            yield base + n

    def program() -> list[int]:
        results = hdphrs.par_buffer(2, add, stream(0), stream(1000), ordered=ordered)
        return [next(results), next(results)]

    assert runner(program) == [1000, 1002]
    assert taken == [0, 1000, 1, 1001, 2, 1002]


def test_tasks_of_several_iterables_have_the_name_of_the_function() -> None:
    from functools import partial

    from hdphrs.skeletons.arguments import call_with
    from hdphrs.skeletons.grain import scout
    from hdphrs.skeletons.map import map_slice

    assert name_of(partial(call_with, three)) == "three"
    assert name_of(partial(map_slice, partial(call_with, three))) == "three"
    assert name_of(partial(scout, partial(map_slice, abs))) == "abs"


# ---- orders and names ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [name for name in MAPS if MAPS[name]])
def test_the_grain_of_a_map_comes_first_or_by_its_name(runner: Runner, name: str) -> None:
    call = skeleton(name)
    grain = "chunk" if "chunked" in name else "tasks"
    expected = [1, 4, 9, 16, 25]
    square = lambda n: n * n  # noqa: E731
    items = [1, 2, 3, 4, 5]
    assert runner(call, 2, square, items) == expected
    assert runner(call, 2, function=square, items=items) == expected
    assert runner(call, square, items) == expected
    assert runner(call, square, items, **{grain: 2}) == expected
    assert runner(call, square, items=items, **{grain: 2}) == expected
    assert runner(call, function=square, items=items) == expected
    assert runner(call, function=square, items=items, **{grain: 2}) == expected
    assert runner(call, mul, items, items, **{grain: 2}) == expected
    with pytest.raises(UsageError, match=f"^{name}: {grain} must be a positive int, not 0$"):
        runner(call, square, items, **{grain: 0})


@pytest.mark.parametrize("name", ["par_buffer", "push_buffer", "fork_buffer"])
def test_the_size_of_a_buffer_comes_first_or_by_its_name(runner: Runner, name: str) -> None:
    def program(*args: Any, **kwargs: Any) -> list[int]:
        return list(skeleton(name)(*args, **kwargs))

    assert runner(program, 2, abs, [-1, 2]) == [1, 2]
    assert runner(program, abs, [-1, 2], size=2) == [1, 2]
    assert runner(program, function=abs, items=[-1, 2], size=2) == [1, 2]
    with pytest.raises(UsageError, match=f"^{name}: size must be a positive int, not None$"):
        runner(program, abs, [-1, 2])


@pytest.mark.parametrize("name", [name for name in NAMES if "range_thresh" in name])
def test_a_map_reduce_of_a_range_takes_both_orders(runner: Runner, name: str) -> None:
    call = skeleton(name)
    square = lambda n: n * n  # noqa: E731
    assert runner(call, 2, range(6), square, add, 7) == 62
    assert runner(call, square, add, range(6), 7, threshold=2) == 62
    assert runner(call, 2, numbers=range(6), function=square, combine=add, initial=7) == 62
    assert runner(call, threshold=2, items=range(6), function=square, combine=add, initial=7) == 62
    assert runner(call, square, add, items=range(6), initial=7, threshold=2) == 62


@pytest.mark.parametrize("prefix", ["par", "push", "fork"])
def test_reductions_have_one_order_and_need_no_initial_value(runner: Runner, prefix: str) -> None:
    own = {name: skeleton(f"{prefix}_{name}") for name in ("reduce", "scan", "map_reduce")}
    assert runner(own["reduce"], add, [1, 2, 3]) == 6
    assert runner(own["reduce"], add, [1, 2, 3], 10) == 16
    assert runner(own["reduce"], add, [[1], [2]], []) == [1, 2]
    assert runner(own["map_reduce"], abs, add, [-1, 2, -3]) == 6
    assert runner(own["map_reduce"], combine=add, function=abs, items=[-1, 2], initial=10) == 13
    assert runner(own["scan"], add, [1, 2, 3]) == [1, 3, 6]
    assert runner(own["scan"], add, [1, 2, 3], 10) == [10, 11, 13, 16]
    assert runner(own["scan"], add, [], initial=10) == [10]
    assert runner(own["scan"], add, [1, 2, 3], initial=10, chunk=1) == [10, 11, 13, 16]
    for name, functions in (("reduce", [add]), ("map_reduce", [abs, add])):
        with pytest.raises(UsageError, match=f"^{prefix}_{name}: there are no items, and no initial value to return$"):
            runner(own[name], *functions, [])


def test_none_is_an_initial_value_like_any_other(runner: Runner) -> None:
    def last(before: object, after: object) -> object:
        return after

    assert runner(hdphrs.par_reduce, last, [], None) is None
    assert runner(hdphrs.par_scan, last, [1], None) == [None, 1]


def test_one_thing_has_one_name_in_all_skeletons() -> None:
    words = {parameter.name for name in NAMES for parameter in inspect.signature(skeleton(name)).parameters.values()}
    assert words == {
        *("function", "combine", "items", "more", "initial", "strict"),
        *("chunk", "tasks", "size", "threshold", "depth", "ordered", "descending"),
        *("trivial", "decompose", "solve", "problem"),
        *("children", "value", "found", "objective", "bound", "root"),
    }


# ---- mistakes ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_arguments_that_do_not_fit_are_reported_under_the_name_with_the_signature(runner: Runner, name: str) -> None:
    call = skeleton(name)
    first = next(iter(inspect.signature(call).parameters))
    with pytest.raises(TypeError, match=f"^{name}: missing a required argument: .*; its arguments are \\({first}, "):
        call()
    with pytest.raises(TypeError, match=f"^{name}: .*'unheard_of'.*; its arguments are \\({first}, "):
        call(unheard_of=1, **dict.fromkeys(inspect.signature(call).parameters.keys() - {"more"}))
    if "more" not in inspect.signature(call).parameters:
        with pytest.raises(TypeError, match=f"^{name}: too many positional arguments; its arguments are \\({first}, "):
            call(*[1] * 9)


def test_a_type_error_of_the_functions_is_not_taken_for_one_of_the_call(runner: Runner) -> None:
    with pytest.raises(TypeError, match=r"^unsupported operand"):
        runner(hdphrs.par_map, lambda n: n + None, [1])
    with pytest.raises(TypeError, match=r"takes 1 positional argument but 2 were given$"):
        runner(hdphrs.par_map, lambda n: n, [1], [2])


# ---- what others see -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_help_shows_a_function_with_its_arguments(name: str) -> None:
    call = skeleton(name)
    parameters = list(inspect.signature(call).parameters)
    assert parameters[0] != "self"
    text = pydoc.plain(pydoc.render_doc(call))
    assert f"\n{name}({parameters[0]}" in re.sub(r"\(\s+", "(", text)  # newer Pythons break long lines
    assert str(inspect.getdoc(call)) in text.replace("\n    ", "\n")
    assert "__call__" not in text
    assert inspect.isroutine(call)


@pytest.mark.parametrize("name", NAMES)
def test_a_skeleton_behaves_as_an_object_with_one_identity(name: str) -> None:
    call = skeleton(name)

    class Holder:
        pattern = call

    assert Holder().pattern is Holder.pattern is call  # it is not bound, as it never was
    assert pickle.loads(pickle.dumps(call)) is call
    assert call.__name__ == call.__qualname__ == name
    assert inspect.signature(type(call)).parameters.keys() >= {"name", "schedule"}
