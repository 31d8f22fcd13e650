"""A plugin for the pytest that runs joblib's own tests: they try our backend wherever they try loky by name."""

from __future__ import annotations

import pytest

NAME = "hdphrs"


@pytest.hookimpl(tryfirst=True)
def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Add our backend to every list of backends."""
    for mark in metafunc.definition.iter_markers("parametrize"):
        values = mark.args[1]
        if isinstance(values, list) and "loky" in values and NAME not in values:
            values.append(NAME)
