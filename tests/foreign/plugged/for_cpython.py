"""A plugin for the pytest that runs CPython's tests; `startup.py` has put our executor into `concurrent.futures`."""

from __future__ import annotations

from .inverted import pytest_runtest_makereport

__all__ = ["pytest_runtest_makereport"]
