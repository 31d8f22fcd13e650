"""Every property of every skeleton, on clusters of real processes, one of which is killed."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.harness import Cluster, result_of
from tests.e2e.harness import cluster as open_cluster

PROGRAM = Path(__file__).with_name("on_nodes.py")


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    """A run of real processes, none of which may be left at the end."""
    with open_cluster(tmp_path) as run:
        yield run


@pytest.mark.slow
@pytest.mark.parametrize("nodes", [1, 2, 3, 4])
def test_every_property_holds_while_a_node_is_killed(
    cluster: Cluster, nodes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(PROGRAM.parents[2]))  # the program imports its properties
    deaths = 1 if nodes > 1 else 0
    process = cluster.start("--local-nodes", nodes, "--cores", 2 if nodes == 1 else 1, PROGRAM, nodes - deaths)
    assert process.stdout is not None
    assert process.stdout.readline() == f"begun {nodes}\n"
    for victim in cluster.nodes()[1 : 1 + deaths]:
        os.kill(victim, signal.SIGKILL)
    assert result_of(cluster.finish()) == f"{nodes - deaths} nodes"
