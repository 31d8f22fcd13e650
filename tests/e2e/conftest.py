"""The cluster fixture of the end-to-end tests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.harness import Cluster
from tests.e2e.harness import cluster as open_cluster


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    """A run of real processes, none of which may be left at the end."""
    with open_cluster(tmp_path) as run:
        yield run
