"""Placement: which nodes the eager strategies choose, seen through a port that only takes notes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import hdphrs
from hdphrs.api.future import Future, state
from hdphrs.api.sequential import SequentialPort
from hdphrs.protocol.tasks import NodeId
from hdphrs.skeletons import (
    fork_map,
    par_map_two_level,
    push_divide_and_conquer,
    push_map_sliced,
    push_map_sliced_ft,
    push_map_two_level,
)


class Cluster(SequentialPort):
    """Several nodes in one process: a placed task runs at once, and takes its node for its own."""

    def __init__(self, count: int) -> None:
        super().__init__()
        self.count = count
        self.here = NodeId(0)
        self.placed: list[NodeId] = []
        self.supervised: list[bool | None] = []

    def place(
        self, node: NodeId, function: Callable[..., Any], args: tuple[Any, ...], supervised: bool | None
    ) -> Future[Any]:
        self.placed.append(node)
        self.supervised.append(supervised)
        caller, self.here = self.here, node
        try:
            return self.spawn(function, args, {}, supervised)
        finally:
            self.here = caller

    @property
    def here(self) -> NodeId:
        """The caller's node."""
        return self.roster.ids[0]

    @here.setter
    def here(self, node: NodeId) -> None:
        others = [other for other in range(self.count) if other != node]
        self.roster.hear([[one, "localhost", 1] for one in (node, *others)])


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with hdphrs.sequential():
        state.port = Cluster(4)
        yield state.port


def test_r19_pushed_slices_go_round_all_nodes_beginning_with_the_callers(cluster: Cluster) -> None:
    cluster.here = NodeId(2)
    push_map_sliced(6, abs, range(6))
    assert cluster.placed == [2, 0, 1, 3, 2, 0]


def test_r19_each_level_of_a_pushed_binary_tree_is_spread_evenly_over_all_nodes(cluster: Cluster) -> None:
    """R19: the caller's node gets its share too, and the left half of the tree does not stay with it."""
    levels: dict[int, Counter[NodeId]] = {}

    def halves(size: int) -> list[int]:
        return [size // 2, size // 2]

    def note(size: int) -> bool:
        levels.setdefault(size, Counter())[cluster.here] += 1
        return size == 1

    def add(_: int, parts: list[int]) -> int:
        return sum(parts)

    assert push_divide_and_conquer(note, halves, add, abs, 64) == 64
    assert levels[32] == {0: 1, 1: 1}
    for size in (16, 8, 4, 2, 1):
        assert levels[size] == dict.fromkeys(range(4), 64 // size // 4)


def test_only_ft_skeletons_ask_for_supervision_whatever_the_mode(cluster: Cluster) -> None:
    push_map_sliced(2, abs, range(2))
    push_map_sliced_ft(2, abs, range(2))
    assert cluster.supervised == [None, None, True, True]


def test_forked_tasks_stay_on_the_callers_node(cluster: Cluster) -> None:
    cluster.here = NodeId(2)
    fork_map(abs, range(5))
    assert cluster.placed == [2] * 5


def test_a_map_on_two_levels_places_one_task_a_node_which_is_shared_there(cluster: Cluster) -> None:
    cluster.here = NodeId(1)
    assert push_map_two_level(abs, range(6)) == list(range(6))
    assert cluster.placed == [1, 1, 1, 0, 0, 0, 2, 2, 3, 3]
    cluster.placed.clear()
    assert par_map_two_level(abs, range(6)) == list(range(6))
    assert cluster.placed == [1, 0, 2, 3]
