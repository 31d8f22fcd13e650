"""Functions as code: pickled once, named by a digest, sent once per process.

What lives here: the `CodeBook` of a process that makes tasks, and the `CodeShelf` of one that runs them.

Which functions are code
------------------------

A function that its module names (importable, or a global of `__main__`) is registered under its digest.  Lambdas,
closures, bound methods, partials and callable objects come and go with each spawn, so they travel *inline*, in front of
the arguments, unless they are large and used again.

A function of `__main__` is pickled by value, together with the globals it refers to.  The book remembers which objects
those were and pickles the function anew when one of the names has been bound to another object, as happens in a
notebook.  A change inside a captured list or dict is not noticed: captured data are constants.
"""

from __future__ import annotations

import dis
import sys
import weakref
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from hashlib import blake2b
from types import CellType, CodeType, FunctionType
from typing import Any

import cloudpickle
import msgpack

from hdphrs.errors import CannotTravelError
from hdphrs.wire.values import PICKLE_PROTOCOL, dump_arguments, load, reason

INLINE = b""
"""The digest of a task whose function travels in its payload."""

INLINE_BYTES_MAX = 256 << 10
"""A larger closure is registered as code if it is spawned again."""

SHELVED_INLINE_MAX = 256
"""Inline functions that a scheduler keeps unpickled."""

_MISSING = object()
_CACHEABLE = (FunctionType, partial)


class _Page:
    """What the book knows about one function object."""

    __slots__ = ("__weakref__", "bindings", "data", "digest", "function")

    def __init__(self, function: Callable[..., Any], data: bytes, digest: bytes) -> None:
        self.function = weakref.ref(function)
        self.data = data
        self.digest = digest
        self.bindings = tuple(_bindings(function))

    def is_current(self) -> bool:
        return all(place.get(name, _MISSING) is value for place, name, value in self.bindings)


class CodeBook:
    """The functions that this process has made tasks of."""

    def __init__(self, register: Callable[[bytes, bytes], None]) -> None:
        """`register(digest, data)` tells the node about new code, before the first task that uses it."""
        self._register = register
        self._pages: dict[int, _Page] = {}
        self._registered: set[bytes] = set()

    def encode(
        self, name: str, function: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> tuple[bytes, bytes]:
        """The call as (code digest, payload).

        Raises:
            CannotTravelError: function or arguments do not pickle; the message names the task and the culprit.
        """
        page = self._page(function, name)
        arguments = dump_arguments(name, args, kwargs)
        if page is None:
            data = _pickle_function(function, name)
        elif page.digest:
            return page.digest, arguments
        else:
            data = page.data
        return INLINE, len(data).to_bytes(4, "big") + data + arguments

    def adopt(self, function: Callable[..., Any], digest: bytes) -> None:
        """`function` has been unpickled here from the code `digest`: its own spawns reuse that digest."""
        if type(function) is FunctionType:
            self._remember(_Page(function, b"", digest))
            self._registered.add(digest)

    def _page(self, function: Callable[..., Any], name: str) -> _Page | None:
        if type(function) not in _CACHEABLE:
            return None
        page = self._pages.get(id(function))
        if page is not None and page.function() is function and page.is_current():
            if not page.digest and len(page.data) > INLINE_BYTES_MAX:
                self._publish(page)
            return page
        page = _Page(function, _pickle_function(function, name), INLINE)
        self._remember(page)
        if type(function) is FunctionType and function.__globals__.get(function.__name__) is function:
            self._publish(page)
        return page

    def _remember(self, page: _Page) -> None:
        function = page.function()
        key = id(function)
        self._pages[key] = page
        weakref.finalize(function, self._forget, key, weakref.ref(page)).atexit = False

    def _forget(self, key: int, page: weakref.ref[_Page]) -> None:
        if self._pages.get(key) is page():
            self._pages.pop(key, None)

    def _publish(self, page: _Page) -> None:
        data = msgpack.packb([sys.getrecursionlimit(), sys.path, page.data])
        page.digest = blake2b(page.data, digest_size=16).digest()
        if page.digest not in self._registered:
            self._registered.add(page.digest)
            self._register(page.digest, data)


class CodeShelf:
    """The functions that this process can run."""

    def __init__(self, book: CodeBook) -> None:
        self._book = book
        self._taught: dict[bytes, bytes] = {}
        self._functions: dict[bytes, Callable[..., Any]] = {}
        self._inline: OrderedDict[bytes, Callable[..., Any]] = OrderedDict()

    def teach(self, digest: bytes, data: bytes) -> None:
        """Code arrives; it is unpickled when a task first needs it."""
        self._taught[digest] = data

    def decode(
        self, name: str, digest: bytes, payload: bytes
    ) -> tuple[Callable[..., Any], tuple[Any, ...], Mapping[str, Any]]:
        """The call behind (digest, payload).

        Raises:
            CannotTravelError: function or arguments do not unpickle here.
        """
        try:
            if digest:
                function = self._functions.get(digest) or self._unpack(digest)
                arguments = load(payload)
            else:
                end = 4 + int.from_bytes(payload[:4], "big")
                function = self._inline_function(payload[4:end])
                arguments = load(payload[end:])
        except Exception as error:
            raise CannotTravelError(f"task {name} does not unpickle here: {reason(error)}") from error
        if type(arguments) is list:
            return function, *arguments
        return function, arguments, {}

    def _unpack(self, digest: bytes) -> Callable[..., Any]:
        limit, path, data = msgpack.unpackb(self._taught.pop(digest))
        # A spawned call takes three frames (function, get, and the C stack's counter) where a plain one takes one.
        sys.setrecursionlimit(max(sys.getrecursionlimit(), 3 * limit + 1000))
        sys.path.extend(entry for entry in path if entry not in sys.path)
        function: Callable[..., Any] = load(data)
        self._functions[digest] = function
        self._book.adopt(function, digest)
        return function

    def _inline_function(self, data: bytes) -> Callable[..., Any]:
        function = self._inline.get(data)
        if function is None:
            function = self._inline[data] = load(data)
            if len(self._inline) > SHELVED_INLINE_MAX:
                self._inline.popitem(last=False)
        return function


def _pickle_function(function: Callable[..., Any], name: str) -> bytes:
    try:
        return cloudpickle.dumps(function, PICKLE_PROTOCOL)  # type: ignore[no-any-return]
    except Exception as error:
        raise CannotTravelError(f"the function of task {name} does not pickle: {reason(error)}") from error


def _by_value(function: Callable[..., Any]) -> bool:
    module = sys.modules.get(getattr(function, "__module__", None) or "")
    found = getattr(module, getattr(function, "__name__", ""), None)
    return isinstance(function, partial) or module is None or module.__name__ == "__main__" or found is not function


def _bindings(function: Callable[..., Any]) -> Iterator[tuple[Mapping[str, Any], str, Any]]:
    """The global names, and closure cells, that a function pickled by value captures: where, name, present value."""
    seen: set[int] = set()
    waiting: list[Any] = [function]
    while waiting:
        here = waiting.pop()
        if isinstance(here, partial):
            waiting.append(here.func)
            continue
        if not isinstance(here, FunctionType) or id(here) in seen or not _by_value(here):
            continue
        seen.add(id(here))
        for name in _global_names(here.__code__):
            if name in here.__globals__:
                value = here.__globals__[name]
                yield here.__globals__, name, value
                waiting.append(value)
        for cell in here.__closure__ or ():
            view = _CellView(cell)
            value = view.get("cell_contents", _MISSING)
            yield view, "cell_contents", value
            waiting.append(value)


class _CellView(dict[str, Any]):
    """A closure cell, looked at through the one method of a mapping that `_Page` uses."""

    def __init__(self, cell: CellType) -> None:
        super().__init__()
        self._cell = cell

    def get(self, key: str, default: Any = None) -> Any:
        try:
            return self._cell.cell_contents
        except ValueError:  # the cell is still empty
            return default


def _global_names(code: CodeType) -> set[str]:
    names = {
        instruction.argval
        for instruction in dis.get_instructions(code)
        if instruction.opname in ("LOAD_GLOBAL", "LOAD_NAME")
    }
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            names |= _global_names(constant)
    return names
