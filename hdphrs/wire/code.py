"""Functions as code: pickled once, named by a digest, sent once per process.

What lives here: the `CodeBook` of a process that makes tasks, and the `CodeShelf` of one that runs them.

Which functions are code
------------------------

A function that its module names (importable, or a global of `__main__`) is registered under its digest.  Lambdas,
closures, bound methods, partials and callable objects come and go with each spawn, so they travel *inline*, in front of
the arguments, unless they are large and used again.

A function of `__main__` is pickled by value, together with the globals it refers to.  The book keeps a `Watch` on what
those were bound to, and pickles the function anew when that has changed, as happens in a notebook.  A change inside a
captured list or dict is not noticed: captured data are constants.

Theory of operation
-------------------

All processes keep registered code for the length of the run, so there must be finitely much of it.  What a function is
pickled to is registered only a few times; if it changes at every step, it travels inline from then on.

Any thread may encode.  A page never changes once it is in the book, and pickling, which runs the user's code, holds no
lock.  A digest counts as registered only after `register` has returned: no task that uses it overtakes its code, and an
interrupted registration is made again.
"""

from __future__ import annotations

import contextlib
import sys
import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable, Mapping
from functools import partial
from hashlib import blake2b
from types import FunctionType
from typing import Any, NamedTuple

import msgpack

from hdphrs.errors import CannotTravelError
from hdphrs.protocol.tasks import Payload
from hdphrs.wire import values
from hdphrs.wire.bulk import bulk_of
from hdphrs.wire.capture import Watch, is_constant
from hdphrs.wire.obstacles import obstacle_in
from hdphrs.wire.pickling import Cached, dumps, loads
from hdphrs.wire.search_path import extend_path
from hdphrs.wire.signals import came_between
from hdphrs.wire.values import arguments_of, dump_arguments, load_call, load_payload, reason, too_large

INLINE = b""
"""The digest of a task whose function travels in its payload."""

INLINE_BYTES_MAX = 256 << 10
"""A larger closure is registered as code if it is spawned again."""

PAGES_MAX = 1024
"""Functions that a book remembers; the oldest are forgotten, and pickled again when they are spawned again."""

VERSIONS_MAX = 8
"""Times that one function object is registered, each time with other captured values."""

SHELVED_INLINE_MAX = 256
"""Inline functions that a scheduler keeps unpickled."""

SHELVED_INLINE_BYTES_MAX = 16 << 10
"""Larger ones are unpickled each time."""


class Known(NamedTuple):
    """A function that may have changed by the time that its call is looked at."""

    meaning: bytes
    chance: bytes

    def key(self, args: tuple[Any, ...], path: bytes) -> bytes:
        """The ledger's key of its call with arguments that are all `PLAIN`, as by `CodeBook.key`."""
        from hdphrs.wire.meaning import key_of  # its imports delay the start of a scheduler

        pickled = bytes(dump_arguments("", args, {}, self.chance)).replace(self.chance, b"", 1)
        return key_of(self.meaning, args, {}, pickled, self.chance + path)


class _Page:
    """What the book knows about one function object; it never changes, but may be completed."""

    __slots__ = ("data", "digest", "function", "meaning", "versions", "watch")

    def __init__(
        self, function: weakref.ref[Callable[..., Any]], watch: Watch, digest: bytes, data: bytes, versions: int
    ) -> None:
        self.function = function
        self.watch = watch
        self.digest = digest
        self.data = data
        """The pickled function; empty if it has a digest, or is too large to be kept."""
        self.versions = versions
        self.meaning: bytes | None = None
        """What it means, once that has been asked."""


class CodeBook:
    """The functions that this process has made tasks of."""

    def __init__(self, register: Callable[[bytes, Payload], None]) -> None:
        """`register(digest, data)` tells the node about new code, before the first task that uses it."""
        self.recursion_limit = 0
        """The program's, if it has become known here: the own one is higher then, and must not add up on its way."""
        self.chance = b""
        """On what random numbers depend beside the path (`hdphrs.api.seeds`): travels with each call, and back to the
        book of whoever runs it."""
        self._register = register
        self._registered: set[bytes] = set()
        self._registering = threading.RLock()  # a signal handler may spawn while its thread registers
        self._pages: dict[int, _Page] = {}

    def encode(
        self, name: str, function: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> tuple[bytes, Payload]:
        """The call as (code digest, payload).

        Raises:
            CannotTravelError: function or arguments do not pickle, or are too large; the message names the task and
                the culprit.
        """
        digest, data = self.code_of(name, function)
        if digest:
            return digest, dump_arguments(name, args, kwargs, self.chance)
        return INLINE, dump_arguments(name, args, kwargs, self.chance, data)

    def code_of(self, name: str, function: Callable[..., Any]) -> tuple[bytes, bytes]:
        """The function as (code digest, nothing that is of use), or else as (`INLINE`, its pickle).

        Raises:
            CannotTravelError: it does not pickle, or is too large.
        """
        return self.known_code_of(function) or self._pickle(function, name)

    def known_code_of(self, function: Callable[..., Any]) -> tuple[bytes, bytes] | None:
        """The same, if it has been asked before, and the function has not changed."""
        page = self._pages.get(id(function))  # GIL: reading what another thread changes
        if page is not None and page.function() is function and (page.digest or page.data) and page.watch.holds():
            return page.digest, page.data
        return None

    def known(self, function: Callable[..., Any]) -> Known | None:
        """What `key` needs of a function, for a call of it that it is asked about later; None unless it has been asked
        about it before, and the function has not changed since."""
        known = self.known_code_of(function)
        meaning = self._pages[id(function)].meaning if known is not None else None
        return Known(meaning, self.chance) if meaning else None

    def key(
        self,
        function: Callable[..., Any],
        code: bytes,
        payload: Payload,
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
        path: bytes,
    ) -> bytes:
        """The ledger's key of a call that has just been encoded as (code, payload); empty if it has none.

        Args:
            path: that of its task, on which its random numbers depend, if it draws any.
        """
        from hdphrs.wire.meaning import key_of, meaning_of  # its imports delay the start of a scheduler

        page = self._pages.get(id(function))
        if page is None or page.function() is not function:
            meaning = meaning_of(function)
        else:
            if page.meaning is None:
                page.meaning = meaning_of(function)
            meaning = page.meaning
        if not meaning:
            return b""
        pickled = arguments_of(code, payload).replace(self.chance, b"", 1)
        return key_of(meaning, args, kwargs, pickled, self.chance + path)

    def adopt(self, function: Callable[..., Any], digest: bytes) -> None:
        """`function` has been unpickled here from the code `digest`: its own spawns reuse that digest."""
        self._registered.add(digest)
        if isinstance(function, FunctionType | Cached):
            self._remember(function, Watch(function), digest, b"", 0)

    def keep(self, function: Callable[..., Any], data: bytes) -> None:
        """`function` has been unpickled here from `data`, and captures only constants: its own spawns travel as `data`.

        Pickled anew it would be other bytes, though the same function, and a piece would not know it again.
        """
        self._remember(function, Watch(function), INLINE, b"" if len(data) > INLINE_BYTES_MAX else data, 0)

    def _pickle(self, function: Callable[..., Any], name: str) -> tuple[bytes, bytes]:
        """The digest of the function, or else its pickle."""
        known = self._pages.get(id(function))
        if known is not None and known.function() is not function:
            known = None
        watch: Watch | None = None
        try:
            if isinstance(function, FunctionType | Cached) or (type(function) is partial and is_constant(function)):
                watch = Watch(function)  # before pickling, so that a change in between is noticed
            data = dumps(function)
        except BaseException as error:
            if came_between(error):
                raise
            why = f"{reason(error)}{obstacle_in(function)}"
            raise CannotTravelError(f"the function of task {name} does not pickle: {why}") from error
        if len(data) > values.PAYLOAD_BYTES_MAX:
            raise too_large(f"the function of task {name}, with what it captures, is", len(data))
        if watch is None:
            return INLINE, _with_path(data)
        versions = 0 if known is None else known.versions
        again = known is not None and known.watch.holds()
        digest = INLINE
        if _is_named(function) or (again and len(data) > INLINE_BYTES_MAX):
            candidate = blake2b(data, digest_size=16).digest()
            if candidate in self._registered:
                digest = candidate
            elif versions < VERSIONS_MAX:
                versions += 1
                self._publish(candidate, data)
                digest = candidate
        if not digest:
            data = _with_path(data)
        self._remember(function, watch, digest, b"" if digest or len(data) > INLINE_BYTES_MAX else data, versions)
        return digest, data

    def _publish(self, digest: bytes, data: bytes) -> None:
        packed = bulk_of(msgpack.packb([self.recursion_limit or sys.getrecursionlimit(), sys.path, data]))
        with self._registering:
            if digest not in self._registered:
                self._register(digest, packed)
                self._registered.add(digest)

    def _remember(self, function: Callable[..., Any], watch: Watch, digest: bytes, data: bytes, versions: int) -> None:
        pages = self._pages
        key = id(function)

        def forget(reference: weakref.ref[Any]) -> None:
            page = pages.get(key)
            if page is not None and page.function is reference:
                pages.pop(key, None)

        pages.pop(key, None)
        pages[key] = _Page(weakref.ref(function, forget), watch, digest, data, versions)
        while len(pages) > PAGES_MAX:
            with contextlib.suppress(StopIteration, RuntimeError):  # another thread changes the book
                pages.pop(next(iter(pages)), None)


class CodeShelf:
    """The functions that this process can run."""

    def __init__(self, book: CodeBook) -> None:
        self._book = book
        self._taught: dict[bytes, Payload] = {}
        self._functions: dict[bytes, Callable[..., Any]] = {}
        self._inline: OrderedDict[bytes, Callable[..., Any]] = OrderedDict()

    def teach(self, digest: bytes, data: Payload) -> None:
        """Code arrives; it is unpickled when a task first needs it."""
        if digest not in self._functions:
            self._taught[digest] = data

    def decode(
        self, name: str, digest: bytes, payload: Payload
    ) -> tuple[Callable[..., Any], tuple[Any, ...], Mapping[str, Any]]:
        """The call behind (digest, payload).

        Raises:
            CannotTravelError: function or arguments do not unpickle here.
        """
        try:
            if digest:
                function = self._functions.get(digest) or self._unpack(digest)
                arguments = load_payload(payload)
            else:
                function, arguments = load_call(payload, self._inline_function)
        except BaseException as error:
            raise CannotTravelError(f"task {name} does not unpickle here: {reason(error)}") from error
        if type(arguments) is list:
            args, kwargs, self._book.chance = arguments
            return function, args, kwargs
        *_, self._book.chance = arguments
        return function, arguments[:-1], {}

    def function(self, name: str, digest: bytes) -> Callable[..., Any]:
        """The function behind a digest.

        Raises:
            CannotTravelError: it does not unpickle here.
        """
        try:
            return self._functions.get(digest) or self._unpack(digest)
        except BaseException as error:
            raise CannotTravelError(f"task {name} does not unpickle here: {reason(error)}") from error

    def _unpack(self, digest: bytes) -> Callable[..., Any]:
        limit, path, data = msgpack.unpackb(bytes(self._taught[digest]))
        self._book.recursion_limit = max(self._book.recursion_limit, limit)
        # A spawned call takes three frames (function, get, and the C stack's counter) where a plain one takes one.
        sys.setrecursionlimit(max(sys.getrecursionlimit(), 3 * limit + 1000))
        extend_path(path)
        function: Callable[..., Any] = loads(data)
        self._book.adopt(function, digest)
        self._functions[digest] = function
        del self._taught[digest]  # not before: a second attempt must meet the same error as the first
        return function

    def _inline_function(self, data: bytes) -> Callable[..., Any]:
        function = self._inline.get(data)
        if function is None:
            function = loads(data)
            # Two tasks must not share what one of them can change.
            if type(function) in (FunctionType, partial) and is_constant(function):
                self._book.keep(function, data)
                if len(data) <= SHELVED_INLINE_BYTES_MAX:
                    self._inline[data] = function
                    if len(self._inline) > SHELVED_INLINE_MAX:
                        self._inline.popitem(last=False)
        return function


class _Elsewhere:
    """Pickles as what is loaded once this process's modules can be found."""

    def __init__(self, path: list[str], data: bytes) -> None:
        self._path = path
        self._data = data

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return load_elsewhere, (self._path, self._data)


def load_elsewhere(path: list[str], data: bytes) -> Any:
    """Unpickle what refers to modules that a program has made known to its process only."""
    extend_path(path)
    return loads(data)


def _with_path(data: bytes) -> bytes:
    """The pickle of something that may refer to modules, for processes that were not told where they are."""
    installed = (sys.prefix, sys.base_prefix)
    path = [entry for entry in sys.path if entry and not entry.startswith(installed)]
    return dumps(_Elsewhere(path, data)) if path else data


def _is_named(function: Callable[..., Any]) -> bool:
    """Whether a module holds the function under its name: there are finitely many of those."""
    name = str(getattr(function, "__name__", ""))
    plain: Any = function
    while isinstance(plain, Cached):
        plain = getattr(plain, "__wrapped__", None)
    module = sys.modules.get(getattr(function, "__module__", None) or "")
    return getattr(plain, "__globals__", {}).get(name) is function or getattr(module, name, None) is function
