"""CPython's own tests of executors pass with ours; `docs/executor.md` tells which are left out, and why."""

from __future__ import annotations

import pytest

from tests.executor import cpython

pytestmark = [pytest.mark.usefixtures("shared_node"), pytest.mark.slow]

THEIRS = cpython.load()


class _Ours:
    """What their mixins ask of a class."""

    executor_type = cpython.BriefExecutor


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


if THEIRS:
    globals().update(_cases())
else:

    def test_theirs_are_here() -> None:
        pytest.skip(cpython.MISSING)
