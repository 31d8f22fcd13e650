"""Who may unpickle: the processes that run user code, and no node.  Proved by the code's structure."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

PACKAGE = Path(__file__).parents[2] / "hdphrs"
UNPICKLERS = {"pickle", "_pickle", "cloudpickle", "marshal", "shelve", "dill", "copyreg", "multiprocessing"}
"""Modules that turn bytes into objects of any class; multiprocessing does so with whatever its connections bring."""

PICKLING = ("pickling", "unpickler", "definitions", "stand_in", "values", "code", "capture")
"""Modules of `hdphrs.wire` that pickle and unpickle, by themselves or by each other."""


def _imports(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module or ""
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def _importers(of: set[str]) -> set[str]:
    return {
        str(path.relative_to(PACKAGE))
        for path in PACKAGE.rglob("*.py")
        if any(name in of or name.partition(".")[0] in of for name in _imports(path))
    }


def test_modules_that_import_an_unpickler_are_those_that_run_with_user_code() -> None:
    """Beside the simulator, which has no peers, and the errors, which need one of its classes (see below)."""
    assert _importers(UNPICKLERS) - {"sim/table.py", "errors.py"} == {
        "contexts/travel.py",
        "scheduler/surroundings.py",  # multiprocessing's start method
        "wire/definition_pickler.py",
        "wire/definitions.py",
        "wire/exceptions.py",  # copyreg, to see what has been registered there
        "wire/manager_proxies.py",
        "wire/meaning.py",
        "wire/pickler.py",
        "wire/pickling.py",
        "wire/stand_in.py",
        "wire/unpickler.py",
        "wire/well_known.py",  # copyreg, likewise
    }


def test_pickle_is_loaded_in_few_modules() -> None:
    loading = {
        str(path.relative_to(PACKAGE))
        for path in PACKAGE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Attribute) and node.attr in ("loads", "load", "Unpickler")
        if isinstance(node.value, ast.Name) and node.value.id in UNPICKLERS
    }
    assert loading == {"contexts/travel.py", "wire/pickling.py", "wire/unpickler.py"}


def test_what_pickles_is_imported_only_where_user_code_runs() -> None:
    pickling = {f"hdphrs.wire.{name}" for name in PICKLING}
    assert _importers(pickling) == {
        "executor/calls.py",
        "program/port.py",
        "program/surroundings.py",
        "scheduler/away.py",
        "scheduler/bundles.py",
        "scheduler/dialogue.py",
        "scheduler/export.py",
        "scheduler/finds.py",
        "scheduler/handlers.py",
        "scheduler/hub.py",
        "scheduler/keep.py",
        "scheduler/port.py",
        "scheduler/process.py",
        "scheduler/reuse.py",
        "scheduler/stop.py",
        "scheduler/surroundings.py",
        "wire/bundle.py",
        "wire/capture.py",
        "wire/code.py",
        "wire/definition_pickler.py",
        "wire/definitions.py",
        "wire/meaning.py",
        "wire/obstacles.py",
        "wire/pickling.py",
        "wire/stand_in.py",
        "wire/values.py",
    }


def test_node_process_does_not_even_load_the_unpickler() -> None:
    script = (
        "import sys, hdphrs.node.life, hdphrs.transport.tcp\n"
        f"print(*sorted(set(sys.modules) & {UNPICKLERS - {'copyreg', 'marshal'}!r}))\n"
        "print(*[name for name in sys.modules if name.startswith('hdphrs.')])\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    unpicklers, ours = done.stdout.splitlines()
    assert unpicklers == ""
    assert not {f"hdphrs.wire.{name}" for name in PICKLING} & set(ours.split())
    assert "hdphrs.contexts.travel" not in ours.split()
