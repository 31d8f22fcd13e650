"""A plugin for the pytest that runs another project's tests: it writes down each outcome as soon as it is known.

What lives here: the events, a line of JSON each, from which the runner knows which test took its process down or hung;
the limit for one test; and what is not run (again).  It knows of no suite.
"""

from __future__ import annotations

import faulthandler
import json
import os
import re
import time
from typing import Any

import pytest

EVENTS = "HDPHRS_FOREIGN_EVENTS"
"""Names the file of the events."""
LEFT_OUT = "HDPHRS_FOREIGN_LEFT_OUT"
"""Names a file with the names of tests that are not run, a line each; one without parameters stands for all of them."""
LIMIT = "HDPHRS_FOREIGN_TEST_S_MAX"

WHY_CHARS_MAX = 400

_STACKS = os.fdopen(os.dup(2), "w")
"""The standard error, which pytest redirects while a test runs."""

_outcomes: dict[str, dict[str, Any]] = {}


def name_of(nodeid: str) -> str:
    """The test's name, wherever its project is installed."""
    path, mark, rest = nodeid.partition("::")
    path = re.sub(r"^.*/source/[^/]+/", "", "/" + path.split("site-packages/")[-1]).lstrip("/")
    path = re.sub(r"^(\.\./)+", "", path)
    path = re.sub(r"^.*/lib/python[0-9.]+/test/", "", "/" + path).lstrip("/")
    path = re.sub(r"^test_concurrent_futures(/\w+)?\.py$", "test_concurrent_futures", path)  # a package since 3.12
    return path + mark + rest.replace("\n", "\\n")


def without_parameters(name: str) -> str:
    """The name of the function."""
    return name.split("[")[0]


def _write(event: dict[str, Any]) -> None:
    with open(os.environ[EVENTS], "a") as file:
        file.write(json.dumps(event) + "\n")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what is not to be run, and what has been run by an earlier process."""
    with open(os.environ[LEFT_OUT]) as file:
        left_out = set(file.read().splitlines())
    done: set[str] = set()
    if os.path.exists(os.environ[EVENTS]):
        with open(os.environ[EVENTS]) as file:
            done = {json.loads(line)["test"] for line in file}
    kept: list[pytest.Item] = []
    dropped: list[pytest.Item] = []
    for item in items:
        name = name_of(item.nodeid)
        away = name in done or name in left_out or without_parameters(name) in left_out
        (dropped if away else kept).append(item)
    items[:] = kept
    config.hook.pytest_deselected(items=dropped)


def pytest_collectreport(report: pytest.CollectReport) -> None:
    """A module that cannot be imported is a failure of its own."""
    if report.failed:
        _write({"test": name_of(report.nodeid), "outcome": "failed", "seconds": 0.0, "why": _last(report.longreprtext)})


def pytest_runtest_logstart(nodeid: str) -> None:
    """From here on the test is running."""
    _write({"test": name_of(nodeid), "outcome": "started"})
    _outcomes[nodeid] = {"outcome": "passed", "seconds": 0.0, "why": ""}
    faulthandler.dump_traceback_later(float(os.environ[LIMIT]), exit=True, file=_STACKS)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """One of setup, call and teardown."""
    found = _outcomes[report.nodeid]
    found["seconds"] += report.duration
    if report.failed:
        found.update(outcome="failed", why=f"{report.when}: {_last(report.longreprtext)}")
    elif report.skipped and found["outcome"] == "passed":
        found.update(outcome="skipped", why=_reason(report))


def pytest_runtest_logfinish(nodeid: str) -> None:
    """Its outcome is known."""
    faulthandler.cancel_dump_traceback_later()
    found = _outcomes.pop(nodeid)
    found["seconds"] = round(found["seconds"], 3)
    _write({"test": name_of(nodeid), **found, "at": round(time.time(), 1)})


def _reason(report: pytest.TestReport) -> str:
    """Why a suite skips a test of its own, or expects it to fail."""
    if hasattr(report, "wasxfail"):
        return f"expected to fail: {report.wasxfail}".removesuffix(": ")
    said = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longreprtext
    return said.removeprefix("Skipped: ")[:WHY_CHARS_MAX]


def _last(text: str) -> str:
    """What went wrong, out of a traceback as Python writes it: what comes after the last line of code."""
    said: list[str] = []
    for line in reversed(text.strip().splitlines()):
        if line.startswith("  ") and said:
            break
        said.append(line.strip())
    return " | ".join(reversed(said))[:WHY_CHARS_MAX]
