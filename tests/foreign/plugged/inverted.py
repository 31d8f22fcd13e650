"""Crash tests, inverted: where another executor must be broken, ours has to answer.

What lives here: a test whose name is among `INVERTED` passes, too, if its outcome is one of our errors, which say what
took the process down or does not pickle, and if a call is answered afterwards.
"""

from __future__ import annotations

from collections.abc import Generator

import pytest

import hdphrs
from hdphrs.errors import CannotTravelError, TaskCrashedError

INVERTED = (
    "ExecutorDeadlockTest::",
    "::test_crashes[",
    "::test_in_callback_submit_with_crash[",
    "::test_informative_error_when",
)

ANSWERS_S_MAX = 60.0


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Look at the outcome of the test itself."""
    report = yield
    if report.when == "call" and report.failed and any(part in item.nodeid for part in INVERTED):
        error = call.excinfo and call.excinfo.value
        if isinstance(error, TaskCrashedError | CannotTravelError):
            with hdphrs.Executor(max_workers=2) as executor:
                assert executor.submit(pow, 2, 3).result(ANSWERS_S_MAX) == 8
            report.outcome, report.longrepr = "passed", None
    return report
