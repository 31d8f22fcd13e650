"""Noticing that the program's surroundings have changed, each part of them for itself."""

from __future__ import annotations

import multiprocessing.context
import os
import re
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from hdphrs.program.surroundings import Outlook
from hdphrs.wire.pickling import loads
from hdphrs.wire.surroundings import Surroundings, decode_surroundings


@pytest.fixture(autouse=True)
def own_surroundings(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """What a test changes is undone."""
    limits = sys.getrecursionlimit(), sys.get_int_max_str_digits(), sys.getdlopenflags(), sys.dont_write_bytecode
    umask = os.umask(0o22)
    monkeypatch.setattr(sys, "argv", ["prog.py", "x"])
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.chdir(os.getcwd())
    monkeypatch.setenv("KEPT", "1")
    with warnings.catch_warnings():
        yield
    os.umask(umask)
    sys.setrecursionlimit(limits[0])
    sys.set_int_max_str_digits(limits[1])
    sys.setdlopenflags(limits[2])
    sys.dont_write_bytecode = limits[3]


def told(outlook: Outlook) -> Surroundings:
    """What is told now; there must be something."""
    news = outlook.news()
    assert news is not None
    return decode_surroundings(news[1])


def test_all_is_told_once() -> None:
    outlook = Outlook()
    assert outlook.has_changed()
    first = told(outlook)
    assert first.argv == ("prog.py", "x")
    assert first.environ[b"KEPT"] == b"1"
    assert first.directory == os.getcwd().encode()
    assert (first.umask, first.recursion_limit) == (0o22, sys.getrecursionlimit())
    assert not outlook.has_changed()
    assert outlook.news() is None


CHANGES: list[tuple[Callable[[], object], str, object]] = [
    (lambda: sys.argv.append("y"), "argv", ("prog.py", "x", "y")),
    (lambda: setattr(sys, "argv", ["z"]), "argv", ("z",)),
    (lambda: os.umask(0o77), "umask", 0o77),
    (lambda: sys.setrecursionlimit(4321), "recursion_limit", 4321),
    (lambda: sys.set_int_max_str_digits(0), "digits_max", 0),
    (lambda: sys.setdlopenflags(os.RTLD_LAZY | os.RTLD_GLOBAL), "dlopen_flags", os.RTLD_LAZY | os.RTLD_GLOBAL),
    (lambda: setattr(sys, "dont_write_bytecode", not sys.dont_write_bytecode), "writes_bytecode", None),
    (lambda: os.chdir("/"), "directory", b"/"),
    (lambda: os.environ.pop("KEPT"), "unset", (b"KEPT",)),
    (lambda: sys.path.insert(0, "/first"), "path", None),
    (lambda: warnings.simplefilter("error", BytesWarning), "filters", None),
]


@pytest.mark.parametrize(("change", "name", "value"), CHANGES)
def test_a_change_is_told_in_a_newer_version(change: Callable[[], object], name: str, value: object) -> None:
    outlook = Outlook()
    first = outlook.news()
    change()
    assert outlook.has_changed()
    second = outlook.news()
    assert first is not None
    assert second is not None
    assert second[0] > first[0]
    before, after = decode_surroundings(first[1]), decode_surroundings(second[1])
    assert getattr(after, name) != getattr(before, name)
    assert value is None or getattr(after, name) == value
    assert not outlook.has_changed()


def test_a_variable_that_is_changed_and_changed_back_is_told_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    outlook = Outlook()
    told(outlook)
    monkeypatch.setenv("KEPT", "2")
    assert told(outlook).environ[b"KEPT"] == b"2"
    monkeypatch.setenv("KEPT", "1")
    assert told(outlook).environ[b"KEPT"] == b"1"


def test_a_start_method_is_told_when_the_program_has_chosen_one(monkeypatch: pytest.MonkeyPatch) -> None:
    default = multiprocessing.context._default_context
    monkeypatch.setattr(default, "_actual_context", None)
    outlook = Outlook()
    assert told(outlook).start_method is None
    multiprocessing.set_start_method("spawn")
    assert told(outlook).start_method == "spawn"


def test_filters_travel_with_their_patterns_and_categories() -> None:
    class Mine(UserWarning):
        pass

    warnings.filterwarnings("error", "some (text|words)", Mine, "a.module", 7)
    filters = told(Outlook()).filters
    assert filters
    action, message, category, module, line = filters[0]
    assert (action, line) == ("error", 7)
    assert message == ("some (text|words)", re.compile("", re.IGNORECASE).flags)
    assert module[0].startswith("a.module")
    assert issubclass(loads(category), UserWarning)


def test_what_cannot_travel_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        warnings, "filters", [("error", None, None, object(), "no line"), ("ignore",), *warnings.filters]
    )
    monkeypatch.setattr(sys, "argv", ["prog.py", 7, None])
    monkeypatch.setattr(sys, "path", [*sys.path, Path("/odd")])
    told_of = told(Outlook())
    assert told_of.argv == ("prog.py",)
    assert told_of.filters is not None
    assert len(told_of.filters) == len(warnings.filters) - 2
    assert "/odd" not in told_of.path


def test_a_directory_that_is_gone_is_unknown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    assert told(Outlook()).directory is None
