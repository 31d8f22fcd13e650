"""One node for all tests of executors that need none of their own."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest

from hdphrs.api.future import state
from hdphrs.api.port import Unattached
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
    node.port.start()
    attach._attached, attach._embedded, state.port = node.port, node, node.port
    yield node
    attach._attached, attach._embedded, state.port = None, None, Unattached(attach.attach)
    node.end()
    del sys.path[len(sys.path) - len(cpython.path()) :]
