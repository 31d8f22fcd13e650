"""Whole clusters over the memory transport, in virtual time: drivers, cores, membership, recovery."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import pytest

from tests.node.virtual import Happening, VirtualCluster, run_virtually, tree

LEVELS = 7
COST_S = 0.1
WORK_S = (2 ** (LEVELS + 1) - 1) * COST_S


def compute(cluster: VirtualCluster, happenings: Callable[[], Sequence[Happening]] = list) -> tuple[int, float]:
    """Compute the tree, while things happen; its value and the virtual seconds it took."""

    async def main() -> tuple[int, float]:
        return await cluster.compute(tree(LEVELS, COST_S), happenings)

    return run_virtually(main, cluster.seed)


@pytest.mark.parametrize(("nodes", "cores"), [(1, 1), (1, 4), (4, 1), (3, 2), (16, 1)])
def test_idle_cores_of_all_nodes_share_the_work(nodes: int, cores: int) -> None:
    value, took_s = compute(VirtualCluster(nodes, cores=cores))
    assert value == 2**LEVELS
    assert took_s < 1.15 * WORK_S / (nodes * cores) + LEVELS * COST_S


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("victims", [[1], [1, 2], [1, 2, 3]])
def test_deaths_of_any_nodes_but_the_root_leave_the_answer_right(victims: list[int], seed: int) -> None:
    cluster = VirtualCluster(4, seed=seed)

    def deaths() -> list[Happening]:
        return [(WORK_S / 4 * (seed + i + 1) / 8, partial(cluster.kill, victim)) for i, victim in enumerate(victims)]

    value, took_s = compute(cluster, deaths)
    assert value == 2**LEVELS
    assert cluster.nodes[0].driver.core.counters["deaths_seen"] == len(victims)
    assert took_s < 2 * WORK_S


def between(cluster: VirtualCluster, change: str, victim: int, others: Sequence[int]) -> Callable[[], None]:
    """Cut or heal the links of `victim` to `others`, by the ids that they have now."""
    ids = [node.id for node in cluster.nodes]

    def act() -> None:
        for other in others:
            getattr(cluster.network, change)(ids[victim], ids[other])

    return act


def test_a_node_that_nobody_hears_for_too_long_is_fenced_and_joins_again_as_a_new_one() -> None:
    cluster = VirtualCluster(3, detect_after_s=1.0)
    value, _ = compute(
        cluster,
        lambda: [(2.0, between(cluster, "cut_one_way", 1, (0, 2))), (4.0, between(cluster, "heal", 1, (0, 2)))],
    )
    assert value == 2**LEVELS
    assert cluster.nodes[1].lives == 2
    assert cluster.nodes[1].id > 2


def test_a_node_that_hears_nothing_of_the_root_for_too_long_ends_itself() -> None:
    cluster = VirtualCluster(3, detect_after_s=1.0)
    value, _ = compute(cluster, lambda: [(2.0, between(cluster, "cut", 1, (0, 2)))])
    assert value == 2**LEVELS
    halt = cluster.nodes[1].driver.halt
    assert halt is not None
    assert halt.reason == "it has lost the root node"
    assert not halt.rejoin


def test_r23_a_link_between_two_live_nodes_that_breaks_and_heals_costs_nobody_their_life() -> None:
    """Hole R23: what was under way arrives when the link is made again."""
    cluster = VirtualCluster(3, detect_after_s=1.0)
    compute(
        cluster,
        lambda: [
            (2.0, between(cluster, "cut_one_way", 1, (0, 2))),
            (3.0, partial(cluster.nodes[2].driver.spread, b"search", 1.0, b"one")),
            (4.0, between(cluster, "heal", 1, (0, 2))),
        ],
    )
    assert cluster.nodes[1].lives == 2
    assert cluster.nodes[1].crew.board.all() == [(b"search", 1.0, b"one")]
