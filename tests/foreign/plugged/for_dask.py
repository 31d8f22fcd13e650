"""A plugin for the pytest that runs dask's tests: whatever names no scheduler is computed by our executor."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import hdphrs


@pytest.fixture(scope="session", autouse=True)
def computed_by_hdphrs() -> Iterator[None]:
    """One executor for all tests."""
    import dask

    with hdphrs.Executor(max_workers=2) as executor, dask.config.set(scheduler=executor):
        yield
