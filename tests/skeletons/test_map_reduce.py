"""Map-reduce, reductions and scans: how the work is cut, and what callers get wrong."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import hdphrs
from hdphrs.errors import UsageError

Runner = Callable[..., Any]


def largest(left: int, right: int) -> int:
    return max(left, right)


def test_a_range_is_halved_down_to_the_threshold(runner: Runner) -> None:
    def program() -> list[range]:
        def as_range(number: int) -> list[range]:
            return [range(number, number + 1)]

        def together(left: list[range], right: list[range]) -> list[range]:
            return [*left, *right]

        return hdphrs.par_map_reduce_range_thresh(3, range(10), as_range, together, [])

    assert runner(program) == [range(number, number + 1) for number in range(10)]


def test_nothing_is_called_for_an_empty_range(runner: Runner) -> None:
    assert runner(hdphrs.par_map_reduce_range_thresh, 1, range(0), None.__class__, largest, 7) == 7


def test_an_exception_is_raised_to_the_caller(runner: Runner) -> None:
    with pytest.raises(ZeroDivisionError):
        runner(hdphrs.par_map_reduce_range_thresh, 2, range(-3, 3), (1).__truediv__, largest, 0)
    with pytest.raises(TypeError):
        runner(hdphrs.par_reduce, largest, [1, "2"], 0)
    with pytest.raises(TypeError):
        runner(hdphrs.par_scan, largest, [1, "2"])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: hdphrs.par_map_reduce_range_thresh(0, range(3), abs, largest, 0), "threshold must be a positive int"),
        (lambda: hdphrs.par_map_reduce_range_thresh(1, [3], abs, largest, 0), r"items must be a range, not \[3\]"),  # type: ignore[call-overload]
        (lambda: hdphrs.par_map_reduce_range_thresh(1, range(3), abs, 3, 0), "combine must be callable, not 3"),  # type: ignore[call-overload]
        (lambda: hdphrs.par_map_reduce(None, largest, [1], 0), "function must be callable, not None"),  # type: ignore[arg-type]
        (lambda: hdphrs.par_map_reduce(abs, largest, 1, 0), "items must be iterable, not 1"),  # type: ignore[arg-type]
        (lambda: hdphrs.par_reduce(largest, [1], 0, chunk=-1), "chunk must be a positive int, not -1"),
        (lambda: hdphrs.par_scan(largest, [1], chunk=True), "chunk must be a positive int, not True"),
        (lambda: hdphrs.par_scan(1, [1]), "combine must be callable, not 1"),  # type: ignore[arg-type]
    ],
)
def test_a_mistake_is_the_callers(call: Callable[[], object], message: str) -> None:
    with hdphrs.sequential(), pytest.raises(UsageError, match=message):
        call()
