"""loky's tests of its executors, with ours in the place of both, and inverted where a crash must break loky's."""

from __future__ import annotations

from tests.foreign.suite import Suite

VERSION = "3.7.0"

SUITE = Suite(
    name="loky",
    title="loky",
    version=VERSION,
    tests=("tests/test_process_executor_loky.py", "tests/test_reusable_executor.py"),
    ci=("tests/test_reusable_executor.py::TestExecutorDeadLock",),
    plugin="for_loky",
    plugged="`ProcessPoolExecutor` and `get_reusable_executor`; `TaskCrashedError` is its `TerminatedWorkerError`, and "
    "an executor counts as broken if a call of it has crashed and it still answers",
    test_s_max=60.0,
    requires=(f"loky=={VERSION}", "numpy==2.4.6"),
    source=f"loky=={VERSION}",
)
