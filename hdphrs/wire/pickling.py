"""The one pickler and the one unpickler.

What lives here: cloudpickle, with what a distributed `__main__` needs beyond it.

- Functions and classes of `__main__`, and of `__mp_main__`, which is what multiprocessing calls it, travel by value.
- So do their `functools.lru_cache` wrappers, which cloudpickle would take for importable names; the copy starts empty.
- Exceptions travel whatever their `__init__` asks for, with causes and contexts (`exceptions.py`).
- Receiving an instance never changes a class that this process has defined itself.  Plain cloudpickle would set all its
  attributes to what they were when the sender got its copy.
- Large buffers, those of arrays above all, stay where they are and travel beside the pickle.
"""

from __future__ import annotations

import functools
import io
import pickle
import sys
from collections.abc import Callable, Mapping
from types import FunctionType, NoneType
from typing import Any, Final
from weakref import WeakSet

import cloudpickle
from cloudpickle import cloudpickle as internals

from hdphrs.wire.bulk import BULK_BYTES_MIN, scatter
from hdphrs.wire.exceptions import Exceptions, is_plain
from hdphrs.wire.signals import came_between

PICKLE_PROTOCOL = 5

PLAIN = frozenset({int, float, complex, str, bytes, bool, NoneType})
"""Types that the plain pickler treats exactly as cloudpickle would, and much faster; they are immutable, too."""

PLAIN_OR_RANGE = PLAIN | {range}
"""The same holds of ranges, though what a pickle of one means is not told by its bytes alone: it names a class."""

Cached = functools._lru_cache_wrapper

_MAINS = ("__main__", "__mp_main__")
_SKELETON = b"_make_skeleton_"
"""What every pickle that holds a class by value mentions."""
_SEARCH_BYTES_MAX = 64 << 10
"""Larger pickles are not searched for it."""

_received: WeakSet[type] = WeakSet()
"""The classes that have come from other processes, by value."""


def dumps(value: object) -> bytes:
    """Pickle anything, functions and classes of `__main__` by value."""
    return _dump(value, None)


dump_plain: Final[Callable[[object], bytes]] = functools.partial(pickle.dumps, protocol=PICKLE_PROTOCOL)
"""Pickle what consists of `PLAIN` values, and of plain containers and ranges of them."""

load_plain: Final[Callable[[bytes], Any]] = pickle.loads
"""The inverse.  (Both without a step of Python, since each task takes them.)"""


def dump_parts(value: object) -> tuple[bytes, list[memoryview]]:
    """Pickle anything; its large buffers are left where they are, for `gather`."""
    buffers: list[memoryview] = []

    def stays_in(buffer: pickle.PickleBuffer) -> bool:
        try:
            raw = buffer.raw()
        except BufferError:  # it has gaps
            return True
        if raw.nbytes < BULK_BYTES_MIN:
            return True
        buffers.append(raw)
        return False

    return _dump(value, stays_in, buffers.clear), buffers


def dump_plain_parts(error: BaseException) -> bytes:
    """Pickle what is plain of an exception, in case that the rest of it does not unpickle."""
    return _dump_once(error, None, Exceptions(is_plain))


def _dump(
    value: object,
    stays_in: Callable[[pickle.PickleBuffer], bool] | None,
    begin_again: Callable[[], None] = lambda: None,
) -> bytes:
    exceptions = Exceptions()
    try:
        return _dump_once(value, stays_in, exceptions)
    except BaseException as obstacle:
        if not exceptions.met or came_between(obstacle):
            raise
        try:  # it may be for a part of an exception, which can be left out
            begin_again()
            return _dump_once(value, stays_in, Exceptions(_Trial().why_not))
        except BaseException as another:
            if came_between(another):
                raise
        raise


def _dump_once(value: object, stays_in: Callable[[pickle.PickleBuffer], bool] | None, exceptions: Exceptions) -> bytes:
    if "__mp_main__" in sys.modules:
        cloudpickle.register_pickle_by_value(sys.modules["__mp_main__"])
    with io.BytesIO() as file:
        _Pickler(file, PICKLE_PROTOCOL, stays_in, exceptions).dump(value)
        return file.getvalue()


class _Trial:
    """Finds out which parts of exceptions pickle, each of them once."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[object, str | None]] = {}

    def why_not(self, value: object) -> str | None:
        """As `Travels`."""
        if type(value) in PLAIN:
            return None
        if id(value) not in self._known:
            self._known[id(value)] = value, None  # should it refer to itself
            self._known[id(value)] = value, self._try(value)
        return self._known[id(value)][1]

    def _try(self, value: object) -> str | None:
        try:
            _dump_once(value, None, Exceptions(self.why_not))
        except BaseException as obstacle:
            if came_between(obstacle):
                raise
            return f"{type(obstacle).__name__}: {obstacle}"
        return None


def loads(data: bytes) -> Any:
    """The inverse of `dumps`."""
    if len(data) <= _SEARCH_BYTES_MAX and _SKELETON not in data:
        return pickle.loads(data)
    return _Unpickler(io.BytesIO(data)).load()


def load_parts(payload: memoryview, start: int = 0) -> Any:
    """What was pickled into a payload, from `start` on.  Its arrays are views of the payload, and may be written to if
    that may be, and if they could be where they came from."""
    pickled, buffers = scatter(payload, start)
    return _Unpickler(_Reader(pickled), buffers=buffers).load()


def by_reference(named: object) -> bool:
    """Whether a function or class pickles as a name that other processes import."""
    module_name = getattr(named, "__module__", None)
    if not isinstance(module_name, str) or module_name in _MAINS:
        return False
    by_value = cloudpickle.list_registry_pickle_by_value()
    if by_value and any(f"{module_name}.".startswith(f"{name}.") for name in by_value):
        return False
    found: Any = sys.modules.get(module_name)
    for part in str(getattr(named, "__qualname__", "")).split("."):
        found = getattr(found, part, None)
    return found is named


def is_received(cls: type) -> bool:
    """Whether a class was defined in another process, and unpickled in this one."""
    return cls in _received


class _Pickler(cloudpickle.Pickler):  # type: ignore[misc]
    """Knows about caches.

    A cached function that calls itself needs care: the wrapper is made from the function, which refers to the wrapper.
    So the function is pickled hollow first, then the wrapper, and then the function's state as part of the wrapper's.
    """

    def __init__(
        self,
        file: io.BytesIO,
        protocol: int,
        buffer_callback: Callable[[pickle.PickleBuffer], bool] | None,
        exceptions: Exceptions,
    ) -> None:
        super().__init__(file, protocol, buffer_callback)
        self._exceptions = exceptions
        self._begun: set[int] = set()
        self._hollow: set[int] = set()

    def reducer_override(self, obj: Any) -> Any:
        kind = type(obj)
        if kind is Cached:
            return self._reduce_cached(obj)
        if issubclass(kind, BaseException):
            return self._exceptions.reduce(obj)
        reduced = super().reducer_override(obj)
        if kind is FunctionType and reduced is not NotImplemented:
            self._begun.add(id(obj))
            if id(obj) in self._hollow:
                self._hollow.discard(id(obj))
                return reduced[:2]
        return reduced

    def _reduce_cached(self, cached: Any) -> Any:
        if by_reference(cached):
            return NotImplemented
        wrapped = cached.__wrapped__
        attributes = {
            key: value for key, value in vars(cached).items() if key not in ("__wrapped__", "cache_parameters")
        }
        restore = state = None
        if type(wrapped) is FunctionType and id(wrapped) not in self._begun:
            reduced = super().reducer_override(wrapped)
            if reduced is not NotImplemented:
                self._hollow.add(id(wrapped))
                state, restore = reduced[2], reduced[5]
        made = (wrapped, cached.cache_parameters())
        return _make_cached, made, (attributes, restore, state), None, None, _set_cached


def _make_cached(function: Callable[..., Any], parameters: Mapping[str, Any]) -> Any:
    return functools.lru_cache(**parameters)(function)


def _set_cached(cached: Any, state: tuple[dict[str, Any], Callable[[Any, Any], object] | None, Any]) -> None:
    attributes, restore, function_state = state
    vars(cached).update(attributes)
    if restore is not None:
        restore(cached.__wrapped__, function_state)


class _Reader:
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


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        found = super().find_class(module, name)
        if module == internals.__name__:
            return _GUARDED.get(name, found)
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


def _set_class(cls: type, state: Any) -> Any:
    return internals._class_setstate(cls, state) if cls in _received else cls


_GUARDED: Mapping[str, Callable[..., Any]] = {
    "_make_skeleton_class": _guarded(internals._make_skeleton_class),
    "_make_skeleton_enum": _guarded(internals._make_skeleton_enum),
    "_class_setstate": _set_class,
}
