"""Attributes of a module of which some threads have values of their own for a while.

What lives here: `PerThread`.  What does not: which attributes these are, and when a thread has its own (`aspects.py`).

Theory of operation
-------------------

A child that runs in a thread of the process (a task awaits it in an event loop, or a thread of a task gets it) is to
find the standard streams and the filters of warnings as another process has them, and the task in the main thread,
which goes on meanwhile, those that it has set.  So as long as a thread has values of its own, the module is of another
class, whose properties look at the thread first.  Code that reads the module's dictionary (`print`, the functions of
`warnings`) finds stand-ins there, which pass on what is done with them to the value of the calling thread.
"""

from __future__ import annotations

import importlib
import threading
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any, Final, TypeAlias

Current: TypeAlias = Callable[[], Any]
"""What the calling thread has."""


class _Own(threading.local):
    """By owner, what the calling thread has for itself."""

    def __init__(self) -> None:
        self.values: dict[PerThread, dict[str, Any]] = {}


_own: Final = _Own()


class PerThread:
    """Attributes of one module."""

    def __init__(self, module: ModuleType, stands: Mapping[str, Callable[[Current], Any]]) -> None:
        """`stands` makes, by name of an attribute, what passes on to the value of the calling thread."""
        self.lock: Final = threading.RLock()
        """Held by who looks at several of the attributes, or changes some."""
        self._module = module
        self._stands = {name: stand for name, stand in stands.items() if name in vars(module)}
        self._shared: dict[str, Any] | None = None
        """Those of all threads that have none of their own; None if that is all threads."""
        self._threads = 0
        self._former: type = ModuleType

    @property
    def values(self) -> dict[str, Any]:
        """Where the values of the calling thread are; under the lock."""
        if self._shared is None:
            return vars(self._module)
        return _own.values.get(self, self._shared)

    def own(self) -> dict[str, Any] | None:
        """What the calling thread has for itself."""
        return None if self._shared is None else _own.values.get(self)

    def begin(self, values: Mapping[str, Any]) -> dict[str, Any] | None:
        """The calling thread has these for itself from now on; returns what `end` takes."""
        with self.lock:
            self._threads += 1
            if self._shared is None:
                self._install()
            mine = _own.values
            former, mine[self] = mine.get(self), dict(values)
            return former

    def end(self, former: dict[str, Any] | None) -> None:
        """And from now on what it has had before, which may be what all have."""
        with self.lock:
            if former is None:
                _own.values.pop(self, None)
            else:
                _own.values[self] = former
            self._threads -= 1
            if not self._threads and self._shared is not None:
                # In this order: others look without the lock, and are not to find a stand-in that stands for itself.
                vars(self._module).update(self._shared)
                self._module.__class__ = self._former
                self._shared = None

    def _install(self) -> None:
        attributes = vars(self._module)
        self._shared = {name: attributes[name] for name in self._stands if name in attributes}
        self._former = type(self._module)
        namespace: dict[str, Any] = {name: self._property(name) for name in self._shared}
        namespace["__reduce__"] = lambda module: (importlib.import_module, (module.__name__,))
        # Without one, Python 3.14 takes the dictionary for all that there is, once code has asked several times:
        # https://github.com/python/cpython/issues/156399
        former = getattr(self._former, "__getattr__", self._former.__getattribute__)
        namespace["__getattr__"] = lambda module, name: former(module, name)
        attributes.update({name: self._stands[name](self._current(name)) for name in self._shared})
        self._module.__class__ = type(self._former.__name__, (self._former,), namespace)

    def _current(self, name: str) -> Current:
        def current() -> Any:
            shared = self._shared
            if shared is None:  # a stand-in that somebody has kept
                return getattr(self._module, name)
            return _own.values.get(self, shared)[name]

        return current

    def _property(self, name: str) -> property:
        current = self._current(name)

        def store(module: ModuleType, value: object) -> None:
            with self.lock:
                self.values[name] = value

        return property(lambda module: current(), store)


def per_thread(module: ModuleType, stands: Mapping[str, Callable[[Current], Any]]) -> PerThread:
    """The only one of a module."""
    return _all.setdefault(module.__name__, PerThread(module, stands))


_all: Final[dict[str, PerThread]] = {}


def inherited(body: Callable[..., object]) -> Callable[..., object]:
    """The body of a thread that is about to be started, which shares what the calling one has for itself."""
    mine = _own.values
    if not mine:
        return body

    def run_thread(*args: Any, **kwargs: Any) -> None:
        _own.values = mine.copy()
        body(*args, **kwargs)

    return run_thread


class Stream:
    """Stands for a standard stream."""

    def __init__(self, current: Current) -> None:
        self._hdphrs_current = current

    def __getattr__(self, name: str) -> Any:
        return getattr(self._hdphrs_current(), name)


def function(current: Current) -> Callable[..., Any]:
    """Stands for a function."""
    return lambda *args, **kwargs: current()(*args, **kwargs)


class Entries(list[Any]):
    """Stands for a list."""

    def __init__(self, current: Current) -> None:
        super().__init__()
        self._current = current


def _passing_on(name: str) -> Callable[..., Any]:
    return lambda self, *args, **kwargs: getattr(self._current(), name)(*args, **kwargs)


for _name in (
    *("append", "clear", "copy", "count", "extend", "index", "insert", "pop", "remove", "reverse", "sort"),
    *("__contains__", "__delitem__", "__eq__", "__getitem__", "__iter__", "__len__", "__repr__", "__setitem__"),
):
    setattr(Entries, _name, _passing_on(_name))
