"""What several of the node's tests need."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from hdphrs.node.scheduler import Scheduler
from tests.node.processless import processless


@pytest.fixture
def scheduler() -> Iterator[Scheduler]:
    """One without a process."""
    with processless() as one:
        yield one
