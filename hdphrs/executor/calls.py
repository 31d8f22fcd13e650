"""What an executor wraps around the calls that it is given; it runs in schedulers.

What lives here: a chunk of a map, and a call before which the executor's initializer must have run in the process.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, TypeVar

from hdphrs.api import future as fast
from hdphrs.api.apart import call_apart
from hdphrs.api.memo import mark_skeleton
from hdphrs.api.options import task
from hdphrs.errors import CannotTravelError
from hdphrs.wire.capture import is_constant
from hdphrs.wire.pickling import dumps, loads
from hdphrs.wire.values import reason

T = TypeVar("T")

Call = tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]

_initialized: set[bytes] = set()
"""Of which executors the initializer has run in this process; asked only whether one is there."""


class InitializerFailed(Exception):  # noqa: N818 - its traceback is the message
    """The initializer of an executor has raised; what it raised is the cause."""


def chunked(function: Callable[..., T]) -> Callable[[list[tuple[Any, ...]]], list[T]]:
    """The task that calls `function` for each of several tuples of arguments."""
    chunk = partial(run_chunk, function)
    mark_skeleton(chunk, function)
    return chunk


def run_chunk(function: Callable[..., T], calls: Iterable[tuple[Any, ...]]) -> list[T]:
    """The task: one chunk, call by call."""
    return [call_apart(function, *args) for args in calls]


class Initializer:
    """The initializer of one executor, pickled once; puts itself in front of each call."""

    def __init__(self, function: Callable[..., object], args: tuple[Any, ...]) -> None:
        try:
            data = dumps((function, args))
        except Exception as error:
            raise CannotTravelError(f"the initializer or its arguments do not pickle: {reason(error)}") from error
        # What depends on an initializer is not the same call in another run.
        self._call = task(memo=False)(partial(run_initialized, os.urandom(16), data))
        self._last: Callable[..., Any] | None = None
        self._last_call = self._call

    def before(self, call: Call) -> Call:
        """The same call, made when this process has been initialised."""
        function, args, kwargs = call
        if function is not self._last:
            bound = task(memo=False)(partial(self._call, function))
            if not is_constant(bound):
                return self._call, (function, *args), kwargs
            self._last, self._last_call = function, bound  # the same object for each call: it is pickled once
        return self._last_call, args, kwargs


def run_initialized(token: bytes, data: bytes, function: Callable[..., T], /, *args: Any, **kwargs: Any) -> T:
    """The task: the initializer, unless it has run here before, and the call.

    Raises:
        InitializerFailed: so it has.
        Exception: what the call raises.
    """
    if token not in _initialized:
        _initialize(token, data)
    return function(*args, **kwargs)


def _initialize(token: bytes, data: bytes) -> None:
    """Run an initializer, which belongs to the process and to no task: it cannot spawn, so that nothing runs before it
    is through."""
    caller, fast.here.task = fast.here.task, None
    try:
        initializer, args = loads(data)
        initializer(*args)
    except BaseException as error:
        raise InitializerFailed(f"{type(error).__name__}: {error}") from error
    finally:
        fast.here.task = caller
    _initialized.add(token)
