"""What a caller gives that is no future, and what the error says to write instead."""

from __future__ import annotations

import asyncio
import concurrent.futures
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import hdphrs
from hdphrs.errors import UsageError


@pytest.fixture(autouse=True)
def sequential() -> Iterator[None]:
    with hdphrs.sequential():
        yield


def double(x: int) -> int:
    return 2 * x


def future() -> hdphrs.Future[int]:
    return hdphrs.spawn(double, 1)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: [future(), future()],
            r"one future, not a list; for several write \[hdphrs.get\(future\) for future in",
        ),
        (lambda: (future(),), "one future, not a tuple"),
        (lambda: {future()}, "one future, not a set"),
        (lambda: {"a": future()}, "one future, not a dict"),
        (lambda: (each for each in [future()]), "one future, not a generator"),
        (lambda: map(abs, [1]), "one future, not a map"),
        (concurrent.futures.Future, r"a future of concurrent.futures, not of hdphrs: its value is future.result\(\)"),
        (lambda: double, r"is a function, and no future: write hdphrs.get\(hdphrs.spawn\(function, argument\)\)"),
        (lambda: 3, "a future, as spawn returns it, not 3"),
        (lambda: None, "a future, as spawn returns it, not None"),
        (lambda: "x" * 10_000, "a future, as spawn returns it, not 'x{10,}"),
        (hdphrs.Future, "this Future was not made by spawn"),
    ],
)
def test_get_of_what_is_no_future_says_what_to_write(make: Callable[[], Any], message: str) -> None:
    value = make()
    for arguments in ((value,), (value, 1), (value, None)):
        with pytest.raises(UsageError, match=f"^get: .*{message}") as caught:
            hdphrs.get(*arguments)
        assert len(str(caught.value)) < 300


def test_get_of_what_is_awaited_says_so() -> None:
    async def program() -> None:
        awaited: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        coroutine = asyncio.sleep(0)
        for value in (awaited, coroutine):
            with pytest.raises(
                UsageError, match=r"^get: .* is awaited, `await \.\.\.`; a task of hdphrs is what spawn"
            ):
                hdphrs.get(value)  # type: ignore[arg-type]
        await coroutine

    asyncio.run(program())


@pytest.mark.parametrize("call", [hdphrs.wait, hdphrs.get_any, lambda futures: list(hdphrs.as_completed(futures))])
def test_those_that_take_several_say_so(call: Callable[[Any], object]) -> None:
    with pytest.raises(
        UsageError, match=r"it takes several futures, as a list of what spawn has returned, not <Future"
    ):
        call(hdphrs.spawn(double, 1))
    with pytest.raises(UsageError, match=r"it takes several futures, as a list of what spawn has returned, not 3$"):
        call(3)
    with pytest.raises(UsageError, match=r"among the futures is something else: it takes a future, .* not 3$"):
        call([hdphrs.spawn(double, 1), 3])
    with pytest.raises(UsageError, match=r"among the futures is something else: it takes one future, not a list"):
        call([[hdphrs.spawn(double, 1)]])


def test_get_takes_a_timeout() -> None:
    future = hdphrs.spawn(double, 2)
    assert hdphrs.get(future, timeout=1) == hdphrs.get(future, 0.5) == hdphrs.get(future, None) == 4
    assert hdphrs.get(future, timeout=None) == hdphrs.get(future=future) == 4
    for wrong in ("1", -1, True, float("nan"), [future], future):
        with pytest.raises(UsageError, match=r"^get: timeout is a number of seconds, or None for no limit, not "):
            hdphrs.get(future, timeout=wrong)  # type: ignore[arg-type]


def test_what_a_task_raises_comes_out_of_get_with_a_timeout_as_it_does_without() -> None:
    def fail() -> None:
        raise KeyError("mine") from None

    limits: dict[str, Any]
    for limits in ({}, {"timeout": 5}):
        with pytest.raises(KeyError, match="mine") as caught:
            hdphrs.get(hdphrs.spawn(fail), **limits)
        assert caught.value.__context__ is None


def test_a_task_that_is_no_attribute_of_mine_is_not_taken_for_a_timeout() -> None:
    def fail() -> None:
        raise AttributeError("task")

    with pytest.raises(AttributeError, match=r"^task$"):
        hdphrs.get(hdphrs.spawn(fail))


def test_a_scope_that_is_not_called_says_so() -> None:
    with pytest.raises(UsageError, match=r"^scope: it must be called, as in `with hdphrs.scope\(\) as tasks:`$"):
        with hdphrs.scope:
            pass
