"""What is different where the tests run against the compiled form (`make compiled`).

What lives here: the assurance that it is the compiled form which they import; and which tests cannot hold there.  These
are not listed: a test that replaces a part of compiled code, derives from a class of it, or has a double stand in for
one of its objects, is skipped when it does so: compiled code calls past what is replaced, and takes none but its own.
"""

from __future__ import annotations

import inspect
import os
import re
import sys
from collections.abc import Iterator
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import hdphrs
from hdphrs.form import form

REPLACES = "replaces a part of what is compiled"
_REFUSALS = {
    "interpreted classes cannot inherit from compiled": "derives from a class that is compiled",
    r"'\w+' object attribute '\w+' is read-only": REPLACES,
    r"hdphrs\.\S+ object expected; got tests\.": "has something of its own stand in for an object that is compiled",
}
"""What compiled code says to tests that do what cannot be done, and what that is."""

_setattr = pytest.MonkeyPatch.setattr


def _is_compiled(target: object) -> bool:
    """Whether this is a module, a class, or an object of one, that is compiled."""
    if isinstance(target, str):
        names = target.split(".")
        return any(_is_compiled(sys.modules.get(".".join(names[:end]))) for end in range(1, len(names)))
    if not isinstance(target, ModuleType):
        kind = target if inspect.isclass(target) else type(target)
        target = sys.modules.get(kind.__module__)
    file = str(getattr(target, "__file__", ""))
    return f"{os.sep}hdphrs{os.sep}" in file and file.endswith(tuple(EXTENSION_SUFFIXES))


def _setattr_unless_compiled(self: pytest.MonkeyPatch, target: Any, *rest: Any, **options: Any) -> None:
    if _is_compiled(target):
        pytest.skip(REPLACES)
    _setattr(self, target, *rest, **options)


def pytest_configure(config: pytest.Config) -> None:
    """Before anything is collected."""
    where = Path(hdphrs.__file__)
    if form() != "compiled" or where.is_relative_to(config.rootpath):
        raise pytest.UsageError(f"not the compiled form: {form()}, {where}")
    pytest.MonkeyPatch.setattr = _setattr_unless_compiled  # type: ignore[method-assign]


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call() -> Iterator[Any]:
    """A test that does what cannot be done is skipped."""
    return (yield from _skipped_where_refused())


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup() -> Iterator[Any]:
    """So is one whose fixture does."""
    return (yield from _skipped_where_refused())


def _skipped_where_refused() -> Iterator[Any]:
    try:
        return (yield)
    except BaseException as error:
        said = [str(each) for each in _all(error)]
        for refusal, why in _REFUSALS.items():
            if any(re.search(refusal, each) for each in said):
                pytest.skip(why)
        if isinstance(error, BaseExceptionGroup) and (skip := error.subgroup(pytest.skip.Exception)):
            raise next(iter(_all(skip))) from None  # out of a nursery
        raise


def _all(error: BaseException) -> Iterator[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        for each in error.exceptions:
            yield from _all(each)
    else:
        yield error
