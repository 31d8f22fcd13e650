"""How a bug is planted: by an edit of the source of a function of the core, for as long as a block lasts.

What lives here: `Edit`, `Mutant` and `planted`.  An edit of the real source does not rot in silence: when the source
no longer contains what is to be replaced, exactly once, planting fails.  What does not live here: the bugs.
"""

from __future__ import annotations
import __future__

import importlib
import inspect
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FunctionType, ModuleType

PACKAGE = "hdphrs.protocol"


class Rotten(Exception):  # noqa: N818 - the edit, not an error of the program's
    """The core has changed, and an edit no longer fits it."""


@dataclass(frozen=True, slots=True)
class Edit:
    """One replacement in one function: the correct text, and the text with the bug."""

    where: str
    """The function, from its module on: "victim.Victim.on_auth"."""
    right: str
    wrong: str


@dataclass(frozen=True, slots=True)
class Mutant:
    """The core with one bug."""

    name: str
    breaks: str
    """One sentence: what the wrong rule does."""
    edits: tuple[Edit, ...]


@contextmanager
def planted(mutant: Mutant | None) -> Iterator[None]:
    """The core has this bug inside the block; None plants nothing.

    Raises:
        Rotten: an edit does not fit the source.
    """
    undo: list[tuple[type | ModuleType, str, FunctionType]] = []
    try:
        for where, edits in _by_function(mutant.edits if mutant else ()).items():
            module, owner, name = _find(where)
            right = vars(owner)[name]
            undo.append((owner, name, right))
            setattr(owner, name, _rewritten(right, edits, module))
        yield
    finally:
        for owner, name, right in undo:
            setattr(owner, name, right)


def _by_function(edits: tuple[Edit, ...]) -> dict[str, list[Edit]]:
    grouped: dict[str, list[Edit]] = {}
    for edit in edits:
        grouped.setdefault(edit.where, []).append(edit)
    return grouped


def _find(where: str) -> tuple[ModuleType, type | ModuleType, str]:
    module_name, *path = where.split(".")
    module = importlib.import_module(f"{PACKAGE}.{module_name}")
    owner: type | ModuleType = module
    for part in path[:-1]:
        owner = getattr(owner, part)
    if not isinstance(vars(owner).get(path[-1]), FunctionType):
        raise Rotten(f"{where}: there is no such function")
    return module, owner, path[-1]


def _rewritten(right: FunctionType, edits: list[Edit], module: ModuleType) -> FunctionType:
    source = inspect.getsource(right)
    for edit in edits:
        if source.count(edit.right) != 1:
            raise Rotten(f"{edit.where}: {edit.right!r} is there {source.count(edit.right)} times, not once")
        source = source.replace(edit.right, edit.wrong)
    if source[0].isspace():
        source = "if True:\n" + source  # a method keeps its indentation, so an edit may span lines
    flags = __future__.annotations.compiler_flag
    code = compile(source, f"<mutant of {module.__name__}>", "exec", flags=flags, dont_inherit=True)
    made: dict[str, FunctionType] = {}
    exec(code, vars(module), made)
    return made[right.__name__]
