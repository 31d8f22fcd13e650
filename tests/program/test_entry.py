"""What can be run, and why the rest cannot; nothing of it is loaded."""

from __future__ import annotations

import py_compile
import sys
import zipapp
from pathlib import Path

import pytest

from hdphrs.errors import UsageError
from hdphrs.program.entry import Entry, Kind, entry_of


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with programs, which raise if they are loaded."""
    for name in (
        "prog.py",
        "app/__main__.py",
        "pack/__init__.py",
        "pack/__main__.py",
        "pack/mod.py",
        "bare/__init__.py",
    ):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("raise SystemExit('loaded')\n")
    (tmp_path / "spaces" / "deep").mkdir(parents=True)
    (tmp_path / "spaces" / "deep" / "mod.py").write_text("raise SystemExit('loaded')\n")
    (tmp_path / "links").mkdir()
    (tmp_path / "links" / "link.py").symlink_to("../prog.py")
    (tmp_path / "binary").write_bytes(b"\x7fELF\0\0")
    zipapp.create_archive(tmp_path / "app", tmp_path / "app.pyz", "/usr/bin/env python3")
    zipapp.create_archive(tmp_path / "app", tmp_path / "plain.zip")
    py_compile.compile(str(tmp_path / "prog.py"), str(tmp_path / "prog.pyc"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("name", "kind", "folder"),
    [
        ("prog.py", Kind.FILE, ""),
        ("./prog.py", Kind.FILE, ""),
        ("prog.pyc", Kind.FILE, ""),
        ("links/link.py", Kind.FILE, ""),
        ("app", Kind.CONTAINER, "app"),
        ("app/", Kind.CONTAINER, "app"),
        ("app.pyz", Kind.CONTAINER, "app.pyz"),
        ("plain.zip", Kind.CONTAINER, "plain.zip"),
    ],
)
def test_a_path_is_a_file_or_has_a_main_in_it(here: Path, name: str, kind: Kind, folder: str) -> None:
    entry = entry_of(name, module=False)
    assert entry == Entry(kind, name, str(here / folder))
    assert entry.words == [name]


@pytest.mark.parametrize("name", ["prog", "pack", "pack.mod", "spaces.deep.mod"])
def test_a_module_is_found_as_python_finds_it(here: Path, name: str) -> None:
    path, modules = list(sys.path), set(sys.modules)
    entry = entry_of(name, module=True)
    assert entry == Entry(Kind.MODULE, name, str(here))
    assert entry.words == ["-m", name]
    assert sys.path == path
    assert not {"prog", "pack", "pack.mod", "spaces"} & (set(sys.modules) - modules)


def test_an_installed_module_is_not_of_the_program(here: Path) -> None:
    assert entry_of("pytest", module=True) == Entry(Kind.MODULE, "pytest", str(here), is_here=False)
    assert not entry_of("timeit", module=True).is_here


NO_MODULE = "there is no module of this name, here or among those installed"
NO_MAIN = "it is a package without a __main__.py; name one of its modules"


@pytest.mark.parametrize(
    ("name", "module", "why"),
    [
        ("nowhere.py", False, "No such file or directory"),
        ("bare", False, "there is no __main__.py in this folder"),
        ("links", False, "there is no __main__.py in this folder"),
        ("/dev/null", False, "it is not a regular file"),
        ("binary", False, "it is neither Python source nor a zip archive"),
        ("nowhere", True, NO_MODULE),
        ("pack.nowhere", True, NO_MODULE),
        ("prog.py", True, NO_MODULE),
        ("prog.inner", True, NO_MODULE),
        (".pack", True, NO_MODULE),
        ("", True, NO_MODULE),
        ("bare", True, NO_MAIN),
        ("spaces", True, NO_MAIN),
        ("spaces.deep", True, NO_MAIN),
    ],
)
def test_what_cannot_be_run_is_refused_in_one_line(here: Path, name: str, module: bool, why: str) -> None:
    with pytest.raises(UsageError) as raised:
        entry_of(name, module=module)
    assert str(raised.value) == f"cannot run {'-m ' * module}{name}: {why}"
