"""mpi4py's tests of its executors, with a package `mpi4py` of ours that has ours in their place: no MPI is needed."""

from __future__ import annotations

from tests.foreign.suite import Suite

VERSION = "4.1.2"

CASES = (
    "ProcessPoolInitTest",
    "ProcessPoolBootupTest",
    "ProcessPoolShutdownTest",
    "ProcessPoolWaitTest",
    "ProcessPoolAsCompletedTest",
    "ProcessPoolExecutorTest",
    "ProcessPoolSubmitTest",
    "ProcessPoolPickleTest",
)
"""The others test communicators, threads, and futures of their own."""

SUITE = Suite(
    name="mpi4py",
    title="mpi4py.futures",
    version=VERSION,
    tests=tuple(f"test_futures.py::{case}" for case in CASES),
    ci=tuple(
        f"test_futures.py::{case}" for case in CASES if "Pickle" in case or "Shutdown" in case or "Submit" in case
    ),
    plugin="for_mpi4py",
    plugged="`MPIPoolExecutor`, in a package `mpi4py` without MPI; the cases that use it",
    source=f"mpi4py=={VERSION}",
    folder="demo/futures",
)
