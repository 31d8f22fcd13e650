"""What holds for all tests."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

HERE = Path(__file__).parent
PROCESSES = ("benchmarks", "cli", "cluster", "docs", "e2e", "executor", "scheduler")
"""Folders of tests that start runs of real processes, and wait for them; so do all with the fixture `cluster`."""


@pytest.hookimpl(tryfirst=True)  # xdist reads the marks
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """With several workers, no two runs of real processes share the machine, but they share it with pure tests."""
    for item in items:
        has_cluster = "cluster" in getattr(item, "fixturenames", ())
        if has_cluster or any(item.path.is_relative_to(HERE / folder) for folder in PROCESSES):
            item.add_marker(pytest.mark.xdist_group("processes"))


@pytest.fixture(autouse=True, scope="session")
def ctrl_c_reaches_children() -> None:
    """A shell starts what runs in the background with SIGINT ignored, and children inherit that."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
