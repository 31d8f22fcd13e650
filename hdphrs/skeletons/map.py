"""Sliced maps: a function over a list, in a given number of tasks (paper section 3.2, Listing 3).

What lives here: `par_map_sliced` and `push_map_sliced`, their always supervised forms, and the parametric
skeleton that all four are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import TypeVar

from hdphrs.api import get
from hdphrs.api.memo import mark_skeleton
from hdphrs.skeletons import strategy
from hdphrs.skeletons.arguments import check_callable, check_count, check_items
from hdphrs.skeletons.slices import slice_list, unslice
from hdphrs.skeletons.strategy import Strategy

A = TypeVar("A")
B = TypeVar("B")


def par_map_sliced(tasks: int, function: Callable[[A], B], items: Iterable[A]) -> list[B]:
    """Map `function` over `items` in `tasks` tasks that idle cores steal (the paper's `parMapSliced`).

    Takes its time like `list(map(function, items))`, and gives the same list, on however many nodes,
    whichever of them die.  Make `tasks` several times the number of cores, so that there is something left
    to steal when some slices cost more than others.

    Args:
        tasks: how many slices, hence tasks, at least 1; more than items are no use.  Items go to the slices
            in turn.
        function: idempotent; it is pickled once, not with every task.
        items: travel with their task.

    Returns:
        The results in the order of the items.

    Raises:
        UsageError: `tasks` is no positive int, `function` is not callable, or `items` cannot be iterated
            over.
        Exception: what `function` raised, of the first slice in which it did.
    """
    return _map_sliced("par_map_sliced", strategy.lazy, tasks, function, items)


def push_map_sliced(tasks: int, function: Callable[[A], B], items: Iterable[A]) -> list[B]:
    """As `par_map_sliced`, but placed on all nodes in turn, the caller's first (`pushMapSliced`).

    Good for regular work on nodes that are equally fast: nothing waits to be stolen, and nothing balances.
    """
    return _map_sliced("push_map_sliced", strategy.eager, tasks, function, items)


def par_map_sliced_ft(tasks: int, function: Callable[[A], B], items: Iterable[A]) -> list[B]:
    """As `par_map_sliced`, supervised even with `--unreliable` (`parMapSlicedFT`)."""
    return _map_sliced("par_map_sliced_ft", strategy.lazy_supervised, tasks, function, items)


def push_map_sliced_ft(tasks: int, function: Callable[[A], B], items: Iterable[A]) -> list[B]:
    """As `push_map_sliced`, supervised even with `--unreliable` (`pushMapSlicedFT`)."""
    return _map_sliced("push_map_sliced_ft", strategy.eager_supervised, tasks, function, items)


def _map_sliced(name: str, schedule: Strategy, tasks: int, function: Callable[[A], B], items: Iterable[A]) -> list[B]:
    check_count(name, "tasks", tasks)
    check_callable(name, "function", function)
    slices = slice_list(tasks, check_items(name, "items", items))
    # One object for all tasks is pickled once, as their code; an argument would be pickled with each of them.
    task = partial(map_slice, function)
    mark_skeleton(task, function)
    futures = schedule(task, slices)
    results = [get(future) for future in futures]
    return unslice(results)


def map_slice(function: Callable[[A], B], items: list[A]) -> list[B]:
    """The task: one slice, item by item."""
    return [function(item) for item in items]
