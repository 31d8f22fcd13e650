"""Tasks of a fixed processor time take at least that."""

from __future__ import annotations

import pytest

from benchmarks.overhead import CORES, Shape, run


@pytest.mark.parametrize("shape", ["flat", "tree"])
def test_the_tasks_take_their_time(shape: str) -> None:
    done = run(Shape(shape, 20, 2.0, 0.0), "--unreliable")
    assert float(done.last_line) >= 20 * 2e-3 / CORES
    assert done.cpu_s >= 20 * 2e-3
