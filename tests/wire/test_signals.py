"""Telling what a signal handler has raised from what the code has raised in which it was called."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Iterator
from functools import partial
from types import FrameType
from typing import Any

import pytest

from hdphrs.errors import CannotTravelError
from hdphrs.wire.signals import came_between, handling
from hdphrs.wire.values import dump_arguments, dump_error, dump_result, load_outcome


class LateError(Exception):
    """What handlers raise here."""


def plain(number: int, frame: FrameType | None) -> None:
    raise LateError


def farther_in(*given: Any) -> None:
    plain(0, None)


def replaces_itself(number: int, frame: FrameType | None) -> None:
    signal.signal(number, signal.SIG_IGN)
    raise LateError


class Limit:
    """As classes do it that limit the time of a block."""

    def late(self, number: int, frame: FrameType | None) -> None:
        raise LateError

    def __call__(self, number: int, frame: FrameType | None) -> None:
        raise LateError


class Value:
    """What unpickles, and pickles, by calling this."""

    def __init__(self, call: Callable[[], object]) -> None:
        self.call = call

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self.call()


class Argument:
    """What does something when it is pickled."""

    def __init__(self, call: Callable[[], object]) -> None:
        self.call = call

    def __reduce__(self) -> tuple[Any, ...]:
        self.call()
        return int, ()


def strike() -> None:
    signal.raise_signal(signal.SIGUSR1)


def fail() -> None:
    raise LateError


def fail_with_a_frame(number: int = 3, frame: FrameType | None = None) -> None:
    raise LateError


def fail_like_a_handler() -> None:
    fail_with_a_frame(3, sys._getframe(1))


def leave() -> None:
    raise SystemExit(3)


@pytest.fixture(params=[plain, farther_in, replaces_itself, Limit().late, Limit(), partial(plain)])
def handler(request: pytest.FixtureRequest) -> Iterator[None]:
    before = signal.signal(signal.SIGUSR1, request.param)
    yield
    signal.signal(signal.SIGUSR1, before)


def error_of(call: Callable[[], object]) -> BaseException:
    try:
        call()
    except BaseException as error:
        return error
    raise AssertionError("nothing is raised")


def test_handler_is_known_by_the_frame_that_it_was_called_from(handler: None) -> None:
    assert came_between(error_of(strike))


class Failing(Exception):  # noqa: N818 - it fails to come along
    """An exception that unpickles by calling this."""

    def __init__(self, call: Callable[[], object]) -> None:
        super().__init__(call)
        self.call = call

    def __setstate__(self, state: dict[str, Any] | None) -> None:
        vars(self).update(state or {})
        self.call()


@pytest.mark.parametrize("fails", [False, True])
def test_what_is_unpickled_when_a_handler_raises_can_be_unpickled_again(handler: None, fails: bool) -> None:
    outcome = dump_error("f", Failing(strike)) if fails else dump_result("f", Value(strike))
    with pytest.raises(LateError):
        load_outcome(outcome)
    signal.signal(signal.SIGUSR1, signal.SIG_IGN)
    succeeded, content = load_outcome(outcome)
    assert succeeded is not fails
    assert isinstance(content, Failing if fails else Value)


def test_arguments_that_are_pickled_when_a_handler_raises_are_not_to_blame(handler: None) -> None:
    with pytest.raises(LateError):
        dump_arguments("f", (Argument(strike),), {}, b"")


@pytest.mark.parametrize("call", [fail, fail_like_a_handler, leave])
def test_what_a_value_raises_itself_is_its_outcome(call: Callable[[], object]) -> None:
    assert not came_between(error_of(call))
    succeeded, error = load_outcome(dump_result("f", Value(call)))
    assert not succeeded
    assert isinstance(error, CannotTravelError)
    with pytest.raises(CannotTravelError):
        dump_arguments("f", (Argument(call),), {}, b"")


def interrupt() -> None:
    raise KeyboardInterrupt


def test_ctrl_c_comes_between_but_in_a_scheduler_where_it_is_a_value_that_raises_it() -> None:
    outcome = dump_result("f", Value(interrupt))
    with pytest.raises(KeyboardInterrupt):
        load_outcome(outcome)
    handling.waits = True
    try:
        assert isinstance(load_outcome(outcome)[1], CannotTravelError)
    finally:
        handling.waits = False
