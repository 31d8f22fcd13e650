"""`MPIPoolExecutor` is ours."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import (
    ALL_COMPLETED,
    FIRST_COMPLETED,
    FIRST_EXCEPTION,
    BrokenExecutor,
    CancelledError,
    Future,
    InvalidStateError,
    ThreadPoolExecutor,
    TimeoutError,  # noqa: A004 - it gives this name out, too
    as_completed,
    wait,
)
from typing import Any

import hdphrs

from . import _core


class MPIPoolExecutor(hdphrs.Executor):
    """With the methods that mpi4py has beyond the standard, each in terms of the standard ones."""

    def __init__(
        self,
        max_workers: int | None = None,
        initializer: Callable[..., object] | None = None,
        initargs: tuple[Any, ...] = (),
        **options: Any,
    ) -> None:
        super().__init__(max_workers, initializer=initializer, initargs=initargs)

    def bootup(self, wait: bool = True) -> MPIPoolExecutor:
        if self._closed:
            raise RuntimeError("cannot bootup after shutdown")
        return self

    @property
    def num_workers(self) -> int:
        return 0 if self._closed else self._max_workers

    def starmap(
        self,
        fn: Callable[..., Any],
        iterable: Iterable[Iterable[Any]],
        timeout: float | None = None,
        chunksize: int = 1,
        buffersize: int | None = None,
        unordered: bool = False,
    ) -> Iterator[Any]:
        calls = ((tuple(args),) for args in iterable)
        if unordered:
            return self._unordered(_call, ((fn, args) for (args,) in calls), timeout)
        return super().map(
            _call,
            itertools.repeat(fn),
            (args for (args,) in calls),
            timeout=timeout,
            chunksize=chunksize,
            buffersize=buffersize,
        )

    def map(self, fn: Callable[..., Any], *iterables: Iterable[Any], unordered: bool = False, **options: Any) -> Any:
        if unordered and options.get("buffersize") is not None:
            raise ValueError("unordered results have no buffer")
        if unordered and options.get("chunksize", 1) == 1:
            return self._unordered(fn, zip(*iterables, strict=False), options.get("timeout"))
        return super().map(fn, *iterables, **options)

    def _unordered(
        self, fn: Callable[..., Any], calls: Iterable[tuple[Any, ...]], timeout: float | None
    ) -> Iterator[Any]:
        futures = [self.submit(fn, *args) for args in calls]
        return (future.result() for future in as_completed(futures, timeout))


def _call(fn: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    return fn(*args)


class MPICommExecutor:
    """Not ours to replace."""


def get_comm_workers() -> object:
    """There are none."""
    raise RuntimeError("no MPI here")


__all__ = [
    "ALL_COMPLETED",
    "FIRST_COMPLETED",
    "FIRST_EXCEPTION",
    "BrokenExecutor",
    "CancelledError",
    "Future",
    "InvalidStateError",
    "MPICommExecutor",
    "MPIPoolExecutor",
    "ThreadPoolExecutor",
    "TimeoutError",
    "_core",
    "as_completed",
    "get_comm_workers",
    "wait",
]
