"""Scopes in which something fails, on real processes; what is to come out of them is said in `tests/api/scopes.py`."""

from __future__ import annotations

import pytest

from tests.api import scopes
from tests.e2e.harness import Cluster, result_of


@pytest.mark.parametrize("nodes", [1, 2])
def test_failure_counts_once_in_the_program_and_in_a_task_near_and_far(
    cluster: Cluster, nodes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", scopes.__file__.removesuffix("/tests/api/scopes.py"))
    assert result_of(cluster.run("--local-nodes", nodes, "--cores", 2, scopes.__file__)) == "right"
