"""The one pickler and the one unpickler.

What lives here: pickling whole values, by cloudpickle with what a distributed `__main__` needs beyond it.

- Functions and classes of `__main__`, and of `__mp_main__`, which is what multiprocessing calls it, travel as their
  names together with their definitions (`definitions.py`), from which other processes make one module (`stand_in.py`).
- Proxies of a `multiprocessing.Manager` bring the key along with which they talk to it.
- Exceptions travel whatever their `__init__` asks for, with causes and contexts (`exceptions.py`).
- Large buffers, those of arrays above all, stay where they are and travel beside the pickle.

What all picklers have in common is in `pickler.py`.
"""

from __future__ import annotations

import functools
import io
import pickle
from collections.abc import Callable
from types import FunctionType
from typing import Any, Final

from hdphrs.wire.bulk import BULK_BYTES_MIN, scatter
from hdphrs.wire.definitions import definitions
from hdphrs.wire.exceptions import Exceptions, is_plain
from hdphrs.wire.pickler import PICKLE_PROTOCOL, PLAIN, BasePickler, Cached, by_reference
from hdphrs.wire.signals import came_between
from hdphrs.wire.unpickler import SKELETON, Reader, Unpickler, is_received

__all__ = [
    "PICKLE_PROTOCOL",
    "PLAIN",
    "PLAIN_OR_RANGE",
    "Cached",
    "by_reference",
    "dump_parts",
    "dump_plain",
    "dumps",
    "is_received",
    "load_parts",
    "load_plain",
    "loads",
]

PLAIN_OR_RANGE = PLAIN | {range}
"""The same holds of ranges, though what a pickle of one means is not told by its bytes alone: it names a class."""

_SEARCH_BYTES_MAX = 64 << 10
"""Larger pickles are not searched for classes by value."""


def dumps(value: object) -> bytes:
    """Pickle anything, functions and classes of `__main__` too."""
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
    if len(data) <= _SEARCH_BYTES_MAX and SKELETON not in data:
        return pickle.loads(data)
    return Unpickler(io.BytesIO(data)).load()


def load_parts(payload: memoryview, start: int = 0) -> Any:
    """What was pickled into a payload, from `start` on.  Its arrays are views of the payload, and may be written to if
    that may be, and if they could be where they came from."""
    pickled, buffers = scatter(payload, start)
    return Unpickler(Reader(pickled), buffers=buffers).load()


class _Pickler(BasePickler):
    """What the main module names travels with its definitions."""

    def _link(self, named: Any) -> Any:
        return definitions.link(named)

    def _link_sentinel(self, value: object) -> Any:
        return definitions.link_sentinel(value)

    def _globals_of(self, function: FunctionType) -> Any:
        return definitions.globals_of(function)
