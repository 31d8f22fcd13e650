"""Whose exception is raised when several tasks fail: always the same one's, however long they take, and wherever."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from tests.e2e.harness import Cluster, result_of
from tests.e2e.harness import cluster as open_cluster
from tests.skeletons import failing
from tests.skeletons.conftest import Runner

PROGRAM = Path(__file__).with_name("failing.py")


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    """A run of real processes, none of which may be left at the end."""
    with open_cluster(tmp_path) as run:
        yield run


@pytest.mark.parametrize("seed", range(3))
def test_it_is_the_first_one_in_sequential_mode(runner: Runner, seed: int) -> None:
    failing.check(runner, Random(seed))


@pytest.mark.slow
@pytest.mark.parametrize("nodes", [1, 2, 3, 4])
def test_it_is_the_first_one_on_nodes_while_one_is_killed(
    cluster: Cluster, nodes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(PROGRAM.parents[2]))
    deaths = 1 if nodes > 1 else 0
    process = cluster.start("--local-nodes", nodes, "--cores", 2 if nodes == 1 else 1, PROGRAM, nodes - deaths, nodes)
    assert process.stdout is not None
    assert process.stdout.readline() == f"begun {nodes}\n"
    for victim in cluster.nodes()[1 : 1 + deaths]:
        os.kill(victim, signal.SIGKILL)
    assert result_of(cluster.finish()) == f"{nodes - deaths} nodes"
