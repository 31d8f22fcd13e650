"""Functions as code: pickled once, named by a digest, sent once per process.

What lives here: the `CodeBook` of a process that makes tasks, and the `CodeShelf` of one that runs them.

Which functions are code
------------------------

A function that its module names (importable, or a global of `__main__`) is registered under its digest.  Lambdas,
closures, bound methods, partials and callable objects come and go with each spawn, so they travel *inline*, in front of
the arguments, unless they are functions that capture something large.

A function of `__main__` is pickled by value, together with the globals it refers to.  The book keeps a `Watch` on what
those were bound to, and pickles the function anew when that has changed, as happens in a notebook.  A change inside a
captured list or dict is not noticed: captured data are constants.

Theory of operation
-------------------

The node keeps registered code as long as somebody here may send a task by its digest alone.  That is so while a
`Claim` on it lives.  The digests that the book hands out (`Digest`) refer to it, and so do the pages of the book: it
lives as long as the function object, or a task that waits to be sent, whether or not anybody thinks of it.  When it is
gone the node is told (`released`), and code that is needed again is registered again.  A book has pages for so many
bytes of code only.

A small function that changes at every step travels inline after a few times, because that costs least.

Any thread may encode.  A page never changes once it is in the book, and pickling, which runs the user's code, holds no
lock.  A digest counts as registered only after `register` has returned: no task that uses it overtakes its code, and an
interrupted registration is made again.
"""

from __future__ import annotations

import contextlib
import sys
import threading
import weakref
from collections import OrderedDict, deque
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from hashlib import blake2b
from types import FunctionType
from typing import Any, NamedTuple

import msgpack

from hdphrs.errors import CannotTravelError
from hdphrs.protocol.tasks import Payload
from hdphrs.wire import values
from hdphrs.wire.capture import Watch, is_constant
from hdphrs.wire.obstacles import obstacle_in
from hdphrs.wire.pickling import Cached, dump_parts, dumps, loads
from hdphrs.wire.reloads import reloads
from hdphrs.wire.search_path import extend_path
from hdphrs.wire.signals import came_between
from hdphrs.wire.values import arguments_of, dump_arguments, load_call, load_payload, reason, too_large, with_function


class Claim:
    """Keeps the code behind a digest at the node."""

    __slots__ = ("__weakref__", "digest", "size")

    def __init__(self, digest: bytes, size: int) -> None:
        self.digest: bytes = digest
        self.size: int = size


class Digest(bytes):
    """Names registered code, which stays registered as long as this object lives."""

    claim: Claim

    @property
    def size(self) -> int:
        """Bytes of the code."""
        return self.claim.size


INLINE = b""
"""The digest of a task whose function travels in its payload."""

CHANCE_BYTES = 18
"""Of `CodeBook.chance`, in front of a context."""

INLINE_BYTES_MAX = 256 << 10
"""A larger closure is registered as code."""

PAGES_MAX = 1024
PAGES_BYTES_MAX = 64 << 20
"""Functions that a book remembers, and what they are pickled to; the oldest are forgotten, and pickled again when they
are spawned again."""

VERSIONS_MAX = 8
"""Times that one small function object is registered, each time with other captured values."""

SHELVED_INLINE_MAX = 256
"""Inline functions that a scheduler keeps unpickled."""

SHELVED_INLINE_BYTES_MAX = 16 << 10
"""Larger ones are unpickled each time."""


def with_context(chance: bytes, context: bytes) -> bytes:
    """What travels with a call beside its arguments: chance, and the packed context of its spawn, if there is one."""
    return chance.ljust(CHANCE_BYTES, b"\0") + context if context else chance


def parted(said: bytes) -> tuple[bytes, bytes]:
    """The inverse: chance, and context."""
    chance, context = said[:CHANCE_BYTES], said[CHANCE_BYTES:]
    return (chance if any(chance) else b""), context


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

    __slots__ = ("data", "digest", "epoch", "function", "meaning", "size", "versions", "watch")

    def __init__(
        self,
        function: weakref.ref[Callable[..., Any]],
        watch: Watch,
        digest: bytes,
        data: bytes,
        versions: int,
        size: int,
    ) -> None:
        self.function = function
        self.watch = watch
        self.digest = digest
        self.data = data
        """The pickled function; empty if it has a digest, or is too large to be kept."""
        self.versions = versions
        self.epoch = reloads.epoch
        """Modules that are loaded again later are not what was pickled."""
        self.size = size
        """Bytes of the pickle, wherever that is."""
        self.meaning: bytes | None = None
        """What it means, once that has been asked."""


class CodeBook:
    """The functions that this process has made tasks of."""

    def __init__(self, register: Callable[[bytes, Payload], None]) -> None:
        """`register(digest, data)` tells the node about new code, before the first task that uses it."""
        self.chance = b""
        """On what random numbers depend beside the path (`hdphrs.api.seeds`): travels with each call, and back to the
        book of whoever runs it."""
        self._register = register
        self._claims: dict[bytes, weakref.ref[Claim]] = {}
        """By digest, the latest."""
        self._alive: set[weakref.ref[Claim]] = set()
        """All of them: so that the end of each is heard of."""
        self._ended: deque[bytes] = deque()
        self._registering = threading.RLock()  # a signal handler may spawn while its thread registers
        self._pages: dict[int, _Page] = {}

    def encode(
        self,
        name: str,
        function: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
        context: bytes = b"",
    ) -> tuple[bytes, Payload]:
        """The call as (code digest, payload).

        Args:
            context: that of its spawn, packed.

        Raises:
            CannotTravelError: function or arguments do not pickle, or are too large; the message names the task and
                the culprit.
        """
        digest, data = self.code_of(name, function)
        said = with_context(self.chance, context)
        if digest:
            return digest, dump_arguments(name, args, kwargs, said)
        return INLINE, dump_arguments(name, args, kwargs, said, data)

    def code_of(self, name: str, function: Callable[..., Any]) -> tuple[bytes, bytes]:
        """The function as (code digest, nothing that is of use), or else as (`INLINE`, its pickle).

        Raises:
            CannotTravelError: it does not pickle, or is too large.
        """
        return self.known_code_of(function) or self._pickle(function, name)

    def known_code_of(self, function: Callable[..., Any]) -> tuple[bytes, bytes] | None:
        """The same, if it has been asked before, and the function has not changed."""
        page = self._pages.get(id(function))  # GIL: reading what another thread changes
        if page is None or page.function() is not function or not (page.digest or page.data):
            return None
        return (page.digest, page.data) if page.epoch == reloads.epoch and page.watch.holds() else None

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

    def adopt(self, function: Callable[..., Any], digest: Digest) -> None:
        """`function` has been unpickled here from the code `digest`: its own spawns reuse that digest."""
        if isinstance(function, FunctionType | Cached):
            self._remember(function, Watch(function), digest, b"", 0, 0)

    def keep(self, function: Callable[..., Any], data: bytes) -> None:
        """`function` has been unpickled here from `data`, and captures only constants: its own spawns travel as `data`.

        Pickled anew it would be other bytes, though the same function, and a piece would not know it again.
        """
        size = len(data)
        self._remember(function, Watch(function), INLINE, b"" if size > INLINE_BYTES_MAX else data, 0, size)

    def claim(self, digest: bytes, size: int) -> Digest:
        """The node has this code, and counts on being told when nobody here needs it any more."""
        claim = Claim(digest, size)
        reference = weakref.ref(claim, lambda ended: self._end(digest, ended))
        self._alive.add(reference)
        self._claims[digest] = reference
        return _digest(claim)

    def released(self) -> list[bytes]:
        """The digests by which no more tasks will come from here, one for each claim that has ended since the last
        call."""
        released = []
        with contextlib.suppress(IndexError):
            while True:
                released.append(self._ended.popleft())
        return released

    def _end(self, digest: bytes, ended: weakref.ref[Claim]) -> None:
        """In whichever thread has dropped the last reference, and wherever that was: this must not block."""
        self._alive.discard(ended)
        if self._claims.get(digest) is ended:
            self._claims.pop(digest, None)
        self._ended.append(digest)

    def _registered(self, digest: bytes) -> Digest | None:
        reference = self._claims.get(digest)
        claim = None if reference is None else reference()
        return None if claim is None else _digest(claim)

    def _pickle(self, function: Callable[..., Any], name: str) -> tuple[bytes, bytes]:
        """The digest of the function, or else its pickle."""
        known = self._pages.get(id(function))
        if known is not None and known.function() is not function:
            known = None
        watch: Watch | None = None
        try:
            if is_watchable(function):
                watch = Watch(function)  # before pickling, so that a change in between is noticed
            data, buffers = dump_parts(function)
            size = len(data) + sum(map(len, buffers))
            is_large = size > INLINE_BYTES_MAX
            if buffers and not (is_large and watch is not None):
                data, buffers = dumps(function), []
        except BaseException as error:
            if came_between(error):
                raise
            why = f"{reason(error)}{obstacle_in(function)}"
            raise CannotTravelError(f"the function of task {name} does not pickle: {why}") from error
        if size > values.PAYLOAD_BYTES_MAX:
            raise too_large(f"the function of task {name}, with what it captures, is", size)
        if watch is None:
            return INLINE, _with_path(data)
        versions = 0 if known is None else known.versions
        digest = INLINE
        if is_large or _is_named(function):
            hashed = blake2b(data + reloads.packed(), digest_size=16)
            for buffer in buffers:
                hashed.update(buffer)
            candidate = hashed.digest()
            registered = self._registered(candidate)
            if registered is None and (is_large or versions < VERSIONS_MAX):
                versions += 1
                registered = self._publish(candidate, data, buffers)
            digest = registered or INLINE
        if not digest:
            data = _with_path(data)
        self._remember(function, watch, digest, b"" if digest or is_large else data, versions, size)
        return digest, b"" if digest else data

    def _publish(self, digest: bytes, data: bytes, buffers: Sequence[memoryview]) -> Digest:
        packed = with_function(msgpack.packb([sys.path, reloads.packed()]), data, buffers)
        with self._registering:
            registered = self._registered(digest)
            if registered is None:
                self._register(digest, packed)
                registered = self.claim(digest, len(packed))
            return registered

    def _remember(
        self, function: Callable[..., Any], watch: Watch, digest: bytes, data: bytes, versions: int, size: int
    ) -> None:
        pages = self._pages
        key = id(function)

        def forget(reference: weakref.ref[Any]) -> None:
            page = pages.get(key)
            if page is not None and page.function is reference:
                pages.pop(key, None)

        pages.pop(key, None)
        pages[key] = _Page(weakref.ref(function, forget), watch, digest, data, versions, size)
        with contextlib.suppress(StopIteration, RuntimeError):  # another thread changes the book
            while len(pages) > PAGES_MAX:
                pages.pop(next(iter(pages)), None)
            if size > INLINE_BYTES_MAX:
                all_bytes = sum(page.size for page in pages.values())
                for old, page in list(pages.items()):
                    if all_bytes > PAGES_BYTES_MAX and old != key and page.size > INLINE_BYTES_MAX:
                        pages.pop(old, None)
                        all_bytes -= page.size


class CodeShelf:
    """The functions that this process can run."""

    def __init__(self, book: CodeBook) -> None:
        self.context: bytes = b""
        """Of the call that was decoded last, packed."""
        self._book = book
        self._taught: dict[bytes, Payload] = {}
        self._functions: dict[bytes, Callable[..., Any]] = {}
        self._digests: dict[bytes, Digest] = {}
        """Of both."""
        self._inline: OrderedDict[bytes, Callable[..., Any]] = OrderedDict()

    def teach(self, digest: bytes, data: Payload) -> None:
        """Code arrives; it is unpickled when a task first needs it."""
        self._digests[digest] = self._book.claim(digest, len(data))
        self._taught[digest] = data

    def forget(self, digest: bytes) -> None:
        """No task here needs this code, and it comes again before the next one that does.  Its claim ends with the
        function object, on which somebody may have kept a hand."""
        self._taught.pop(digest, None)
        self._functions.pop(digest, None)
        self._digests.pop(digest, None)

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
            args, kwargs, said = arguments
        else:
            args, kwargs, said = arguments[:-1], {}, arguments[-1]
        self._book.chance, self.context = (said, b"") if len(said) <= CHANCE_BYTES else parted(said)
        return function, args, kwargs

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
        function: Callable[..., Any]
        _, function = load_call(self._taught[digest], _prepare)
        self._book.adopt(function, self._digests[digest])
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


def _prepare(where: bytes) -> None:
    """Let this process find what a function refers to, as its sender has it."""
    path, reloaded = msgpack.unpackb(where)
    extend_path(path)
    reloads.apply(reloaded)


class _Elsewhere:
    """Pickles as what is loaded once this process's modules can be found."""

    def __init__(self, path: list[str], data: bytes, reloaded: bytes) -> None:
        self._made = path, data, reloaded

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return load_elsewhere, self._made


def load_elsewhere(path: list[str], data: bytes, reloaded: bytes) -> Any:
    """Unpickle what refers to modules that a program has made known to its process only, or has loaded again."""
    extend_path(path)
    reloads.apply(reloaded)
    return loads(data)


def _with_path(data: bytes) -> bytes:
    """The pickle of something that may refer to modules, for processes that were not told where they are."""
    installed = (sys.prefix, sys.base_prefix)
    path = [entry for entry in sys.path if entry and not entry.startswith(installed)]
    return dumps(_Elsewhere(path, data, reloads.packed())) if path or reloads.epoch else data


def _digest(claim: Claim) -> Digest:
    digest = Digest(claim.digest)
    digest.claim = claim
    return digest


def is_watchable(function: Callable[..., Any]) -> bool:
    """Whether a `Watch` notices all that may change of it: captured data are constants, those of a partial are not,
    unless they cannot change, or are functions themselves."""
    if type(function) is not partial:
        return isinstance(function, FunctionType | Cached)
    held = (function.func, *function.args, *function.keywords.values())
    return all(is_constant(value) or is_watchable(value) for value in held)


def _is_named(function: Callable[..., Any]) -> bool:
    """Whether a module holds the function under its name: there are finitely many of those."""
    name = str(getattr(function, "__name__", ""))
    plain: Any = function
    while isinstance(plain, Cached):
        plain = getattr(plain, "__wrapped__", None)
    module = sys.modules.get(getattr(function, "__module__", None) or "")
    return getattr(plain, "__globals__", {}).get(name) is function or getattr(module, name, None) is function
