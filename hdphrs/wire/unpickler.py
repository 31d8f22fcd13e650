"""The unpickler: it never changes a class that this process has defined itself.

What lives here: the unpickler, the file that it reads from memory, and which classes have come from other processes.
Plain cloudpickle would set all attributes of a class to what they were when the sender got its copy.
"""

from __future__ import annotations

import io
import pickle
from collections.abc import Callable, Mapping
from typing import Any
from weakref import WeakSet

from cloudpickle import cloudpickle as internals

SKELETON = b"_make_skeleton_"
"""What every pickle that holds a class by value mentions."""

_received: WeakSet[type] = WeakSet()
"""The classes that have come from other processes, by value."""


def is_received(cls: type) -> bool:
    """Whether a class was defined in another process, and unpickled in this one."""
    return cls in _received


class Reader:
    """A file over memory that is not copied first."""

    def __init__(self, memory: memoryview) -> None:
        self._rest = memory

    def read(self, size: int) -> bytes:
        part, self._rest = bytes(self._rest[:size]), self._rest[size:]
        return part

    def readinto(self, buffer: memoryview) -> int:
        size = min(len(buffer), len(self._rest))
        buffer[:size] = self._rest[:size]
        self._rest = self._rest[size:]
        return size

    def readline(self) -> bytes:
        line = io.BytesIO(self._rest).readline()
        self._rest = self._rest[len(line) :]
        return line


class Unpickler(pickle.Unpickler):
    """Makes and changes only classes that come from elsewhere."""

    def find_class(self, module: str, name: str) -> Any:
        found = super().find_class(module, name)
        if module == internals.__name__:
            return GUARDED.get(name, found)
        return found


def _guarded(make: Callable[..., Any]) -> Callable[..., Any]:
    """Makes a class from afar, unless it is known here; then nothing is made, and no `__init_subclass__` runs."""

    def make_class(*args: Any) -> Any:
        cls = internals._DYNAMIC_CLASS_TRACKER_BY_ID.get(args[-2])
        if cls is None:
            cls = make(*args)
            _received.add(cls)
        return cls

    return make_class


def adopt_class(cls: type, tracker: str) -> type:
    """Take a class of this process for the one that another process knows by this tracker."""
    _received.add(cls)
    adopted: type = internals._lookup_class_or_track(tracker, cls)
    return adopted


def tracked_class(tracker: str) -> type | None:
    """The class of this process that other processes know by this tracker."""
    cls: type | None = internals._DYNAMIC_CLASS_TRACKER_BY_ID.get(tracker)
    return cls


def _set_class(cls: type, state: Any) -> Any:
    return internals._class_setstate(cls, state) if cls in _received else cls


GUARDED: Mapping[str, Callable[..., Any]] = {
    "_make_skeleton_class": _guarded(internals._make_skeleton_class),
    "_make_skeleton_enum": _guarded(internals._make_skeleton_enum),
    "_class_setstate": _set_class,
}
"""What the unpickler calls in the place of cloudpickle's functions of these names."""
