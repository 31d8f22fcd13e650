"""Cutting a list into pieces, and putting it together again.

What lives here: `slice_list` and `unslice`, the two ends of a sliced map (Listing 3 of the paper), `chunks_of` and
`blocks`.  None of them knows about tasks.

A slice takes every n-th item, so that neighbours, which tend to cost about the same, end up in different slices: five
items in three slices are `[[e1, e4], [e2, e5], [e3]]`.  A chunk takes neighbours: in chunks of three they are `[[e1,
e2, e3], [e4, e5]]`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain, pairwise, zip_longest
from typing import TypeVar

T = TypeVar("T")

_HOLE = object()
"""Pads the shorter slices while they are transposed; never leaves this module."""


def slice_list(count: int, items: Sequence[T]) -> list[list[T]]:
    """Deal `items` out to at most `count` slices, as cards to players (the paper's `slice`).

    There are `min(count, len(items))` slices: none of them is empty, so none becomes a task without work.

    Args:
        count: how many slices, at least 1.
        items: what to deal out; not changed.
    """
    return [list(items[first::count]) for first in range(min(count, len(items)))]


def unslice(slices: Iterable[list[T]]) -> list[T]:
    """Put slices together again: `unslice(slice_list(n, items)) == items` (`concat . transpose`)."""
    rounds = zip_longest(*slices, fillvalue=_HOLE)
    return [item for item in chain.from_iterable(rounds) if item is not _HOLE]  # type: ignore[misc]


def chunks_of(size: int, items: Sequence[T]) -> list[list[T]]:
    """Neighbours, `size` of them together, in the last chunk what is left."""
    return [list(items[first : first + size]) for first in range(0, len(items), size)]


def blocks(count: int, items: Sequence[T]) -> list[list[T]]:
    """Neighbours, in at most `count` lists of about the same length, none of them empty."""
    if not items:
        return []
    count = min(count, len(items))
    size, larger = divmod(len(items), count)
    ends = [size * number + min(number, larger) for number in range(count + 1)]
    return [list(items[first:end]) for first, end in pairwise(ends)]
