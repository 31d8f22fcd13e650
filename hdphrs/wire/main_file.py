"""The file that the program was started from, seen from its other processes.

What lives here: what is told of it; whether it has the guard `if __name__ == "__main__":`; and running it once, as
multiprocessing does, under the name `__mp_main__`, for what does not pickle.
"""

from __future__ import annotations

import os
import sys
from types import ModuleType
from typing import Any, Final, NamedTuple

from hdphrs.errors import CannotTravelError

RUN_AS: Final = "__mp_main__"


class About(NamedTuple):
    """What other processes are told of the program's main module; nothing of a notebook, or of `python -c`."""

    file: str | None = None
    package: str | None = None
    module: str | None = None
    """Its name, if it was started as `python -m` does."""


def about(main: ModuleType) -> About:
    """What there is to tell of a main module."""
    file, package = (getattr(main, name, None) for name in ("__file__", "__package__"))
    module = getattr(getattr(main, "__spec__", None), "name", None)
    return About(
        file if isinstance(file, str) else None,
        package if isinstance(package, str) else None,
        module if isinstance(module, str) else None,
    )


def source_of(told: About) -> str | None:
    """The text of the file, wherever this process finds it; None if it does not.

    On other hosts it is in the archive of the program's directory, under the last part of its name.
    """
    import linecache  # seldom needed

    if told.file is None:
        return None
    if os.path.isfile(told.file):
        lines = linecache.getlines(told.file)
        return "".join(lines) or None
    name = _name_in_archive(told)
    from zipimport import zipimporter

    for entry in sys.path:
        if os.path.isfile(os.path.join(entry, name)):
            return "".join(linecache.getlines(os.path.join(entry, name))) or None
        try:
            return zipimporter(entry).get_data(os.path.join(entry, name)).decode()
        except (OSError, ImportError, UnicodeDecodeError):
            continue
    return None


def _name_in_archive(told: About) -> str:
    assert told.file is not None
    depth = 0 if told.module is None else (told.package or "").count(".") + bool(told.package)
    return os.path.join(*told.file.split(os.sep)[-1 - depth :])


def has_guard(told: About) -> bool:
    """Whether the file starts nothing when it is run under another name than `__main__`."""
    import ast  # seldom needed

    text = source_of(told)
    if text is None:
        return False
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):
        return False
    return any(isinstance(node, ast.If) and _asks_for_main(node.test) for node in tree.body)


def _asks_for_main(test: Any) -> bool:
    import ast

    for node in ast.walk(test):
        if isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
            names = any(isinstance(side, ast.Name) and side.id == "__name__" for side in sides)
            if names and any(isinstance(side, ast.Constant) and side.value == "__main__" for side in sides):
                return True
    return False


def run(told: About) -> ModuleType:
    """Run the file in a module of its own, under the name `RUN_AS`.

    Raises:
        CannotTravelError: it is not found here, or it has raised something.
    """
    text = source_of(told)
    if text is None or told.file is None:
        raise CannotTravelError(f"the program's file, {told.file}, is not found on this host, nor is it in its archive")
    module = ModuleType(RUN_AS)
    module.__file__ = told.file
    module.__package__ = told.package
    before = sys.modules.get(RUN_AS)
    sys.modules[RUN_AS] = module
    try:
        exec(compile(text, told.file, "exec", dont_inherit=True), vars(module))
    except BaseException as error:
        raise CannotTravelError(
            f"{told.file} was run once more in this process, under the name {RUN_AS}, for its globals that do not "
            f"pickle, and has raised {type(error).__name__}: {error}"
        ) from error
    finally:
        if before is None:
            del sys.modules[RUN_AS]
        else:
            sys.modules[RUN_AS] = before
    return module


class Source:
    """A loader that only knows the text, for tracebacks and `inspect`."""

    def __init__(self, told: About) -> None:
        self._told = told

    def get_source(self, name: str) -> str | None:
        """The text of the main module."""
        return source_of(self._told)
