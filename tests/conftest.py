"""What holds for all tests."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import settings

from hdphrs.wire.reloads import Notice, Reloads, reloads

settings.register_profile("hdphrs", deadline=None)  # how long an example takes depends on how busy the machine is
settings.load_profile("hdphrs")

RUNS = ("tests/cluster/", "tests/compiled/", "tests/e2e/")
"""Tests that start whole clusters, kill some, and watch the clock: no two of them share the machine."""

UNHURRIED = (
    "tests/benchmarks/",
    "tests/cli/",
    "tests/docs/",
    "tests/e2e/test_backpressure.py",
    "tests/e2e/test_completion.py",
    "tests/e2e/test_contexts.py",
    "tests/e2e/test_determinism.py",
    "tests/e2e/test_examples.py",
    "tests/e2e/test_executor.py",
    "tests/e2e/test_large_data.py",
    "tests/e2e/test_main_module.py",
    "tests/e2e/test_output.py",
    "tests/e2e/test_places.py",
    "tests/e2e/test_programs.py",
    "tests/e2e/test_reloads.py",
    "tests/e2e/test_surroundings.py",
    "tests/e2e/test_users_things.py",
    "tests/executor/",
    "tests/foreign/",
    "tests/scheduler/",
    "tests/skeletons/test_collect.py",
    "tests/skeletons/test_failing.py",
    "tests/skeletons/test_on_nodes.py",
    "tests/skeletons/test_search_on_nodes.py",
)
"""Tests that start processes, and hurry nobody: one at a time of each folder or module, beside one of the others."""


def _group(nodeid: str) -> str:
    """Tests of one group run one after the other; those that only compute are each a group.

    The groups are begun in the order of their sizes, so the many small ones keep both workers busy to the end.
    """
    unhurried = next((part for part in UNHURRIED if nodeid.startswith(part)), None)
    return unhurried or ("runs" if nodeid.startswith(RUNS) else nodeid)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> object:
    """With several workers."""
    from xdist.scheduler import LoadScopeScheduling

    scheduler = LoadScopeScheduling(config, log)
    scheduler._split_scope = _group
    return scheduler


@pytest.fixture(autouse=True)
def no_module_counts_as_loaded_again() -> Iterator[None]:
    """The text of those that were would go with each function that later tests send."""
    yield
    if reloads.epoch or any(type(finder) is Notice for finder in sys.meta_path):
        sys.meta_path[:] = [finder for finder in sys.meta_path if type(finder) is not Notice]
        vars(reloads).update(vars(Reloads()))


@pytest.fixture(autouse=True, scope="session")
def signals_reach_children() -> None:
    """A shell starts what runs in the background with SIGINT ignored, nohup with SIGHUP, and children inherit that."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


@pytest.fixture(autouse=True, scope="session")
def no_advice() -> None:
    """What the runtime advises depends on how busy the machine is, so it would now and then be in the way."""
    os.environ["HDPHRS_ADVICE"] = "0"
