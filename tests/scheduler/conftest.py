"""A real scheduler process for each test that asks for a node."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from hdphrs.api import future as fast
from hdphrs.api.options import use
from tests.scheduler.test_export import Desk, assigned
from tests.scheduler.test_process import FakeNode


@pytest.fixture
def desk(monkeypatch: pytest.MonkeyPatch) -> Iterator[Desk]:
    monkeypatch.setattr(use, "begun", False)  # another test of this process may have used options of tasks
    fast.here.task = assigned(0)
    yield Desk()
    fast.here.task = None
    fast.sparks.clear()


@pytest.fixture
def node() -> Iterator[FakeNode]:
    node = FakeNode()
    yield node
    node.process.kill()
    os.close(node.process.errors)
    node.page.close()
