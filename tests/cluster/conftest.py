"""Fixtures for tests with real processes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.support import Start, runs


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Starts `hdphrs` with the given arguments; in the end nothing of it is left."""
    with runs(tmp_path) as starter:
        yield starter
