"""What holds for all tests."""

from __future__ import annotations

import signal

import pytest


@pytest.fixture(autouse=True, scope="session")
def ctrl_c_reaches_children() -> None:
    """A shell starts what runs in the background with SIGINT ignored, and children inherit that."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
