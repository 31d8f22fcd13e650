"""The runners that every test of a skeleton is run by."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import hdphrs

Runner = Callable[..., Any]
"""`runner(main, *args)`: the value of `main(*args)`, run as the first task of a program."""


def run_sequentially(main: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Sequential mode, the oracle: every task in this process, in spawn order."""
    with hdphrs.sequential():
        return hdphrs.run(main, *args, **kwargs)


@pytest.fixture(scope="session", params=[run_sequentially])
def runner(request: pytest.FixtureRequest) -> Runner:
    """How to run a program; a cluster of processes is one more parameter."""
    chosen: Runner = request.param
    return chosen
