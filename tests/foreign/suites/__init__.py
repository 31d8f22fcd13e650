"""The suites, a module each."""

from __future__ import annotations

from tests.foreign.suite import Suite
from tests.foreign.suites import cpython, dask, joblib, loky, mpi4py, programs, sklearn

SUITES: dict[str, Suite] = {
    module.SUITE.name: module.SUITE for module in (programs, cpython, mpi4py, loky, joblib, dask, sklearn)
}
"""By name, in the order in which they are run."""
