"""Map-reduce: a function over a range or over items, and its results combined; reductions and scans.

What lives here: map-reduce over a range with a threshold (the paper's Mandelbrot), which combines in a tree of tasks;
map-reduce, reduction and scan over any iterable, which combine within each chunk, and then the chunks.

`combine` must be associative; nothing is ever swapped, so it need not be commutative.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from enum import Enum
from functools import partial, reduce
from itertools import accumulate, chain
from typing import Any, ClassVar, Literal, TypeVar, overload

import hdphrs.skeletons.strategy as strategy  # not from the package, which loads all of them
from hdphrs.api.apart import call_apart
from hdphrs.api.future import named_after_first
from hdphrs.api.memo import mark_skeleton
from hdphrs.errors import UsageError
from hdphrs.skeletons.arguments import check_callable, check_count, check_grain, check_items
from hdphrs.skeletons.collect import collect
from hdphrs.skeletons.divide_and_conquer import Plan, conquer
from hdphrs.skeletons.grain import over_chunks
from hdphrs.skeletons.skeleton import Skeleton
from hdphrs.skeletons.slices import chunks_of

A = TypeVar("A")
B = TypeVar("B")


class _Absent(Enum):
    """The type of what stands for no `initial`: None may be one."""

    ABSENT = "absent"

    def __repr__(self) -> str:
        return "<none>"


ABSENT = _Absent.ABSENT


class MapReduceRangeThresh(Skeleton):
    """A function over a range, halved down to a threshold."""

    grain: ClassVar[str | None] = "threshold"

    @overload
    def __call__(
        self,
        threshold: int,
        items: range,
        function: Callable[[int], B],
        combine: Callable[[B, B], B],
        initial: B,
    ) -> B: ...
    @overload
    def __call__(
        self,
        function: Callable[[int], B],
        combine: Callable[[B, B], B],
        items: range,
        initial: B,
        *,
        threshold: int,
    ) -> B: ...
    def __call__(  # type: ignore[misc]  # `arrange` makes the last form of the first
        self,
        threshold: int,
        items: range,
        function: Callable[[int], B],
        combine: Callable[[B, B], B],
        initial: B,
    ) -> B:
        """Map `function` over a range and combine the results (HdpH's `parMapReduceRangeThresh`).

        Gives `functools.reduce(combine, map(function, items), initial)`.  The range is halved, each half in a task of
        its own, down to `threshold` numbers; the halves are combined where they were split, so that an expensive
        `combine` is shared out too.  The arguments may also have the order of `par_map_reduce`: `(function, combine,
        items, initial, threshold=100)`.

        Args:
            threshold: numbers that are worked on without splitting them further, at least 1.
            items: a range; only its ends travel.  By its former name, `numbers`, it may be given too.
            function: idempotent.
            combine: idempotent and associative.
            initial: what the first result is combined with; the result if the range is empty.

        Raises:
            UsageError: `threshold` is no positive int, `items` no range, or a function is not callable.
            Exception: what one of the functions raised.
        """
        check_count(self.name, "threshold", threshold)
        if not isinstance(items, range):
            raise UsageError(f"{self.name}: items must be a range, not {items!r}")
        check_callable(self.name, function=function, combine=combine)
        if not items:
            return initial
        plan: Plan[range, B] = Plan(
            self.schedule,
            partial(is_short, threshold),
            halves,
            partial(join, combine),
            partial(map_fold, function, combine),
        )
        mark_skeleton(plan.task, function, combine)
        return combine(initial, conquer(plan, items))

    def arrange(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        if "numbers" in kwargs and "items" not in kwargs:
            kwargs = {**kwargs, "items": kwargs["numbers"]}
            del kwargs["numbers"]
        named = dict(zip(("function", "combine", "items", "initial"), args, strict=False))
        if args and callable(args[0]) and len(named) == len(args) and named.keys().isdisjoint(kwargs):
            return (), {**named, **kwargs}
        return args, kwargs


class MapReduce(Skeleton):
    """A function over items, and its results combined, in tasks of neighbours."""

    def __call__(
        self,
        function: Callable[[A], B],
        combine: Callable[[B, B], B],
        items: Iterable[A],
        initial: B | Literal[_Absent.ABSENT] = ABSENT,
        *,
        chunk: int | None = None,
    ) -> B:
        """Map `function` over `items` and combine the results.

        Gives `functools.reduce(combine, map(function, items), initial)`.  A task maps and combines a chunk, the caller
        combines the chunks.

        Args:
            function: idempotent.
            combine: idempotent and associative.
            items: travel with their task.
            initial: what the first result is combined with; the result if there is no item.  Without it there must be
                one.
            chunk: items in a task, at least 1; None: so many as take some 20 ms.

        Raises:
            UsageError: a function is not callable, `items` cannot be iterated over, there is none and no `initial`, or
                `chunk` is neither a positive int nor None.
            Exception: what one of the functions raised.
        """
        check_grain(self.name, "chunk", chunk)
        check_callable(self.name, function=function, combine=combine)
        items = check_items(self.name, "items", items)
        work = partial(map_fold, function, combine)
        parts = over_chunks(self.schedule, work, items, chunk, [function, combine])
        return _combined(self.name, combine, parts, initial)


class Reduce(Skeleton):
    """Items combined, in tasks of neighbours."""

    def __call__(
        self,
        combine: Callable[[A, A], A],
        items: Iterable[A],
        initial: A | Literal[_Absent.ABSENT] = ABSENT,
        *,
        chunk: int | None = None,
    ) -> A:
        """Combine `items`: `functools.reduce(combine, items, initial)`.

        Args:
            combine: idempotent and associative.
            items: travel with their task.
            initial: what the first item is combined with; the result if there is no item.  Without it there must be
                one.
            chunk: items in a task, at least 1; None: so many as take some 20 ms.

        Raises:
            UsageError: `combine` is not callable, `items` cannot be iterated over, there is none and no `initial`, or
                `chunk` is neither a positive int nor None.
            Exception: what `combine` raised.
        """
        check_grain(self.name, "chunk", chunk)
        check_callable(self.name, combine=combine)
        items = check_items(self.name, "items", items)
        parts: list[A] = over_chunks(self.schedule, partial(reduce, combine), items, chunk, [combine])
        return _combined(self.name, combine, parts, initial)


class Scan(Skeleton):
    """What a reduction comes to after each item."""

    def __call__(
        self,
        combine: Callable[[A, A], A],
        items: Iterable[A],
        initial: A | Literal[_Absent.ABSENT] = ABSENT,
        *,
        chunk: int | None = None,
    ) -> list[A]:
        """All prefixes of `items`, combined: `list(itertools.accumulate(items, combine))`.

        Each chunk is combined twice, in two rounds of tasks: first to know what it comes to, then from what comes
        before it.  So it pays where `combine` takes long, on more than two cores.

        Args:
            combine: idempotent and associative.
            items: travel with their task, in both rounds.
            initial: what comes first, and what the first item is combined with, as for `accumulate`; there is one
                result more than items then.
            chunk: items in a task, at least 1; None: a 64th of them.

        Raises:
            UsageError: `combine` is not callable, `items` cannot be iterated over, or `chunk` is neither a positive int
                nor None.
            Exception: what `combine` raised.
        """
        check_grain(self.name, "chunk", chunk)
        check_callable(self.name, combine=combine)
        items = check_items(self.name, "items", items)
        if initial is not ABSENT:
            items.insert(0, initial)
        if not items:
            return []
        first, *others = chunks_of(chunk or -(-len(items) // SCAN_CHUNKS), items)
        mark_skeleton(total := partial(reduce, combine), combine)
        mark_skeleton(task := partial(scan_chunk, combine), combine)
        if not others:
            return scan_chunk(combine, first)
        before = accumulate(collect(self.schedule(total, [first, *others[:-1]])), combine)
        continued = [[start, *chunk] for start, chunk in zip(before, others, strict=True)]
        beginning, *parts = collect(self.schedule(task, [first, *continued]))
        return [*beginning, *chain.from_iterable(part[1:] for part in parts)]


def _combined(name: str, combine: Callable[[B, B], B], parts: list[B], initial: B | Literal[_Absent.ABSENT]) -> B:
    """What the chunks come to together."""
    if initial is not ABSENT:
        return reduce(combine, parts, initial)
    if not parts:
        raise UsageError(f"{name}: there are no items, and no initial value to return")
    return reduce(combine, parts)


SCAN_CHUNKS = 64
"""Chunks of a scan, if the caller does not say."""


@named_after_first
def map_fold(function: Callable[[A], B], combine: Callable[[B, B], B], items: Sequence[A]) -> B:
    """The task: some items, at least one of them, mapped and combined."""
    return reduce(combine, map(partial(call_apart, function), items))


@named_after_first
def scan_chunk(combine: Callable[[A, A], A], items: Sequence[A]) -> list[A]:
    """The task: prefixes of some items."""
    return list(accumulate(items, combine))


def is_short(threshold: int, numbers: range) -> bool:
    """Whether a range is not split further."""
    return len(numbers) <= threshold


def halves(numbers: range) -> list[range]:
    """A range of two numbers or more, split."""
    middle = len(numbers) // 2
    return [numbers[:middle], numbers[middle:]]


def join(combine: Callable[[B, B], B], numbers: range, parts: list[B]) -> B:
    """A range, from its halves."""
    left, right = parts
    return combine(left, right)


par_map_reduce_range_thresh: MapReduceRangeThresh = MapReduceRangeThresh("par_map_reduce_range_thresh", strategy.lazy)
push_map_reduce_range_thresh: MapReduceRangeThresh = MapReduceRangeThresh(
    "push_map_reduce_range_thresh", strategy.eager_nested
)
par_map_reduce_range_thresh_ft: MapReduceRangeThresh = MapReduceRangeThresh(
    "par_map_reduce_range_thresh_ft", strategy.lazy_supervised
)
push_map_reduce_range_thresh_ft: MapReduceRangeThresh = MapReduceRangeThresh(
    "push_map_reduce_range_thresh_ft", strategy.eager_nested_supervised
)
fork_map_reduce_range_thresh: MapReduceRangeThresh = MapReduceRangeThresh(
    "fork_map_reduce_range_thresh", strategy.local
)

par_map_reduce: MapReduce = MapReduce("par_map_reduce", strategy.lazy)
push_map_reduce: MapReduce = MapReduce("push_map_reduce", strategy.eager)
fork_map_reduce: MapReduce = MapReduce("fork_map_reduce", strategy.local)

par_reduce: Reduce = Reduce("par_reduce", strategy.lazy)
push_reduce: Reduce = Reduce("push_reduce", strategy.eager)
fork_reduce: Reduce = Reduce("fork_reduce", strategy.local)

par_scan: Scan = Scan("par_scan", strategy.lazy)
push_scan: Scan = Scan("push_scan", strategy.eager)
fork_scan: Scan = Scan("fork_scan", strategy.local)
