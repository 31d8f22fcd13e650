"""dask's tests of bags, arrays, delayed calls and processes, with `scheduler=hdphrs.Executor()` as the default."""

from __future__ import annotations

from tests.foreign.suite import Suite

VERSION = "2026.8.0"

SUITE = Suite(
    name="dask",
    title="dask",
    version=VERSION,
    tests=("--pyargs", "dask.bag", "dask.array", "dask.tests.test_delayed", "dask.tests.test_multiprocessing"),
    ci=("--pyargs", "dask.bag", "dask.tests.test_delayed", "-k", "not groupby and not processes"),
    plugin="for_dask",
    plugged="the default scheduler, `hdphrs.Executor(max_workers=2)`",
    requires=(f"dask[array]=={VERSION}", "numpy==2.4.6", "pytest-mock==3.17.0"),
)
