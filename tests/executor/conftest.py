"""One node for all tests of executors that need none of their own."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest

from hdphrs.api.future import state
from hdphrs.program import attach
from hdphrs.program.embedded import EmbeddedNode
from tests.executor import cpython

SLOTS = 5
"""As many as CPython's tests want workers."""


@pytest.fixture(scope="package")
def shared_node() -> Iterator[EmbeddedNode]:
    """A node to which this process is attached, as a program is under `hdphrs run`: executors use it and leave it."""
    sys.path += cpython.path()
    node = EmbeddedNode(SLOTS)
    attach._current = attach._add(node.port, node)
    state.port = attach.attach()
    yield node
    attach.shutdown()
    del sys.path[len(sys.path) - len(cpython.path()) :]
