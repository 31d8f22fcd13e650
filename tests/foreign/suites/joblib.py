"""joblib's whole suite, with ours as the default backend, and in every list of backends."""

from __future__ import annotations

from tests.foreign.suite import Suite

VERSION = "1.6.0"

SUITE = Suite(
    name="joblib",
    title="joblib",
    version=VERSION,
    tests=("--pyargs", "joblib.test"),
    ci=("--pyargs", "joblib.test.test_parallel", "-k", "hdphrs and not nested_loop and not nesting_level"),
    ci_left_out=("joblib/test/test_parallel.py::test_no_blas_crash_or_freeze_with_subprocesses",),
    plugin="for_joblib",
    plugged="the default backend, and one more in each list of backends",
    requires=(f"joblib=={VERSION}", "numpy==2.4.6", "psutil==7.2.2", "threadpoolctl==3.6.0", "pytest-asyncio==1.5.0"),
)
