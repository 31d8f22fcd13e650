"""Whole clusters over the memory transport, in virtual time: drivers, cores, membership, recovery."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from functools import partial

import pytest

from hdphrs.protocol.effects import Halt
from hdphrs.protocol.tasks import NodeId
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


def test_a_node_that_is_cut_off_both_ways_for_too_long_joins_again_when_it_can_and_works() -> None:
    cluster = VirtualCluster(3, detect_after_s=1.0)
    value, took_s = compute(
        cluster, lambda: [(2.0, partial(cluster.part, 1, (0, 2))), (5.0, partial(cluster.reunite, 1))]
    )
    assert value == 2**LEVELS
    assert cluster.nodes[1].lives == 2
    assert cluster.nodes[1].id == 3
    assert cluster.nodes[0].driver.core.counters["deaths_seen"] == 1
    assert took_s < 1.15 * WORK_S / 3 + 3.0 + LEVELS * COST_S  # two cores would take 12.75 s, three 8.5


def test_a_cut_off_node_does_not_come_back_before_it_can_and_gives_up_when_its_time_is_over() -> None:
    cluster = VirtualCluster(3, detect_after_s=1.0, rejoin_s=4.0)
    value, _ = compute(cluster, lambda: [(2.0, partial(cluster.part, 1, (0, 2)))])
    assert value == 2**LEVELS
    assert cluster.nodes[1].lives == 2
    assert cluster.nodes[1].driver.core.me is None
    assert cluster.nodes[1].gave_up is not None
    assert cluster.nodes[1].gave_up.startswith("this node could not join the root within 3.9")


def test_a_node_that_does_not_hear_the_root_which_hears_it_joins_again() -> None:
    """What the root hears of is a closed connection, and a port that refuses."""
    cluster = VirtualCluster(3, detect_after_s=1.0)

    def cut() -> None:
        cluster.network.cut_one_way(NodeId(0), NodeId(1))
        cluster.network.shut_out("host 1")

    def heal() -> None:
        cluster.network.heal(NodeId(0), NodeId(1))
        cluster.network.let_in("host 1")

    value, _ = compute(cluster, lambda: [(2.0, cut), (4.0, heal)])
    assert value == 2**LEVELS
    assert (cluster.nodes[1].lives, cluster.nodes[1].id) == (2, 3)
    assert cluster.nodes[0].driver.core.live_nodes() == [0, 2, 3]


def test_a_node_that_is_cut_off_twice_joins_again_twice() -> None:
    cluster = VirtualCluster(3, detect_after_s=0.5)
    value, _ = compute(
        cluster,
        lambda: [
            (1.0, partial(cluster.part, 1, (0, 2))),
            (2.0, partial(cluster.reunite, 1)),
            (4.0, partial(cluster.part, 1, (0, 2))),
            (5.0, partial(cluster.reunite, 1)),
        ],
    )
    assert value == 2**LEVELS
    assert (cluster.nodes[1].lives, cluster.nodes[1].id) == (3, 4)


def test_a_node_that_is_cut_off_while_it_joins_again_tries_once_more() -> None:
    cluster = VirtualCluster(3, detect_after_s=0.5)
    value, _ = compute(
        cluster,
        lambda: [
            (1.0, partial(cluster.part, 1, (0, 2))),
            (1.9, partial(cluster.network.cut_one_way, NodeId(0), NodeId(3))),  # its WELCOME will not arrive
            (2.0, partial(cluster.reunite, 1)),
            (2.1, partial(cluster.network.shut_out, "host 1")),
            (4.0, partial(cluster.network.heal, NodeId(0), NodeId(3))),
            (4.0, partial(cluster.network.let_in, "host 1")),
        ],
    )
    assert value == 2**LEVELS
    assert (cluster.nodes[1].lives, cluster.nodes[1].id) == (3, 4)
    assert cluster.nodes[0].driver.core.live_nodes() == [0, 2, 4]


def test_a_root_that_all_others_have_lost_goes_on_alone_and_gets_them_back() -> None:
    cluster = VirtualCluster(3, detect_after_s=0.5)
    value, _ = compute(
        cluster,
        lambda: [
            (1.0, partial(cluster.part, 1, (0,))),
            (1.0, partial(cluster.part, 2, (0,))),
            (3.0, partial(cluster.reunite, 1)),
            (3.0, partial(cluster.reunite, 2)),
        ],
    )
    assert value == 2**LEVELS
    assert sorted(node.id for node in cluster.nodes) == [0, 3, 4]
    assert cluster.nodes[0].driver.core.counters["deaths_seen"] == 2


def test_a_node_that_was_told_to_leave_and_is_cut_off_does_not_come_back() -> None:
    cluster = VirtualCluster(3, detect_after_s=0.5)
    value, _ = compute(
        cluster,
        lambda: [
            (1.0, partial(cluster.part, 1, (0, 2))),
            (1.1, lambda: cluster.nodes[1].driver.leave(100.0)),
            (3.0, partial(cluster.reunite, 1)),
        ],
    )
    assert value == 2**LEVELS
    assert cluster.nodes[1].lives == 1
    assert cluster.nodes[1].driver.halt == Halt("it has lost the root node")


def test_a_node_that_is_cut_off_when_the_run_ends_holds_nobody_up() -> None:
    cluster = VirtualCluster(3, detect_after_s=5.0)
    value, took_s = compute(cluster, lambda: [(1.0, partial(cluster.part, 1, (0, 2)))])
    assert value == 2**LEVELS
    halt = cluster.nodes[0].driver.halt
    assert halt is None or halt == Halt()
    assert took_s < WORK_S


@pytest.mark.parametrize("seed", range(6))
def test_outages_of_any_length_at_any_time_leave_the_answer_right_and_every_node_in_the_run(seed: int) -> None:
    chance = random.Random(seed)
    cluster = VirtualCluster(4, detect_after_s=0.5, seed=seed)

    def outages() -> list[Happening]:
        happenings: list[Happening] = []
        for number in (1, 2, 3):
            start_s = chance.uniform(0.0, 3.0)
            happenings.append((start_s, partial(cluster.part, number, range(number))))
            happenings.append((start_s + chance.uniform(0.1, 3.0), partial(cluster.reunite, number)))
        return happenings

    value, _ = compute(cluster, outages)
    assert value == 2**LEVELS
    assert sorted(cluster.nodes[0].driver.core.live_nodes()) == sorted(node.id for node in cluster.nodes)


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
