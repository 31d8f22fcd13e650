"""How many items make a task, where the caller does not say: so many as take some 20 ms.

What lives here: `over_chunks`, on which all skeletons over the chunks of a list are built, and `measure`, which finds
out how long an item takes.

The first items are worked on in one task, the scout, that takes the time, and is done after a few milliseconds or two
items.  So that other cores have something to do meanwhile, the last items are tasks of their own from the beginning,
which is good for the end of the work as well.  What lies between is cut when the scout has reported.

The clock only decides where the list is cut, hence nothing of the result.  Sizes are powers of two, so that they are
mostly the same when a task is run again after a failure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from time import perf_counter
from typing import Generic, TypeVar

from hdphrs.api.future import Future, get, named_after_first, state
from hdphrs.api.memo import mark_skeleton
from hdphrs.skeletons.collect import collect, give_up
from hdphrs.skeletons.slices import chunks_of
from hdphrs.skeletons.strategy import Strategy

A = TypeVar("A")
R = TypeVar("R")

TASK_S = 25e-3
"""What a task is to take, or up to half of it: a hundred times what it costs to steal it."""

SCOUT_S = 2e-3
"""What the scout measures takes at least this, if it has enough items."""

SCOUT_ITEMS_MAX = 1024
"""Items that travel with the scout."""

FEW = 64
"""Items that are tasks of their own, at the end; if there are twice as many or fewer, all are."""

CHUNKS_MIN = 32
"""Chunks that are made in any case, of what lies between, so that there is something to steal."""


@dataclass(frozen=True, slots=True)
class Measured(Generic[A, R]):
    """A list of which some parts are done, or on their way."""

    head: list[R]
    """What the scout has computed, part by part."""
    rest: list[A]
    """The items between, of which nobody has begun."""
    size: int
    """How many of those are to make a task."""
    tail: list[Future[R]]
    """One for each of the last items."""


def over_chunks(
    schedule: Strategy,
    work: Callable[[list[A]], R],
    items: list[A],
    chunk: int | None,
    functions: Iterable[Callable[..., object]],
) -> list[R]:
    """The results of `work` on neighbouring chunks that together are `items`, in order.

    Args:
        chunk: items in each, but for the last; None: as many as take some 20 ms.
        functions: those of the user's that `work` calls.
    """
    mark_skeleton(task := partial(work), *functions)  # one object for all tasks is pickled once
    if chunk is None:
        with state.port.aside():
            measured = measure(schedule, task, items, functions)
            rest = schedule(task, chunks_of(measured.size, measured.rest))
            return [*measured.head, *collect([*rest, *measured.tail])]
    return collect(schedule(task, chunks_of(chunk, items)))


def measure(
    schedule: Strategy,
    task: Callable[[list[A]], R],
    items: list[A],
    functions: Iterable[Callable[..., object]],
) -> Measured[A, R]:
    """Begin at both ends of `items`, and find out how many of them a task should have."""
    if len(items) <= 2 * FEW:
        return Measured([], [], 1, list(schedule(task, chunks_of(1, items))))
    mark_skeleton(probe := partial(scout, task), *functions)
    (first,) = schedule(probe, [items[: min(SCOUT_ITEMS_MAX, len(items) - FEW)]])
    tail = list(schedule(task, chunks_of(1, items[-FEW:])))
    try:
        head, done, item_s = get(first)
    except BaseException:
        give_up(tail)
        raise
    rest = items[done:-FEW]
    size = min(int(TASK_S / max(item_s, 1e-9)), len(rest) // CHUNKS_MIN)
    return Measured(head, rest, 1 << max(0, size.bit_length() - 1), tail)


@named_after_first
def scout(work: Callable[[list[A]], R], items: list[A]) -> tuple[list[R], int, float]:
    """The task that takes the time: results, of how many items, and what an item takes.

    What comes first is not counted: it may import a library.
    """
    results: list[R] = []
    done, size = 0, 1
    while True:
        began_s = perf_counter()
        part = items[done : done + size]
        results.append(work(part))
        took_s = perf_counter() - began_s
        done += len(part)
        if done == len(items) or (done > 1 and took_s >= SCOUT_S):
            return results, done, took_s / len(part)
        size = done
