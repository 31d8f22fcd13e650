"""Pickling one global of the program; what else the program names is a reference.

What lives here: where a function or a class is named, what a function refers to, and the pickler.  What is made of the
pickles is in `definitions.py`.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterable, Iterator
from types import CodeType, FunctionType
from typing import Any, Final, NamedTuple

from cloudpickle import cloudpickle as internals

from hdphrs.wire.pickler import (
    MAIN,
    MAINS,
    PICKLE_PROTOCOL,
    PLAIN,
    BasePickler,
    Cached,
    is_by_value,
    make_function,
)
from hdphrs.wire.stand_in import Generation, key_of, receiver

_UNPICKLES: Final = frozenset({"load", "loads", "Unpickler", "read_pickle"})
"""Names of what may unpickle instances of any class of the program, which are found by their names then."""


class User(NamedTuple):
    """A function that refers to a global."""

    name: str
    code: CodeType
    may_lack: bool = False
    """Whether it goes on without, if the global does not pickle."""


class Place(NamedTuple):
    """Where something is named."""

    generation: Generation | None
    """Of a process that runs tasks."""
    label: str
    name: str
    path: tuple[str, ...]

    @property
    def key(self) -> str:
        """Of the global."""
        return key_of(self.label, self.name)


def place_of(named: Any) -> Place | None:
    """Where a module that travels by value names a function, a class or a cache."""
    module = getattr(named, "__module__", None)
    qualname = getattr(named, "__qualname__", None)
    if type(module) is not str or type(qualname) is not str or "<" in qualname or not is_by_value(module):
        return None
    label = MAIN if module in MAINS else module
    name, *path = qualname.split(".")
    for generation, space in spaces_of(label):
        if found_in(space, name, path) is named:
            return Place(generation, label, name, tuple(path))
    return None


def found_in(space: dict[str, Any], name: str, path: Iterable[str]) -> Any:
    """What globals name, or an attribute of that; None if there is none."""
    found = space.get(name)
    for part in path:
        found = getattr(found, part, None)
    return found


def spaces_of(label: str) -> Iterator[tuple[Generation | None, dict[str, Any]]]:
    if receiver.runs_tasks:
        for generation in reversed(receiver.generations):
            if label in generation.modules:
                yield generation, vars(generation.modules[label])
    elif label in sys.modules:
        yield None, vars(sys.modules[label])


def home_of(function: FunctionType) -> tuple[Generation | None, str] | None:
    """The module that travels by value whose globals a function has."""
    name = function.__globals__.get("__name__")
    if type(name) is not str or not is_by_value(name):
        return None
    label = MAIN if name in MAINS else name
    for generation, space in spaces_of(label):
        if space is function.__globals__:
            return generation, label
    return None


class _Here:
    """Pickles as the globals of a module, where a definition is loaded."""

    def __init__(self, label: str) -> None:
        self.label = label


class _Make:
    """Pickles as what makes the thing that is defined."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __call__(self) -> None:
        """Never called: pickles want something that could be."""


class DefinitionPickler(BasePickler):
    """Pickles one global; what else the program names is a reference."""

    is_global = True

    def __init__(self, file: io.BytesIO, generation: Generation | None, key: str, root: Any, aliases: dict[int, str]):
        super().__init__(file, PICKLE_PROTOCOL, None)
        self._generation = generation
        self._key = key
        self._root = root
        self._aliases = aliases
        self.links: dict[str, None] = {}
        self.users: dict[str, User] = {}
        """The globals that functions refer to, and one of these."""

    def persistent_id(self, obj: Any) -> Any:
        kind = type(obj)
        if kind in PLAIN:
            return None
        if kind is _Here:
            return "globals", obj.label
        if kind is _Make:
            return "make", obj.name
        key = self._aliases.get(id(obj))
        path: tuple[str, ...] = ()
        if key is None and (kind is FunctionType or kind is Cached or issubclass(kind, type)):
            place = place_of(obj)
            if place is not None:
                key, path = place.key, place.path
        if key is None or key == self._key:
            return None
        self.links[key] = None
        return ("global", key, *path)

    def _link(self, named: Any) -> Any:
        return None

    def _link_sentinel(self, value: object) -> Any:
        return None

    def _reduce_named(self, obj: Any, kind: type) -> Any:
        reduced = super()._reduce_named(obj, kind)
        if obj is self._root and type(reduced) is tuple:
            if reduced[0] is make_function:
                return (_Make("function"), *reduced[1:])
            if reduced[0] in (internals._make_skeleton_class, internals._make_skeleton_enum):
                return (_Make(reduced[0].__name__), *reduced[1:])
        return reduced

    def _globals_of(self, function: FunctionType) -> Any:
        home = home_of(function)
        if home is None:
            return module_globals(function)
        self.users.update(uses_of(function, home[1]))
        return _Here(home[1])


def uses_of(function: FunctionType, label: str) -> dict[str, User]:
    """The keys of what a function refers to."""
    user = User(function.__qualname__, function.__code__)
    uses = {key_of(label, name): user for name in internals._extract_code_globals(user.code)}
    uses = {key: user for key, user in uses.items() if key.partition(":")[2] in function.__globals__}
    file = user.code.co_filename
    if "linecache" in sys.modules and file in sys.modules["linecache"].cache and not os.path.exists(file):
        uses[f"text:{file}"] = user
    if not receiver.runs_tasks and label == MAIN and not _UNPICKLES.isdisjoint(user.code.co_names):
        for name, value in list(function.__globals__.items()):
            if issubclass(type(value), type) and value.__module__ in MAINS:
                uses.setdefault(key_of(label, name), user._replace(may_lack=True))
    return uses


class _ModuleGlobals:
    """Pickles as the globals of a module that is installed everywhere."""

    def __init__(self, module: str) -> None:
        self._module = module

    def __reduce__(self) -> tuple[Any, ...]:
        return load_globals, (self._module,)


def load_globals(module: str) -> dict[str, Any]:
    """The globals of an installed module."""
    __import__(module)
    return vars(sys.modules[module])


def module_globals(function: FunctionType) -> _ModuleGlobals | None:
    """What pickles as the globals of a nested function of an installed module; those of the program's own modules are
    copied, for the program may have set them."""
    name = function.__globals__.get("__name__")
    module = sys.modules.get(name) if type(name) is str else None
    if module is None or vars(module) is not function.__globals__ or name in MAINS or is_by_value(str(name)):
        return None
    file = getattr(module, "__file__", None) or ""
    top = str(name).partition(".")[0]
    installed = top in sys.stdlib_module_names or top == "hdphrs" or "site-packages" in file or "dist-packages" in file
    return _ModuleGlobals(str(name)) if installed else None
