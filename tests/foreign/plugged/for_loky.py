"""A plugin for the pytest that runs loky's tests; `startup.py` has put our executor into its modules."""

from __future__ import annotations

from .inverted import pytest_runtest_makereport

__all__ = ["pytest_runtest_makereport"]
