"""Merge sort with a merge that is parallel too: the longer half is cut in the middle, the other where that belongs."""

from __future__ import annotations

from bisect import bisect_left
from random import Random

import hdphrs

SIZES = {"small": 5_000, "large": 120_000}

SORT_CUT_OFF = 600
MERGE_CUT_OFF = 1_500


def numbers(size: int) -> list[int]:
    """The same for everybody, with repetitions."""
    chance = Random(size)
    return [chance.randrange(size // 2) for _ in range(size)]


def merge(left: list[int], right: list[int]) -> list[int]:
    """One sorted list of two."""
    if len(left) < len(right):
        left, right = right, left
    if len(left) < MERGE_CUT_OFF:
        merged = []
        at = 0
        for number in left:
            while at < len(right) and right[at] < number:
                merged.append(right[at])
                at += 1
            merged.append(number)
        return merged + right[at:]
    middle = len(left) // 2
    cut = bisect_left(right, left[middle])
    low = hdphrs.spawn(merge, left[:middle], right[:cut])
    high = merge(left[middle:], right[cut:])
    return hdphrs.get(low) + high


def sort(items: list[int]) -> list[int]:
    """By four sorts and three merges."""
    if len(items) < SORT_CUT_OFF:
        return sorted(items)
    quarter = len(items) // 4
    parts = [items[:quarter], items[quarter : 2 * quarter], items[2 * quarter : 3 * quarter], items[3 * quarter :]]
    first, second, third, fourth = map(hdphrs.get, [hdphrs.spawn(sort, part) for part in parts])
    low = hdphrs.spawn(merge, first, second)
    high = merge(third, fourth)
    return merge(hdphrs.get(low), high)


def main(size: int) -> list[int]:
    """The numbers in order."""
    return sort(numbers(size))


def answer(size: int) -> list[int]:
    """As Python sorts them."""
    return sorted(numbers(size))
