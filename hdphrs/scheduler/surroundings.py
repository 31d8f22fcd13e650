"""Adopting the program's surroundings.

What lives here: `Adopter`, which changes in this process what the program has changed since the last time, and nothing
else: so what a task changes itself stays until the program changes the same thing.
"""

from __future__ import annotations

import os
import re
import sys
import warnings
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from hdphrs.api.depth import deep
from hdphrs.scheduler.notice import notice
from hdphrs.wire.pickling import loads
from hdphrs.wire.search_path import extend_path
from hdphrs.wire.surroundings import AWAY_VARIABLE, Surroundings, decode_surroundings


class Adopter:
    """Changes one scheduler process to what the program's process is."""

    def __init__(self, host: Callable[[], str], lack: Callable[[str, str], None]) -> None:
        """
        Args:
            host: the name under which people know this host.
            lack: tells a person what it does not have: the kind of thing, of which one is told, and a sentence.
        """
        self._host = host
        self._tell_lack = lack
        self._is_away = os.environ.pop(AWAY_VARIABLE, None) is not None
        self._adopted: Surroundings | None = None
        self._next: bytes | None = None
        """What has come, and is not adopted yet."""

    def take(self, data: bytes) -> None:
        """These are the surroundings of the tasks that come after this."""
        self._next = data

    def change(self) -> None:
        """While no task has the core: what a running one has set for a while, it would restore in the place of ours."""
        if self._next is not None:
            data, self._next = self._next, None
            self.adopt(data)

    def adopt(self, data: bytes) -> None:
        """These are the surroundings from now on."""
        new, old = decode_surroundings(data), self._adopted
        self._adopted = new
        if old is None or new.argv != old.argv:
            sys.argv[:] = new.argv  # as modules that have imported it know it
        self._adopt_environment(new, old)
        if new.directory is not None and (old is None or new.directory != old.directory):
            self._change_directory(new.directory)
        if new.umask is not None and (old is None or new.umask != old.umask):
            os.umask(new.umask)
        if new.locale is not None and (old is None or new.locale != old.locale):
            self._set_locale(new.locale)
        if old is None or new.recursion_limit != old.recursion_limit:
            with suppress(RecursionError):  # what runs is deeper already
                sys.setrecursionlimit(deep(new.recursion_limit))
        if old is None or new.digits_max != old.digits_max:
            sys.set_int_max_str_digits(new.digits_max)
        if new.path and (old is None or new.path != old.path):
            self._set_path(new)
        if new.filters is not None and (old is None or new.filters != old.filters):
            _filter_warnings(new.filters)  # after the path: categories may be of the program's modules
            notice.rebase()
        if new.dlopen_flags is not None and (old is None or new.dlopen_flags != old.dlopen_flags):
            sys.setdlopenflags(new.dlopen_flags)
        if old is None or new.writes_bytecode != old.writes_bytecode:
            sys.dont_write_bytecode = not new.writes_bytecode
        if new.start_method is not None and (old is None or new.start_method != old.start_method):
            import multiprocessing  # few programs need it

            with suppress(ValueError):  # this host has no such method
                multiprocessing.set_start_method(new.start_method, force=True)

    def _adopt_environment(self, new: Surroundings, old: Surroundings | None) -> None:
        before = {} if old is None else self._variables(old)
        zone = os.environb.get(b"TZ")
        for name, value in self._variables(new).items():
            if before.get(name) != value and os.environb.get(name) != value:
                with suppress(OSError, ValueError):  # a name that the C library does not take
                    os.environb[name] = value
        for name in new.unset:
            if old is None or name not in old.unset:
                os.environb.pop(name, None)
        if os.environb.get(b"TZ") != zone:
            import time

            time.tzset()

    def _variables(self, surroundings: Surroundings) -> dict[bytes, bytes]:
        here = {} if self._is_away else surroundings.environ_here
        return {**here, **surroundings.environ}

    def _change_directory(self, directory: bytes) -> None:
        try:
            os.chdir(directory)
        except OSError as error:
            name = os.fsdecode(directory)
            try:
                instead = os.getcwd()
            except OSError:
                instead = "none"
            self._lack(
                "directory", f"has no working directory {name!r} ({error.strerror}); tasks there have {instead!r}"
            )

    def _set_locale(self, wanted: str) -> None:
        import _locale

        if _locale.setlocale(_locale.LC_ALL, None) == wanted:
            return
        try:
            _locale.setlocale(_locale.LC_ALL, wanted)
        except Exception:  # `locale.Error`, of a module that few programs load
            self._lack("locale", f"does not have the program's locale {wanted!r}")

    def _lack(self, what: str, how: str) -> None:
        host = self._host()
        self._tell_lack(f"{what} of {host}", f"{host} {how}")

    def _set_path(self, new: Surroundings) -> None:
        """In the program's order, so that the same module is found; what this process has of its own comes after it.
        On another host, and with another interpreter, its own is right, and only what that has not is added."""
        if self._is_away or new.prefix != sys.prefix:
            extend_path(new.path)
        else:
            known = set(new.path)
            sys.path[:] = [*new.path, *(entry for entry in sys.path if entry not in known)]


def _filter_warnings(filters: tuple[tuple[str, Any, bytes, Any, int], ...]) -> None:
    made: list[Any] = []
    for action, message, category, module, line in filters:
        with suppress(Exception):  # a category, or a pattern, that is unknown here: of no warning of this process
            made.append((action, _pattern(message), loads(category), _pattern(module), line))
    warnings.resetwarnings()  # makes what has been remembered of the old ones invalid
    warnings.filters[:] = made  # type: ignore[index]  # the same list, by which `notice` tells ours from a task's


def _pattern(given: Any) -> Any:
    return re.compile(given[0], given[1]) if isinstance(given, tuple) else given
