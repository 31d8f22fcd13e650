"""A map over the topology: first over the nodes, then over the cores of each (later HdpH).

What lives here: the two-level maps.  There are two distances here, within a node and between nodes; a map that stays
within the caller's is `fork_map` in `map.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Any, TypeVar, overload

import hdphrs.skeletons.strategy as strategy  # not from the package, which loads all of them
from hdphrs.api.calls import all_nodes
from hdphrs.api.future import state
from hdphrs.api.memo import mark_skeleton
from hdphrs.skeletons.arguments import check_callable, side_by_side
from hdphrs.skeletons.collect import collect
from hdphrs.skeletons.skeleton import Skeleton
from hdphrs.skeletons.slices import blocks
from hdphrs.skeletons.strategy import Strategy

A = TypeVar("A")
B = TypeVar("B")


@dataclass(eq=False, repr=False)
class MapTwoLevel(Skeleton):
    """A function over items, of which each node gets some neighbours, and makes a task of each."""

    within: Strategy
    """How a node shares out its items."""

    @overload
    def __call__(self, function: Callable[[A], B], items: Iterable[A], *, strict: bool = False) -> list[B]: ...
    @overload
    def __call__(
        self, function: Callable[..., B], items: Iterable[Any], /, *more: Iterable[Any], strict: bool = False
    ) -> list[B]: ...
    def __call__(
        self, function: Callable[..., B], items: Iterable[Any], *more: Iterable[Any], strict: bool = False
    ) -> list[B]:
        """Map `function` over `items`: one task a node, which is placed there and makes one task an item.

        As `par_map` otherwise.  For many small tasks on many nodes: the caller's node handles as many messages as there
        are nodes, the other nodes handle those for their own items.

        Args:
            function: idempotent; it is pickled once, not with every task.
            items: travel with the task of their node.
            more: further iterables, as for `par_map`.
            strict: as for `par_map`.

        Returns:
            The results in the order of the items.

        Raises:
            UsageError: as `par_map`.
            Exception: what `function` raised, of the first item for which it did.
        """
        check_callable(self.name, function=function)
        called, rows = side_by_side(self.name, function, items, more, strict)
        mark_skeleton(task := partial(map_within, self.within, called), function)
        with state.port.aside():
            return list(chain.from_iterable(collect(self.schedule(task, blocks(len(all_nodes()), list(rows))))))


def map_within(within: Strategy, function: Callable[[A], B], items: list[A]) -> list[B]:
    """The task of a node: each of its items in a task."""
    return collect(within(function, items))


par_map_two_level: MapTwoLevel = MapTwoLevel("par_map_two_level", strategy.eager, strategy.lazy)
"""Idle nodes steal from those that have more to do."""
push_map_two_level: MapTwoLevel = MapTwoLevel("push_map_two_level", strategy.eager, strategy.local)
"""Each node keeps to its items."""
