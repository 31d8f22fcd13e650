"""scikit-learn's tests that ask for jobs, with ours as the default backend of joblib."""

from __future__ import annotations

from tests.foreign.suite import Suite

VERSION = "1.9.1"

NAMED = "n_jobs or parallel or joblib"
"""Tests that are named after it."""

SUITE = Suite(
    name="sklearn",
    title="scikit-learn",
    version=VERSION,
    tests=("--pyargs", "sklearn", "-k", NAMED),
    ci=("--pyargs", "sklearn.ensemble", "sklearn.model_selection", "sklearn.utils", "-k", NAMED),
    plugin="for_sklearn",
    plugged="the default backend of joblib; tests named after jobs, parallelism or joblib",
    requires=(f"scikit-learn=={VERSION}", "joblib==1.6.0", "numpy==2.4.6"),
)
