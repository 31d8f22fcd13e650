"""A batch of joblib's calls, as a scheduler runs it.

What lives here: what has to be done before the libraries are loaded that the batch needs, hence not joblib itself.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

THREADS_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS")

# There is a scheduler for each core already.  The libraries look at these when they are loaded.
for _name in THREADS_VARIABLES:
    os.environ.setdefault(_name, "1")


def run_batch(batch: Callable[[], T]) -> T:
    """The task: one batch."""
    return batch()
