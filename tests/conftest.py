"""What holds for all tests."""

from __future__ import annotations

import os
import signal
from typing import Any

import pytest
from hypothesis import settings

settings.register_profile("hdphrs", deadline=None)  # how long an example takes depends on how busy the machine is
settings.load_profile("hdphrs")

PROCESSES = (
    "tests/benchmarks/",
    "tests/cli/",
    "tests/cluster/",
    "tests/docs/",
    "tests/e2e/",
    "tests/executor/",
    "tests/scheduler/",
    "tests/skeletons/test_collect.py",
    "tests/skeletons/test_failing.py",
    "tests/skeletons/test_on_nodes.py",
    "tests/skeletons/test_search_on_nodes.py",
)
"""Tests that start runs of real processes, and wait for them."""


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> object:
    """With several workers, no two runs of real processes share the machine, but they share it with pure tests."""
    from xdist.scheduler import LoadScopeScheduling

    scheduler = LoadScopeScheduling(config, log)
    scheduler._split_scope = lambda nodeid: "processes" if nodeid.startswith(PROCESSES) else nodeid
    return scheduler


@pytest.fixture(autouse=True, scope="session")
def signals_reach_children() -> None:
    """A shell starts what runs in the background with SIGINT ignored, nohup with SIGHUP, and children inherit that."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


@pytest.fixture(autouse=True, scope="session")
def no_advice() -> None:
    """What the runtime advises depends on how busy the machine is, so it would now and then be in the way."""
    os.environ["HDPHRS_ADVICE"] = "0"
