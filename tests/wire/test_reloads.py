"""Modules that a program has loaded again, and a process that has imported them as they were."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from hdphrs.wire.reloads import Reloads


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """An imported module, whose file a test may edit."""
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    edit(tmp_path, 1)
    yield importlib.import_module("edited_for_reloads")
    sys.modules.pop("edited_for_reloads", None)


def edit(folder: Path, value: int) -> None:
    """Write the module's file."""
    (folder / "edited_for_reloads.py").write_text(f"VALUE = {value}\n")
    importlib.invalidate_caches()


@pytest.fixture
def program(module: ModuleType) -> Iterator[Reloads]:
    """One that notices."""
    before = list(sys.meta_path)
    sys.meta_path[:] = [finder for finder in before if type(finder).__name__ != "Notice"]
    reloads = Reloads()
    reloads.notice()
    yield reloads
    sys.meta_path[:] = before


def test_imports_that_find_nothing_or_something_new_are_no_reloads(program: Reloads) -> None:
    for _ in range(3):
        with pytest.raises(ImportError):
            importlib.import_module("no_such_module_anywhere")
    assert (program.epoch, program.packed()) == (0, b"")


def test_a_reload_is_told_once_and_not_again(program: Reloads, module: ModuleType, tmp_path: Path) -> None:
    edit(tmp_path, 22)
    importlib.reload(module)
    assert program.epoch == 1
    value = module.VALUE
    module.__dict__["VALUE"] = 0  # as if another process had it
    scheduler = Reloads()
    scheduler.apply(program.packed())
    assert (module.VALUE, scheduler.epoch) == (value, 1)
    module.__dict__["VALUE"] = -1
    scheduler.apply(program.packed())
    assert module.VALUE == -1
    assert scheduler.packed() == program.packed()


def test_what_runs_is_the_text_that_the_program_has_loaded(
    program: Reloads, module: ModuleType, tmp_path: Path
) -> None:
    importlib.reload(module)
    packed, value = program.packed(), module.VALUE
    edit(tmp_path, 333)
    module.__dict__["VALUE"] = 0
    Reloads().apply(packed)
    assert value == module.VALUE


def test_an_older_list_changes_nothing(program: Reloads, module: ModuleType) -> None:
    importlib.reload(module)
    older = program.packed()
    importlib.reload(module)
    scheduler = Reloads()
    scheduler.apply(program.packed())
    module.__dict__["VALUE"] = -1
    scheduler.apply(older)
    assert (module.VALUE, scheduler.epoch) == (-1, 2)


def test_a_module_that_was_removed_and_imported_again_was_reloaded(program: Reloads) -> None:
    del sys.modules["edited_for_reloads"]
    importlib.import_module("edited_for_reloads")
    assert program.epoch == 1
    assert program.version_of(b"...edited_for_reloads...") == b"edited_for_reloads 1 "
    assert program.version_of(b"another") == b""


def test_a_module_that_is_not_here_yet_is_imported_and_is_what_the_program_has(
    program: Reloads, module: ModuleType, tmp_path: Path
) -> None:
    importlib.reload(module)
    packed, value = program.packed(), module.VALUE
    edit(tmp_path, 4444)
    del sys.modules["edited_for_reloads"]
    Reloads().apply(packed)
    assert value == sys.modules["edited_for_reloads"].VALUE


def test_the_main_module_is_none_of_those_that_are_loaded_again() -> None:
    reloads = Reloads()
    for name in ("__main__", "__mp_main__"):
        reloads.hear(name, again=False)
        reloads.hear(name, again=True)
    assert (reloads.epoch, reloads.packed()) == (0, b"")
