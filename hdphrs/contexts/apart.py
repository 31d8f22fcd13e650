"""Attributes of a module of which some threads have values of their own for a while.

What lives here: `PerThread`.  What does not: which attributes these are, and when a thread has its own (`aspects.py`).

Theory of operation
-------------------

A child that runs in a thread of the process (a task awaits it in an event loop, or a thread of a task gets it) is to
find the standard streams and the filters of warnings as another process has them, and the task in the main thread,
which goes on meanwhile, those that it has set.  So as long as a thread has values of its own, the module is of another
class, whose properties look at the thread first.  Code that reads the module's dictionary (`print`, the functions of
`warnings`) finds stand-ins there, which pass on what is done with them to the value of the calling thread.

The tasks of the main thread take turns there, and the threads that one of them has started go on meanwhile.  These have
a `Home` in common.  When such a task is left, the module gets the other class too, the task's values stay in their
dictionary, which the home refers to, and the main thread takes another dictionary: nothing is copied, so what a thread
sets just then is not lost.  A home lives as long as a thread that has it; without any, nothing of this is done.

Readers take no lock, nor does a thread that starts, and one that ends does not wait for it: whoever holds the lock may
be interrupted by a finaliser or a signal handler, which may wait for just that thread.
"""

from __future__ import annotations

import importlib
import os
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from threading import get_ident
from types import ModuleType
from typing import Any, Final, TypeAlias
from weakref import ref

Current: TypeAlias = Callable[[], Any]
"""What the calling thread has."""


class Home:
    """Of a task in the main thread, for the threads that it has started."""

    __slots__ = ("__weakref__", "values")

    def __init__(self) -> None:
        self.values: dict[str, Any] | None = None
        """The task's; None as long as the module has the attributes itself, and they are the task's."""


@dataclass(frozen=True, slots=True)
class Left:
    """What a task of the main thread has while another one runs there."""

    values: dict[str, Any]
    home: ref[Home] | None = None


class _Own(threading.local):
    def __init__(self) -> None:
        self.values: dict[PerThread, dict[str, Any]] = {}
        """By owner, what the calling thread has for itself."""
        self.homes: dict[PerThread, Home] = {}
        """And whose it has otherwise, if not those of all."""


_own: Final = _Own()


class PerThread:
    """Attributes of one module."""

    def __init__(self, module: ModuleType, stands: Mapping[str, Callable[[Current], Any]]) -> None:
        """`stands` makes, by name of an attribute, what passes on to the value of the calling thread."""
        self.lock: Final = threading.RLock()
        """Held by who looks at several of the attributes, or changes some."""
        self.main: int = 0
        """The thread whose tasks have homes."""
        self._module = module
        self._stands = {name: stand for name, stand in stands.items() if name in vars(module)}
        self._shared: dict[str, Any] | None = None
        """The values of the task in the main thread, and of every thread without values of its own; None while no
        thread has its own, so that the module holds the values itself."""
        self._threads = 0
        """Those that have some of their own."""
        self._homes: dict[ref[Home], None] = {}
        """Of tasks with threads: while there are any, the module keeps its class."""
        self._home: ref[Home] | None = None
        """The home of the task that runs in the main thread; None if that task has started no thread."""
        self._former: type = ModuleType

    @property
    def values(self) -> dict[str, Any]:
        """Where the values of the calling thread are; under the lock."""
        shared = self._shared
        return vars(self._module) if shared is None else self._of_thread(shared)

    def _of_thread(self, shared: dict[str, Any]) -> dict[str, Any]:
        values = _own.values.get(self)
        if values is None and (home := _own.homes.get(self)) is not None:
            values = home.values
        return shared if values is None else values

    def own(self) -> dict[str, Any] | None:
        """What the calling thread has for itself."""
        return None if self._shared is None else _own.values.get(self)

    # ---- threads that run tasks ------------------------------------------------------------------------------

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
            self._tidy()

    # ---- the main thread, whose tasks take turns --------------------------------------------------------------

    @property
    def plain(self) -> dict[str, Any] | None:
        """In the main thread, under the lock: where the values of the running task are, if it may be left for another
        one by setting others there; None if some threads would find those too, or have their own."""
        return vars(self._module) if self._shared is None and self._home is None else None

    def exchange(self, to: Left) -> Left:
        """In the main thread: from now on another task runs, which has these values, or had them when it was left;
        returns what the former has."""
        with self.lock:
            home = self._home
            if self._shared is None and home is not None and home() is not None:
                self._install()
            self._home = to.home
            values = self._shared
            if values is None:
                attributes = vars(self._module)
                values = {name: attributes.get(name) for name in to.values}
                attributes.update(to.values)
            else:
                self._shared = to.values
                self._tidy()
            return Left(values, home)

    def home(self) -> Home:
        """In the main thread: that of the running task, for a thread that it starts.  Without the lock."""
        home = None if self._home is None else self._home()
        if home is None:
            home = Home()
            self._home = known = ref(home, self._homes_without)
            self._homes[known] = None
            # GIL: what a thread finds of its task.  A thread that installs the class looks at `_home` after this.
            while home.values is not self._shared:
                home.values = self._shared
        return home

    def _homes_without(self, gone: ref[Home]) -> None:
        self._homes.pop(gone, None)

    def settle(self) -> None:
        """A thread ends, perhaps the last one that needed the other class; if the lock is not free, whoever has it next
        sees to that."""
        if self._shared is not None and not self._homes and self.lock.acquire(blocking=False):
            try:
                self._tidy()
            finally:
                self.lock.release()

    # ---- the module's class ----------------------------------------------------------------------------------

    def _install(self) -> None:
        attributes = vars(self._module)
        names = [name for name in self._stands if name in attributes]
        self._former = type(self._module)
        namespace: dict[str, Any] = {name: self._property(name) for name in names}
        namespace["__reduce__"] = lambda module: (importlib.import_module, (module.__name__,))
        # Without one, Python 3.14 takes the dictionary for all that there is, once code has asked several times:
        # https://github.com/python/cpython/issues/156399
        former = getattr(self._former, "__getattr__", self._former.__getattribute__)
        namespace["__getattr__"] = lambda module, name: former(module, name)
        # In this order: other threads look without the lock.  What they set from now on waits for it.
        self._module.__class__ = type(self._former.__name__, (self._former,), namespace)
        shared = {name: attributes[name] for name in names}
        self._shared = shared
        if self._home is not None and (home := self._home()) is not None:
            home.values = shared
        attributes.update({name: self._stands[name](self._current(name)) for name in names})

    def _tidy(self) -> None:
        """Give the module its own class and values back, once no thread has values of its own."""
        if self._threads or self._homes or self._shared is None:
            return
        # In this order, for the same reason: nobody is to find a stand-in that stands for itself.
        vars(self._module).update(self._shared)
        self._module.__class__ = self._former
        self._shared = None

    def _current(self, name: str) -> Current:
        def current() -> Any:
            shared = self._shared  # GIL: what a thread finds of its task
            if shared is None:  # a stand-in that somebody has kept, or the class is about to change
                return vars(self._module)[name]
            return self._of_thread(shared)[name]

        return current

    def _property(self, name: str) -> property:
        current = self._current(name)

        def store(module: ModuleType, value: object) -> None:
            with self.lock:
                values = self.values
                former, values[name] = values.get(name), value
            del former  # not under the lock: this may be the last reference, and a finaliser takes time

        return property(lambda module: current(), store)


def per_thread(module: ModuleType, stands: Mapping[str, Callable[[Current], Any]]) -> PerThread:
    """The only one of a module."""
    return _all.setdefault(module.__name__, PerThread(module, stands))


_all: Final[dict[str, PerThread]] = {}


def _before_fork() -> None:
    for one in _all.values():
        one.lock.acquire()


def _after_fork() -> None:
    for one in _all.values():
        one.lock.release()


# The copy has the forking thread only: it would wait for ever for a lock that another one holds.
os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork)


def inherited(body: Callable[..., object]) -> Callable[..., object]:
    """The body of a thread that is about to be started, which shares what the calling one has."""
    mine, homes = _own.values.copy(), _own.homes.copy()
    if not homes:
        thread = get_ident()
        homes = {one: one.home() for one in list(_all.values()) if one.main == thread}
    if not mine and not homes:
        return body

    def run_thread(*args: Any, **kwargs: Any) -> None:
        _own.values, _own.homes = mine, homes
        body(*args, **kwargs)
        # After an exception, which is shown when this has returned, they go with the thread.
        left = list(homes)
        homes.clear()
        for one in left:
            one.settle()

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
