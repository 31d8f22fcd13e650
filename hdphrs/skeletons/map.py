"""Maps: a function over items, in tasks of one item, of a chunk, or of a slice (paper section 3.2, Listing 3).

What lives here: the three patterns, and their variants.  Of a monadic map, whose function itself spawns and gets
(HdpH's `parMapM`), there is nothing to be said here: any task may spawn, and so `parMapM` is `par_map`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from itertools import chain
from typing import Any, ClassVar, TypeVar, overload

import hdphrs.skeletons.strategy as strategy  # not from the package, which loads all of them
from hdphrs.api.apart import call_apart
from hdphrs.api.future import named_after_first
from hdphrs.api.memo import mark_skeleton
from hdphrs.skeletons.arguments import check_callable, check_grain, side_by_side
from hdphrs.skeletons.collect import collect
from hdphrs.skeletons.grain import over_chunks
from hdphrs.skeletons.skeleton import Skeleton
from hdphrs.skeletons.slices import slice_list, unslice

A = TypeVar("A")
A2 = TypeVar("A2")
B = TypeVar("B")


class Map(Skeleton):
    """A function over items, each in a task of its own."""

    @overload
    def __call__(self, function: Callable[[A], B], items: Iterable[A], *, strict: bool = False) -> list[B]: ...
    @overload
    def __call__(
        self, function: Callable[[A, A2], B], items: Iterable[A], more: Iterable[A2], /, *, strict: bool = False
    ) -> list[B]: ...
    @overload
    def __call__(
        self, function: Callable[..., B], items: Iterable[Any], /, *more: Iterable[Any], strict: bool = False
    ) -> list[B]: ...
    def __call__(
        self, function: Callable[..., B], items: Iterable[Any], *more: Iterable[Any], strict: bool = False
    ) -> list[B]:
        """Map `function` over `items`, one task an item (HdpH's `parMap`).

        Takes its time like `list(map(function, items))`, and gives the same list, on however many nodes, whichever of
        them die.  For items that take a millisecond or more; else let some of them share a task.

        Args:
            function: idempotent; may spawn tasks itself (`parMapM`).
            items: travel with their task.  An iterator is asked for the next when the task of the last is made, which
                in a program waits while too many large ones are under way.
            more: iterables that `function` takes further arguments from, as with `map`: it is called with the first
                items of all, then with the second ones, and so on, until the shortest is at its end.
            strict: whether it is a mistake if one of them is longer than another.

        Returns:
            The results in the order of the items.

        Raises:
            UsageError: `function` is not callable, `items` or one of `more` cannot be iterated over, or they are not of
                one length though `strict`.
            Exception: what `function` raised, of the first item for which it did.
        """
        check_callable(self.name, function=function)
        function, rows = side_by_side(self.name, function, items, more, strict)
        # One by one, for what makes large items then waits while enough of them wait to be sent (decision 54).
        return collect(self.schedule(function, list(rows) if strict else rows))


class MapChunked(Skeleton):
    """A function over items, in tasks of neighbours."""

    grain: ClassVar[str | None] = "chunk"

    @overload
    def __call__(
        self, chunk: int | None, function: Callable[[A], B], items: Iterable[A], *, strict: bool = False
    ) -> list[B]: ...
    @overload
    def __call__(
        self,
        chunk: int | None,
        function: Callable[[A, A2], B],
        items: Iterable[A],
        more: Iterable[A2],
        /,
        *,
        strict: bool = False,
    ) -> list[B]: ...
    @overload
    def __call__(
        self,
        chunk: int | None,
        function: Callable[..., B],
        items: Iterable[Any],
        /,
        *more: Iterable[Any],
        strict: bool = False,
    ) -> list[B]: ...
    @overload
    def __call__(
        self,
        function: Callable[..., B],
        items: Iterable[Any],
        /,
        *more: Iterable[Any],
        chunk: int | None = None,
        strict: bool = False,
    ) -> list[B]: ...
    def __call__(  # type: ignore[misc]  # `arrange` makes the last form of the first
        self,
        chunk: int | None,
        function: Callable[..., B],
        items: Iterable[Any],
        *more: Iterable[Any],
        strict: bool = False,
    ) -> list[B]:
        """Map `function` over `items`, `chunk` neighbours a task (HdpH's `parMapChunked`).

        As `par_map` otherwise.  The function may also come first: `par_map_chunked(function, items, chunk=10)`.

        Args:
            chunk: items in a task, at least 1; the last task has what is left.  None: so many as take some 20 ms, which
                is measured on the first few.  (With a ledger give a number: other chunks are other tasks.)
            function: idempotent; it is pickled once, not with every task.
            items: travel with their task.
            more: further iterables, as for `par_map`.
            strict: as for `par_map`.

        Raises:
            UsageError: `chunk` is neither a positive int nor None; otherwise as `par_map`.
            Exception: what `function` raised, of the first item for which it did.
        """
        check_grain(self.name, "chunk", chunk)
        check_callable(self.name, function=function)
        called, rows = side_by_side(self.name, function, items, more, strict)
        items = list(rows)
        work = partial(map_slice, called)
        return list(chain.from_iterable(over_chunks(self.schedule, work, items, chunk, [function])))


class MapSliced(Skeleton):
    """A function over items, in a given number of tasks."""

    grain: ClassVar[str | None] = "tasks"

    @overload
    def __call__(
        self, tasks: int | None, function: Callable[[A], B], items: Iterable[A], *, strict: bool = False
    ) -> list[B]: ...
    @overload
    def __call__(
        self,
        tasks: int | None,
        function: Callable[[A, A2], B],
        items: Iterable[A],
        more: Iterable[A2],
        /,
        *,
        strict: bool = False,
    ) -> list[B]: ...
    @overload
    def __call__(
        self,
        tasks: int | None,
        function: Callable[..., B],
        items: Iterable[Any],
        /,
        *more: Iterable[Any],
        strict: bool = False,
    ) -> list[B]: ...
    @overload
    def __call__(
        self,
        function: Callable[..., B],
        items: Iterable[Any],
        /,
        *more: Iterable[Any],
        tasks: int | None = None,
        strict: bool = False,
    ) -> list[B]: ...
    def __call__(  # type: ignore[misc]  # `arrange` makes the last form of the first
        self,
        tasks: int | None,
        function: Callable[..., B],
        items: Iterable[Any],
        *more: Iterable[Any],
        strict: bool = False,
    ) -> list[B]:
        """Map `function` over `items` in `tasks` tasks (the paper's `parMapSliced`).

        As `par_map` otherwise; the function may also come first: `par_map_sliced(function, items, tasks=10)`.

        Items go to the slices in turn, which is fair where neighbours cost about the same.
        Make `tasks` several times the number of cores, so that there is something left to steal when some slices cost
        more than others.

        Args:
            tasks: how many slices, hence tasks, at least 1; more than items are no use.  None: so many that each takes
                some 20 ms, which is measured on the first few items; of neighbours, as for `par_map_chunked`.  (With a
                ledger give a number: other slices are other tasks.)
            function: idempotent; it is pickled once, not with every task.
            items: travel with their task.
            more: further iterables, as for `par_map`.
            strict: as for `par_map`.

        Raises:
            UsageError: `tasks` is neither a positive int nor None; otherwise as `par_map`.
            Exception: what `function` raised, of the first slice in which it did.
        """
        check_grain(self.name, "tasks", tasks)
        check_callable(self.name, function=function)
        called, rows = side_by_side(self.name, function, items, more, strict)
        items = list(rows)
        work = partial(map_slice, called)
        if tasks is None:  # neighbours, so that it does not depend on their number whose exception is raised
            return list(chain.from_iterable(over_chunks(self.schedule, work, items, None, [function])))
        # One object for all tasks is pickled once, as their code; an argument would be pickled with each of them.
        mark_skeleton(work, function)
        return unslice(collect(self.schedule(work, slice_list(tasks, items))))


@named_after_first
def map_slice(function: Callable[[A], B], items: list[A]) -> list[B]:
    """The task: some items, one by one."""
    return [call_apart(function, item) for item in items]


par_map: Map = Map("par_map", strategy.lazy)
push_map: Map = Map("push_map", strategy.eager)
par_map_ft: Map = Map("par_map_ft", strategy.lazy_supervised)
push_map_ft: Map = Map("push_map_ft", strategy.eager_supervised)
fork_map: Map = Map("fork_map", strategy.local)

par_map_chunked: MapChunked = MapChunked("par_map_chunked", strategy.lazy)
push_map_chunked: MapChunked = MapChunked("push_map_chunked", strategy.eager)
par_map_chunked_ft: MapChunked = MapChunked("par_map_chunked_ft", strategy.lazy_supervised)
push_map_chunked_ft: MapChunked = MapChunked("push_map_chunked_ft", strategy.eager_supervised)
fork_map_chunked: MapChunked = MapChunked("fork_map_chunked", strategy.local)

par_map_sliced: MapSliced = MapSliced("par_map_sliced", strategy.lazy)
push_map_sliced: MapSliced = MapSliced("push_map_sliced", strategy.eager)
par_map_sliced_ft: MapSliced = MapSliced("par_map_sliced_ft", strategy.lazy_supervised)
push_map_sliced_ft: MapSliced = MapSliced("push_map_sliced_ft", strategy.eager_supervised)
fork_map_sliced: MapSliced = MapSliced("fork_map_sliced", strategy.local)
