"""A batch of joblib's calls, as a scheduler runs it.

What lives here: a function that can be imported without joblib.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def run_batch(batch: Callable[[], T]) -> T:
    """The task: one batch."""
    return batch()
