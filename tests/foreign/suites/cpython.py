"""CPython's own tests of executors, those of the Python that runs this, with ours as the executor of processes.

What lives here: nothing of what `tests/executor/test_cpython.py` changes of them: their seconds are theirs.
"""

from __future__ import annotations

from tests.executor import cpython
from tests.foreign.suite import Suite

PYTHON = cpython.VERSION


SINGLE = tuple(f"{folder}/test_concurrent_futures.py" for folder in cpython.path())
"""Where Debian has it, for Pythons that come without; linked, since that folder has a whole standard library beside."""

WHERE = ("test_concurrent_futures.py",) if SINGLE else ("--pyargs", "test.test_concurrent_futures")

CASES = ("-k", "ProcessPoolSpawn")
"""Those of threads concern the standard library alone; those of other start methods are the same thrice."""

SUITE = Suite(
    name="cpython",
    title="CPython's `test_concurrent_futures`",
    version=PYTHON,
    links=SINGLE,
    environ={"HDPHRS_FOREIGN_TESTS": str(cpython.DEBIAN)},
    tests=(*WHERE, *CASES),
    ci=(*WHERE, "-k", "ProcessPoolSpawn and (Deadlock or Shutdown or Initializer or ressources)"),
    plugin="for_cpython",
    plugged="`ProcessPoolExecutor`, also in scripts; one start method of three",
)
