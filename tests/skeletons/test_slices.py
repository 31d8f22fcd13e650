"""Slicing: Listing 3 of the paper."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from hdphrs.skeletons.slices import blocks, slice_list, unslice

counts = st.integers(min_value=1, max_value=40)
lists = st.lists(st.integers(), max_size=60)


def test_five_items_in_three_slices_are_those_of_the_paper() -> None:
    assert slice_list(3, ["e1", "e2", "e3", "e4", "e5"]) == [["e1", "e4"], ["e2", "e5"], ["e3"]]


@settings(deadline=None, derandomize=True)
@given(count=counts, items=lists)
def test_slices_put_together_are_the_items(count: int, items: list[int]) -> None:
    assert unslice(slice_list(count, items)) == items


@settings(deadline=None, derandomize=True)
@given(count=counts, items=lists)
def test_slices_differ_in_length_by_at_most_one_and_none_is_empty(count: int, items: list[int]) -> None:
    lengths = [len(part) for part in slice_list(count, items)]
    assert len(lengths) == min(count, len(items))
    assert all(lengths)
    assert not lengths or max(lengths) - min(lengths) <= 1


def test_items_that_are_none_survive() -> None:
    assert unslice(slice_list(2, [None, None, None])) == [None, None, None]


@settings(deadline=None, derandomize=True)
@given(count=counts, items=lists)
def test_blocks_are_neighbours_differ_in_length_by_at_most_one_and_none_is_empty(count: int, items: list[int]) -> None:
    parts = blocks(count, items)
    assert [item for part in parts for item in part] == items
    assert len(parts) == min(count, len(items))
    assert all(parts)
    assert not parts or max(map(len, parts)) - min(map(len, parts)) <= 1
