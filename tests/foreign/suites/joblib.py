"""joblib's whole suite, with ours as the default backend, and in every list of backends."""

from __future__ import annotations

from tests.foreign.suite import Suite

VERSION = "1.6.0"

SUITE = Suite(
    name="joblib",
    title="joblib",
    version=VERSION,
    tests=("--pyargs", "joblib.test"),
    ci=("--pyargs", "joblib.test.test_parallel"),
    plugin="for_joblib",
    plugged="the default backend, and one more in each list of backends",
    requires=(f"joblib=={VERSION}", "numpy==2.4.6", "psutil==7.2.2", "threadpoolctl==3.6.0", "pytest-asyncio==1.5.0"),
)
