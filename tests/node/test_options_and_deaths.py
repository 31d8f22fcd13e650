"""Options of tasks while nodes and schedulers die, on whole clusters in virtual time.

Each child of the tree has drawn options.  `VirtualCluster` checks what they promise: what is pinned starts nowhere
else, and a task has its value unless its options and the deaths explain why not.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import pytest
import trio
from hypothesis import given, settings
from hypothesis import strategies as st

from hdphrs.protocol.paths import show_path
from hdphrs.protocol.tasks import ROOT, NodeId, Task
from tests.node.virtual import FOREVER_S, Happening, VirtualCluster, run_virtually, tree

LEVELS = 5
COST_S = 0.1
LONG_S = 1e4
LIMIT_S = 0.5


def drawn(seed: int, nodes: int, task: Task) -> Task:
    """A task with options, the same for its path whenever it is made."""
    draw = random.Random(f"{seed} {show_path(task.path)}")
    options: dict[str, object] = {}
    if draw.random() < 0.4:
        options["pin"] = tuple(map(NodeId, draw.sample(range(nodes), draw.randint(1, nodes))))
    if draw.random() < 0.3:
        options["attempts"] = draw.choice([1, 2, 50])
    if task.name == "tree 0" and draw.random() < 0.2:
        options |= {"payload": f"0 {FOREVER_S}".encode(), "timeout_s": LIMIT_S}
    elif draw.random() < 0.3:
        options["timeout_s"] = LONG_S
    return replace(task, **options)  # type: ignore[arg-type]


def compute(cluster: VirtualCluster, happenings: Callable[[], Sequence[Happening]]) -> tuple[int, float]:
    async def main() -> tuple[int, float]:
        with trio.fail_after(LONG_S / 2):  # virtual seconds
            return await cluster.compute(tree(LEVELS, COST_S), happenings)

    return run_virtually(main, cluster.seed)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    seed=st.integers(0, 2**20),
    nodes=st.integers(1, 4),
    cores=st.integers(1, 2),
    node_deaths=st.dictionaries(st.integers(1, 3), st.floats(0.05, 4.0), max_size=3),
    scheduler_deaths=st.lists(st.tuples(st.integers(0, 3), st.floats(0.05, 4.0)), max_size=3),
)
def test_options_keep_their_promises_whoever_dies(
    seed: int,
    nodes: int,
    cores: int,
    node_deaths: dict[int, float],
    scheduler_deaths: list[tuple[int, float]],
) -> None:
    cluster = VirtualCluster(nodes, cores=cores, seed=seed)
    cluster.options = partial(drawn, seed, nodes)
    choose = random.Random(seed).choice

    def kill_scheduler(number: int) -> None:
        if cluster.nodes[number].id not in cluster.dead:
            cluster.kill_scheduler(number, choose)

    def deaths() -> list[Happening]:
        dying = [(at_s, partial(cluster.kill, number)) for number, at_s in node_deaths.items() if number < nodes]
        killed = [(at_s, partial(kill_scheduler, number)) for number, at_s in scheduler_deaths if number < nodes]
        return [*dying, *killed]

    value, took_s = compute(cluster, deaths)
    assert value == 2**LEVELS
    assert took_s < 100.0


@pytest.mark.parametrize("victims", [[1], [1, 2]])
def test_task_whose_pins_have_all_died_is_lost_and_one_with_a_live_pin_is_not(victims: list[int]) -> None:
    pins = {"tree 4": tuple(map(NodeId, victims)), "tree 3": (ROOT, NodeId(1))}
    cluster = VirtualCluster(3)
    cluster.options = lambda task: replace(task, pin=pins.get(task.name, ()))
    value, _ = compute(cluster, lambda: [(0.15, partial(cluster.kill, number)) for number in victims])
    assert value == 2**LEVELS
    assert cluster.lost == ["tree 4", "tree 4"]
