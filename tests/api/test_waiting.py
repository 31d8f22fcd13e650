"""Waiting for several futures in sequential mode, where all of them are full."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

import hdphrs


@pytest.fixture(autouse=True)
def in_this_process() -> Iterator[None]:
    with hdphrs.sequential():
        yield


def fail(sentence: str) -> None:
    raise ValueError(sentence)


def test_full_futures_come_in_their_order_and_once() -> None:
    futures = [hdphrs.spawn(abs, -n) for n in range(3)]
    assert list(hdphrs.as_completed([*futures, futures[0]])) == futures
    assert list(hdphrs.as_completed([])) == []


def test_any_of_several_is_the_first_that_is_full_be_it_a_failure() -> None:
    assert hdphrs.get_any([hdphrs.spawn(abs, -1), hdphrs.spawn(abs, -2)]) == 1
    with pytest.raises(ValueError, match="one"):
        hdphrs.get_any([hdphrs.spawn(fail, "one")])


def test_any_of_none_is_a_mistake() -> None:
    with pytest.raises(hdphrs.errors.UsageError):
        hdphrs.get_any([])


@pytest.mark.parametrize("call", [hdphrs.wait, hdphrs.get_any, lambda some: list(hdphrs.as_completed(some))])
def test_what_is_no_future_is_a_mistake(call: Callable[[list[Any]], object]) -> None:
    with pytest.raises(hdphrs.errors.UsageError, match="not 3"):
        call([hdphrs.spawn(abs, -1), 3])


def test_result_of_a_call_in_the_place_of_a_function_is_a_mistake() -> None:
    with pytest.raises(hdphrs.errors.UsageError, match=r"as in run\(main, x\); 3 is none"):
        hdphrs.run(3)  # type: ignore[arg-type]


def test_wait_raises_nothing() -> None:
    hdphrs.wait([hdphrs.spawn(fail, "one"), hdphrs.spawn(abs, -2)])


def test_scope_without_failure_leaves_full_futures() -> None:
    with hdphrs.scope() as tasks:
        futures = [tasks.spawn(abs, -n) for n in range(3)]
    assert [hdphrs.get(future) for future in futures] == [0, 1, 2]


def outcome(*tasks: str, block: type[Exception] | None = None) -> BaseException | None:
    """What comes out of a scope with tasks that fail like this, or do not."""
    try:
        with hdphrs.scope() as scope:
            for sentence in tasks:
                scope.spawn(fail if sentence else str, sentence)
            if block is not None:
                raise block
    except Exception as error:
        return error
    return None


def test_scope_raises_what_its_only_failing_task_has_raised() -> None:
    assert repr(outcome("", "one")) == "ValueError('one')"


def test_scope_raises_a_group_when_several_have_failed() -> None:
    error = outcome("one", "", "two")
    assert isinstance(error, ExceptionGroup)
    assert [str(one) for one in error.exceptions] == ["one", "two"]


def test_what_the_block_raises_goes_on_as_it_is_or_at_the_head_of_a_group() -> None:
    assert type(outcome("", block=KeyError)) is KeyError
    error = outcome("one", block=KeyError)
    assert isinstance(error, ExceptionGroup)
    assert [type(one) for one in error.exceptions] == [KeyError, ValueError]


@pytest.mark.parametrize("timeout", [-1, float("nan"), float("inf"), True, "1"])
def test_limit_that_is_no_number_of_seconds_is_a_mistake(timeout: float) -> None:
    future = hdphrs.spawn(abs, -1)
    for call in (
        lambda: future.get(timeout=timeout),
        lambda: hdphrs.as_completed([future], timeout=timeout),
        lambda: hdphrs.wait([future], timeout=timeout),
        lambda: hdphrs.get_any([future], timeout=timeout),
        lambda: hdphrs.scope(timeout=timeout),
    ):
        with pytest.raises(hdphrs.errors.UsageError, match="a number of seconds"):
            call()


def test_what_is_full_is_in_time() -> None:
    future = hdphrs.spawn(abs, -1)
    assert future.get() == future.get(timeout=0) == hdphrs.get_any([future], timeout=0) == 1
    hdphrs.wait([future], timeout=0)
    with hdphrs.scope(timeout=0) as tasks:
        tasks.spawn(abs, -1)
    with pytest.raises(ValueError, match="one"):
        hdphrs.spawn(fail, "one").get(timeout=1)
