"""What a scheduler imports to load a task, and what it imports since others have."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from hdphrs.scheduler import imports
from hdphrs.scheduler.imports import REST_S, SHORT_S, Imports
from hdphrs.wire import local

Write = Callable[..., str]


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Write:
    """Makes a module that nobody has imported, and returns its name; by the end everybody has forgotten it."""
    monkeypatch.setattr(sys, "modules", sys.modules.copy())
    monkeypatch.syspath_prepend(tmp_path)

    def write(name: str, source: str = "") -> str:
        (tmp_path / f"{name}.py").write_text(source)
        return name

    return write


@pytest.fixture
def said() -> list[list[Any]]:
    """To the node."""
    return []


def found() -> list[str]:
    return [entry for entry in sys.path if type(entry) is str]


def test_what_it_took_to_load_a_task_is_told(write: Write, said: list[list[Any]]) -> None:
    below, above = write("ahead_below"), write("ahead_above", "import ahead_below")
    one = Imports(said.append)
    one.begin()
    __import__(above)
    one.end()
    assert said == [[local.IMPORTED, found(), [below, above]]], "in the order in which they are complete"
    one.begin()
    __import__(above)
    one.end()
    assert len(said) == 1, "once"


def test_what_takes_long_is_not(write: Write, said: list[list[Any]], monkeypatch: pytest.MonkeyPatch) -> None:
    now_s = 100.0
    monkeypatch.setattr(imports, "perf_counter", lambda: now_s)
    for name, took_s in (("ahead_short", SHORT_S / 2), ("ahead_long", SHORT_S * 2)):
        one = Imports(said.append)
        one.begin()
        __import__(write(name))
        now_s += took_s
        one.end()
    assert [names for *_, names in said] == [["ahead_short"]]


def test_nor_is_what_others_do_not_find_by_its_name(
    write: Write, said: list[list[Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    class Lazy(ModuleType):
        """Does something when it is asked for anything."""

        def __getattribute__(self, name: str) -> Any:
            raise AssertionError(name)

    one = Imports(said.append)
    monkeypatch.setattr(sys, "path", [*sys.path, Path("not a string")])
    one.begin()
    sys.modules["ahead_made"] = ModuleType("ahead_made")
    sys.modules["ahead_lazy"] = Lazy("ahead_lazy")
    one.end()
    assert said == [], "then there is nothing to tell"
    __import__(write("ahead_plain"))
    one.end()
    assert said == [[local.IMPORTED, found(), ["ahead_plain"]]]


def test_what_others_have_imported_is_imported_one_module_at_a_time(write: Write) -> None:
    below, above = write("ahead_below"), write("ahead_above", "import ahead_below")
    one = Imports(lambda message: None)
    assert (bool(one), one.patience_s) == (False, None)
    one.hear([], ["os", below, above])
    assert one.patience_s == REST_S
    one.hear([], [above])
    steps = []
    while one:
        one.go_on()
        steps.append((below in sys.modules, above in sys.modules))
        assert one.patience_s == (0.0 if one else None)
    assert steps == [(False, False), (True, False), (True, True)]


def test_it_looks_where_the_others_have_found_it(write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name = write("ahead_elsewhere")
    monkeypatch.setattr(sys, "path", [entry for entry in sys.path if entry != str(tmp_path)])
    one = Imports(lambda message: None)
    one.hear([str(tmp_path)], [name])
    one.go_on()
    assert name in sys.modules


@pytest.mark.parametrize(
    "source", ["raise ValueError", "import ahead_missing", "import sys; sys.exit(3)", "not Python"]
)
def test_an_import_that_fails_is_left_to_the_task_that_needs_it(write: Write, source: str) -> None:
    one = Imports(lambda message: None)
    one.hear([], [write("ahead_broken", source)])
    one.go_on()
    assert not one
    assert "ahead_broken" not in sys.modules


def test_it_can_be_interrupted(write: Write) -> None:
    one = Imports(lambda message: None)
    one.hear([], [write("ahead_interrupted", "raise KeyboardInterrupt")])
    with pytest.raises(KeyboardInterrupt):
        one.go_on()
