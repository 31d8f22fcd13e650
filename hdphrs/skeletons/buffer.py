"""Maps over streams: items are taken one by one, so many tasks are under way at a time, results come one by one.

What lives here: the parallel buffer, which the paper names (section 3.2), with its results in order or as they come.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any, ClassVar, TypeVar, overload

import hdphrs.skeletons.strategy as strategy  # not from the package, which loads all of them
from hdphrs.api.future import Future, get
from hdphrs.api.waiting import first_full
from hdphrs.skeletons.arguments import check_callable, check_count, check_flag, side_by_side
from hdphrs.skeletons.collect import give_up
from hdphrs.skeletons.skeleton import Skeleton

A = TypeVar("A")
B = TypeVar("B")


class Buffer(Skeleton):
    """A function over a stream of items, each in a task of its own, a bounded number of them at a time."""

    grain: ClassVar[str | None] = "size"

    @overload
    def __call__(
        self, size: int, function: Callable[[A], B], items: Iterable[A], *, ordered: bool = True, strict: bool = False
    ) -> Iterator[B]: ...
    @overload
    def __call__(
        self,
        size: int,
        function: Callable[..., B],
        items: Iterable[Any],
        /,
        *more: Iterable[Any],
        ordered: bool = True,
        strict: bool = False,
    ) -> Iterator[B]: ...
    @overload
    def __call__(
        self,
        function: Callable[..., B],
        items: Iterable[Any],
        /,
        *more: Iterable[Any],
        size: int,
        ordered: bool = True,
        strict: bool = False,
    ) -> Iterator[B]: ...
    def __call__(  # type: ignore[misc]  # `arrange` makes the last form of the first
        self,
        size: int,
        function: Callable[..., B],
        items: Iterable[Any],
        *more: Iterable[Any],
        ordered: bool = True,
        strict: bool = False,
    ) -> Iterator[B]:
        """Map `function` over `items`, which may have no end, with at most `size` results under way or waiting.

        Whenever a result is asked for, so many items are taken that there are `size` tasks again, and not one more.
        Nothing is taken before the first is asked for.  The function may also come first: `par_buffer(function, items,
        size=16)`.

        Args:
            size: tasks at a time, at least 1; several times the number of cores is good.
            function: idempotent; may spawn tasks itself.
            items: taken one by one, by whoever asks for results.
            more: further iterables, as for `par_map`.
            ordered: whether the results come in the order of the items.  If not, one that is there comes before one
                that is not; the order may be another one each time.
            strict: as for `par_map`.

        Returns:
            An iterator over the results.  If it is left early, or a task fails, what is under way is cancelled.

        Raises:
            UsageError: `size` is no positive int, `function` is not callable, `items` or one of `more` cannot be
                iterated over, or `ordered` or `strict` is no bool.
            Exception: (from the iterator) what `function` raised, or `items`.
        """
        check_count(self.name, "size", size)
        check_callable(self.name, function=function)
        check_flag(self.name, "ordered", ordered)
        futures = self.schedule(*side_by_side(self.name, function, items, more, strict))
        return _stream(size, futures, _first if ordered else _finished)


def _stream(size: int, futures: Iterator[Future[B]], choose: Callable[[list[Future[B]]], int]) -> Iterator[B]:
    flying: list[Future[B]] = []
    try:
        while True:
            flying.extend(islice(futures, size - len(flying)))
            if not flying:
                return
            yield get(flying.pop(choose(flying)))
    finally:
        give_up(flying)


def _first(flying: list[Future[B]]) -> int:
    return 0


def _finished(flying: list[Future[B]]) -> int:
    """One that is done, or else the next that is."""
    for index, future in enumerate(flying):
        if future._function is None and future.done():
            return index
    first = first_full(flying)
    assert first is not None, "a buffer is asked when something flies"
    return flying.index(first)


par_buffer: Buffer = Buffer("par_buffer", strategy.lazy)
push_buffer: Buffer = Buffer("push_buffer", strategy.eager)
fork_buffer: Buffer = Buffer("fork_buffer", strategy.local)
