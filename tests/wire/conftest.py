"""What code does to the process that runs it is undone after each test."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def own_limits(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(sys, "path", [*sys.path])
    limit = sys.getrecursionlimit()
    yield
    sys.setrecursionlimit(limit)
