"""CPython's own tests of executors pass with ours; `docs/executor.md` tells which are left out, and why."""

from __future__ import annotations

import re
from fnmatch import fnmatch
from pathlib import Path

import pytest

from tests.executor import cpython

pytestmark = [pytest.mark.usefixtures("shared_node"), pytest.mark.slow]

THEIRS = cpython.load()


class _Ours:
    """What their mixins ask of a class."""

    executor_type = cpython.BriefExecutor

    def create_event(self) -> cpython.FileEvent:
        """Of newer versions: what their calls wait for."""
        event = cpython.FileEvent()
        self.addCleanup(event.remove)  # type: ignore[attr-defined]
        return event


def _cases() -> dict[str, type]:
    """A case of ours for each mixin of theirs that concerns executors of any kind."""
    map_chunksize = THEIRS["ProcessPoolExecutorTest"].test_map_chunksize
    cancel_futures = THEIRS["ThreadPoolShutdownTest"].test_cancel_futures_wait_false
    cases = [
        ("TestExecutor", ["ExecutorTest", "ExecutorMixin"], {"test_map_chunksize": map_chunksize}),
        ("TestWait", ["WaitTests", "ExecutorMixin"], {}),
        ("TestAsCompleted", ["AsCompletedTests", "ExecutorMixin"], {}),
        ("TestShutdown", ["ExecutorShutdownTest", "ExecutorMixin"], {"test_cancel_futures_wait_false": cancel_futures}),
        ("TestInitializer", ["InitializerMixin"], {}),
        ("TestFailingInitializer", ["FailingInitializerMixin"], {}),
    ]
    return {
        name: type(name, (_Ours, *(THEIRS[mixin] for mixin in mixins), THEIRS["BaseTestCase"]), more)
        for name, mixins, more in cases
    }


def test_what_is_left_out_of_theirs_is_named_in_the_documents_with_its_reason() -> None:
    left_out = Path(__file__).parents[2].joinpath("docs", "executor.md").read_text().split("Left out:")[1]
    named = [name.split(".")[-1] for name in re.findall(r"`(\w+(?:\.\w+)*\*?)`", left_out)]
    run = {test for case in _cases().values() for test in dir(case)} if THEIRS else set()
    for name, case in THEIRS.items():
        for test in vars(case) if isinstance(case, type) else ():
            if test.startswith("test") and test not in run:
                assert any(fnmatch(test, one) or name == one for one in named), f"{name}.{test}"


if THEIRS:
    globals().update(_cases())
else:

    def test_theirs_are_here() -> None:
        pytest.skip(cpython.MISSING)
