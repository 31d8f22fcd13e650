"""Taking the surroundings of the program, and noticing when they have changed.

What lives here: `Outlook`, which is asked before tasks are sent, so it compares, in about a microsecond, what is there
with what was there the last time, and makes a record only if they differ.  All that it looks at belongs to the whole
process, so it does not matter which thread asks.
"""

from __future__ import annotations

import _locale
import os
import re
import sys
import warnings
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from hdphrs.protocol.surroundings import surroundings_digest
from hdphrs.wire.files import out_of_the_way
from hdphrs.wire.pickling import dumps
from hdphrs.wire.surroundings import Surroundings, encode_surroundings, split_environ

STATUS = "/proc/self/status"
STATUS_BYTES = 64
"""Of this file: its second line, which says the umask, comes within them; the first one has the name of the process, of
15 characters at most, some of them written as several."""

_UMASK = re.compile(rb"Name:[^\n]*\nUmask:\t([0-7]+)\n")


_CONTEXTS = "multiprocessing.context"

_setlocale, _ALL = _locale.setlocale, _locale.LC_ALL
_getdlopenflags: Callable[[], int | None] = getattr(sys, "getdlopenflags", lambda: None)


class Outlook:
    """What one port has told its node of the program's surroundings."""

    def __init__(self) -> None:
        self._at_start = _environ().copy()
        """The environment before the program could change it for this run."""
        self._names: set[bytes] = set()
        self._version = 0
        self._umask = _umask_of_process()
        self._seen: tuple[Any, ...] = ()
        self._told = b""

    def has_changed(self) -> bool:
        """Whether `news` has something to tell, or may have."""
        # One comparison of all: a program that waits for each call asks this each time.
        return self._look() != self._seen

    def news(self) -> tuple[bytes, bytes] | None:
        """The surroundings as (digest, data), if they are others than the last time; only in the sender."""
        if not self.has_changed():
            return None
        self._seen = tuple(each.copy() if isinstance(each, dict | list) else each for each in self._look())
        data = encode_surroundings(self._take(self._seen))
        if data == self._told:
            return None
        self._told = data
        self._version += 1
        return surroundings_digest(self._version), data

    def _look(self) -> tuple[Any, ...]:
        """What is compared: the objects themselves, of which those that can change are copied if they have; what costs
        least to compare comes first."""
        return (
            sys.argv,
            sys.path,
            warnings.filters,
            sys.getrecursionlimit(),
            sys.get_int_max_str_digits(),
            _getdlopenflags(),
            sys.dont_write_bytecode,
            _start_method() if _CONTEXTS in sys.modules else None,
            _environ(),
            _directory(),
            _setlocale(_ALL, None),
            self._umask.read(),
        )

    def _take(self, seen: tuple[Any, ...]) -> Surroundings:
        argv, path, filters, recursion, digits, dlopen, no_bytecode, method, environ, directory, locale, umask = seen
        everywhere, here, unset = split_environ(environ, self._at_start, self._names)
        self._names.update(environ)
        return Surroundings(
            argv=_strings(argv),
            environ=everywhere,
            environ_here=here,
            unset=unset,
            directory=directory and os.fsencode(directory),
            umask=umask,
            locale=locale,
            recursion_limit=recursion,
            digits_max=digits,
            filters=tuple(filter(None, map(_portable, filters))) if isinstance(filters, list) else None,
            path=tuple(map(os.path.abspath, _strings(path))),
            prefix=sys.prefix,
            dlopen_flags=dlopen,
            writes_bytecode=not no_bytecode,
            start_method=method,
        )


def _environ() -> dict[bytes, bytes]:
    """The environment as bytes, which is what `os.environ` keeps: it takes a tenth of the time to compare that."""
    kept: Any = getattr(os.environ, "_data", None)
    return kept if type(kept) is dict else dict(os.environb)


def _directory() -> str | None:
    try:
        return os.getcwd()
    except OSError:  # it has been removed
        return None


def _start_method() -> str | None:
    """The one that the program has chosen for `multiprocessing`; nothing is chosen, or loaded, by asking."""
    loaded = sys.modules.get(_CONTEXTS)
    if loaded is None:
        return None
    name = getattr(getattr(getattr(loaded, "_default_context", None), "_actual_context", None), "_name", None)
    return name if isinstance(name, str) else None


def _portable(entry: Any) -> tuple[str, Any, bytes, Any, int] | None:
    """One filter of warnings; None if its category does not pickle, so that no task knows it either."""
    try:
        action, message, category, module, line = entry
        return str(action), _pattern(message), dumps(category), _pattern(module), int(line)
    except Exception:  # whatever the program has put there
        return None


def _pattern(given: Any) -> Any:
    if isinstance(given, re.Pattern):
        return [str(given.pattern), int(given.flags)]
    return None if given is None else str(given)


def _strings(given: Any) -> tuple[str, ...]:
    """Of what should be a list of texts, the texts."""
    return tuple(each for each in given if isinstance(each, str)) if isinstance(given, list | tuple) else ()


class _Umask:
    """The umask of this process.

    The system call that tells it sets another one, and a file that another thread makes meanwhile would get that.  So
    it is read from a file that Linux has; elsewhere it is only known as it was at the beginning.
    """

    def __init__(self) -> None:
        self.process: int = os.getpid()
        self._descriptor = -1
        self._first: int | None = None
        self._last: int | None = None
        self._start = b""
        """What was read last, and what it said: mostly it is the same again."""
        with suppress(OSError):
            self._descriptor = out_of_the_way(os.open(STATUS, os.O_RDONLY))
        if self._find() is None:
            self._first = os.umask(0o077)
            os.umask(self._first)

    def read(self) -> int | None:
        """As it is."""
        try:
            start = os.pread(self._descriptor, STATUS_BYTES, 0)
        except OSError:
            start = b""
        if start == self._start:
            return self._last
        self._start = start
        found = self._find()
        self._last = self._first if found is None else found
        return self._last

    def _find(self) -> int | None:
        try:
            match = _UMASK.match(os.pread(self._descriptor, STATUS_BYTES, 0))
        except OSError:  # the program may have closed it, by its number
            return None
        return None if match is None else int(match[1], 8)


_umask: _Umask | None = None


def _umask_of_process() -> _Umask:
    """One for all ports of this process, for its file stays open; a fork needs another one."""
    global _umask
    if _umask is None or _umask.process != os.getpid():
        _umask = _Umask()
    return _umask
