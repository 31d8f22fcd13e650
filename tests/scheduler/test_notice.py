"""From when on the tasks of a scheduler are isolated from each other; each in a process of its own."""

from __future__ import annotations

import subprocess
import sys

import pytest

BEGIN = """
import sys, types
from hdphrs.scheduler.notice import notice
from hdphrs.api import future
notice.install()
assert not future.isolates
assert "contextvars" not in sys.modules
"""

TELLING = {
    "contextvars": "import contextvars",
    "decimal": "import decimal",
    "a compiled module": "import numpy",
    "asyncio": "import asyncio",
    "trio": "import trio",
    "standard output": "sys.stdout = sys.stderr",
    "standard input": "import io; setattr(sys, 'stdin', io.StringIO())",
    "a redirection": "import contextlib, io\nwith contextlib.redirect_stderr(io.StringIO()): pass",
    "filters": "import warnings\nwith warnings.catch_warnings(): pass",
    "ours": "from hdphrs import sequential\nwith sequential(): pass",
    "a context that has come": "notice.received(__import__('pickle').dumps([]))",
}

SILENT = {
    "modules": "import json, sqlite3, random, datetime, logging, csv, hdphrs.public",
    "filters for all": "import warnings; warnings.simplefilter('error')",
    "other attributes of sys": "sys.ps1 = '> '; sys.stdout.write('')",
    "modules that are made": "assert type(type(sys)('new')) is types.ModuleType",
    "the class of sys": "assert isinstance(sys, types.ModuleType) and sys.maxsize > 0",
}


def isolates(code: str) -> bool:
    command = [sys.executable, "-c", f"{BEGIN}\n{code}\nprint(future.isolates)"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout == "True\n"


@pytest.mark.parametrize("code", TELLING.values(), ids=TELLING.keys())
def test_whatever_sets_something_is_noticed_before(code: str) -> None:
    assert isolates(code if "stdout" not in code else f"before = sys.stdout\n{code}\nsys.stdout = before")


@pytest.mark.parametrize("code", SILENT.values(), ids=SILENT.keys())
def test_what_sets_nothing_costs_nothing(code: str) -> None:
    assert not isolates(code)


@pytest.mark.skipif(not hasattr(sys.flags, "context_aware_warnings"), reason="only in newer versions")
def test_filters_of_warnings_may_be_a_context_variable() -> None:
    begin = BEGIN.partition("assert")[0]
    code = f"{begin}\nprint(future.isolates)"
    command = [sys.executable, "-X", "context_aware_warnings=1", "-c", code]
    assert subprocess.check_output(command, text=True) == "True\n"


def test_loops_are_looked_for_once_one_has_run() -> None:
    assert isolates("""
import asyncio
from hdphrs.api.isolation import Isolation
assert not future.isolation.aspects.all
asyncio.run(asyncio.sleep(0))
assert future.isolation.aspects.all
""")


def test_sys_is_pickled_by_name() -> None:
    assert isolates("""
from hdphrs.wire.pickling import dumps, loads
assert loads(dumps(lambda: sys))() is sys
import decimal
""")
