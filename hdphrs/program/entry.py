"""What `hdphrs run` is asked to run, as `python` itself would take it: a file, a folder or zip archive that has a
`__main__`, or a module.

What lives here: finding out which of these it is, whether it is there, where its modules are, and becoming it.
"""

from __future__ import annotations

import builtins
import os
import stat
import sys
from enum import Enum
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType

from hdphrs.errors import UsageError
from hdphrs.records import dataclass

MODULE_OPTION = "-m"

MAIN = "__main__"

HEAD_BYTES = 1024
"""Of a file that is looked at: source has no zero among them."""


class Kind(Enum):
    """What is run."""

    FILE = "file"
    CONTAINER = "container"
    """A folder or a zip archive."""
    MODULE = "module"


@dataclass(frozen=True, slots=True)
class Entry:
    """Something to run."""

    kind: Kind
    name: str
    """The path as it was given, or the name of the module."""
    folder: str
    """The first entry of `sys.path` while it runs, as an absolute path."""
    is_here: bool = True
    """Whether its modules are in that folder; a module may as well be an installed one."""

    @property
    def words(self) -> list[str]:
        """How it is named on a command line; its arguments follow."""
        return [MODULE_OPTION, self.name] if self.kind is Kind.MODULE else [self.name]


def entry_of(name: str, *, module: bool) -> Entry:
    """The program of this path, or the module of this name; nothing of it is loaded.

    Raises:
        UsageError: it cannot be run; the message says why.
    """
    return _module(name) if module else _path(name)


def _path(path: str) -> Entry:
    try:
        mode = os.stat(path).st_mode
        if stat.S_ISDIR(mode):
            return _container(path, "this folder")
        if not stat.S_ISREG(mode):
            raise UsageError(f"cannot run {path}: it is not a regular file")
        with open(path, "rb") as file:
            head = file.read(HEAD_BYTES)
    except OSError as error:
        raise UsageError(f"cannot run {path}: {error.strerror}") from error
    if _is_archive(path):
        return _container(path, "this archive")
    if b"\0" in head and not path.endswith(".pyc"):
        raise UsageError(f"cannot run {path}: it is neither Python source nor a zip archive")
    return Entry(Kind.FILE, path, os.path.dirname(os.path.realpath(path)))


def _is_archive(path: str) -> bool:
    if path.endswith(".py"):
        return False
    from zipimport import ZipImportError, zipimporter  # most programs are no archives

    try:
        zipimporter(path)
    except ZipImportError:
        return False
    return True


def _container(path: str, what: str) -> Entry:
    if PathFinder.find_spec(MAIN, [path]) is None:
        raise UsageError(f"cannot run {path}: there is no {MAIN}.py in {what}")
    return Entry(Kind.CONTAINER, path, os.path.abspath(path))


def _module(name: str) -> Entry:
    here = os.getcwd()
    spec = _find(name, here)
    if spec is None:
        raise UsageError(f"cannot run -m {name}: there is no module of this name, here or among those installed")
    if spec.submodule_search_locations is not None and _find(f"{name}.{MAIN}", here) is None:
        raise UsageError(f"cannot run -m {name}: it is a package without a {MAIN}.py; name one of its modules")
    origin = spec.origin or next(iter(spec.submodule_search_locations or ()), "")
    installed = "site-packages" in origin or "dist-packages" in origin
    is_here = os.path.abspath(origin).startswith(os.path.join(here, "")) and not installed
    return Entry(Kind.MODULE, name, here, is_here)


def _find(name: str, here: str) -> ModuleSpec | None:
    """As the import system finds it, but no package on the way is loaded."""
    spec: ModuleSpec | None = None
    path: list[str] | None = None
    parts = name.split(".")
    sys.path.insert(0, here)
    try:
        for count in range(1, len(parts) + 1):
            spec = _ask_finders(".".join(parts[:count]), path)
            if spec is None:
                return None
            if count < len(parts):
                if spec.submodule_search_locations is None:
                    return None
                path = list(spec.submodule_search_locations)
    finally:
        sys.path.remove(here)
    return spec


def _ask_finders(name: str, path: list[str] | None) -> ModuleSpec | None:
    for finder in sys.meta_path:
        try:
            spec = finder.find_spec(name, path)
        except (KeyError, ImportError, AttributeError, ValueError) as error:
            # A folder without an __init__.py asks the package that it is in, which is not loaded.  Since Python 3.15
            # the KeyError is the cause of another.
            if isinstance(error.__cause__ or error, KeyError):
                return _of_folders(name, path or [])
            continue
        if spec is not None:
            return spec
    return None


def _of_folders(name: str, path: list[str]) -> ModuleSpec:
    spec = ModuleSpec(name, None, is_package=True)
    folders = [os.path.join(entry, name.rpartition(".")[2]) for entry in path]
    spec.submodule_search_locations = list(filter(os.path.isdir, folders))
    return spec


def become(entry: Entry, arguments: list[str]) -> None:
    """Run it in this process as `__main__`, to its end.

    What is `__main__` then has all that python itself gives it, so `sys.modules["__main__"]` tells which file
    (`__file__`) or module (`__spec__`) was started.
    """
    sys.argv = [MODULE_OPTION if entry.kind is Kind.MODULE else entry.name, *arguments]
    sys.path.insert(0, entry.folder)
    module = sys.modules[MAIN] = ModuleType(MAIN)
    module.__dict__.update(__builtins__=builtins)
    if sys.version_info < (3, 14):
        module.__dict__.update(__annotations__={})
    if entry.kind is Kind.FILE:
        _run_file(entry.name, module)
        return
    import runpy  # as python does it: public functions of it leave another `__main__` when they are done

    runpy._run_module_as_main(  # type: ignore[attr-defined]
        entry.name if entry.kind is Kind.MODULE else MAIN, alter_argv=entry.kind is Kind.MODULE
    )


def _run_file(name: str, module: ModuleType) -> None:
    from importlib.machinery import SourceFileLoader, SourcelessFileLoader

    path = os.path.join(os.getcwd(), name)
    loader: SourceFileLoader | SourcelessFileLoader
    if path.endswith(".pyc"):
        loader = SourcelessFileLoader(MAIN, path)
        code = loader.get_code(MAIN)
    else:
        loader = SourceFileLoader(MAIN, path)
        code = compile(loader.get_data(path), path, "exec", dont_inherit=True)
    module.__loader__ = loader
    module.__dict__.update(__file__=path, __cached__=None)
    assert code is not None
    exec(code, module.__dict__)
