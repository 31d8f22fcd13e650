"""A real scheduler process for each test that asks for a node."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from tests.scheduler.test_process import FakeNode


@pytest.fixture
def node() -> Iterator[FakeNode]:
    node = FakeNode()
    yield node
    node.process.kill()
    os.close(node.process.errors)
    node.page.close()
