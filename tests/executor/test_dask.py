"""Dask computes its graphs with an executor, where it is installed."""

from __future__ import annotations

import os

import pytest

import hdphrs

dask = pytest.importorskip("dask", reason="dask is not installed")

pytestmark = [pytest.mark.usefixtures("shared_node"), pytest.mark.slow]


def test_dask_computes_a_graph_in_an_executor() -> None:
    squares = [dask.delayed(pow)(n, 2) for n in range(20)]
    place = dask.delayed(os.getpid)()
    with hdphrs.Executor(max_workers=3) as executor:
        total, pid = dask.compute(dask.delayed(sum)(squares), place, scheduler=executor)
        with pytest.raises(ZeroDivisionError):
            dask.compute(dask.delayed(divmod)(1, 0), scheduler=executor)
    assert total == sum(n * n for n in range(20))
    assert pid != os.getpid()
