"""Modules that the program has loaded again, for processes that have imported them as they were.

What lives here: noticing it in the program, and doing it in a process that runs its tasks.  What is sent is the text of
such a module, so that all hosts run the same, whatever they find in their file systems.

Nothing is asked when a task is spawned: a finder, which finds nothing, hears of each import, and whether it is one of a
module that was there.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from hashlib import blake2b
from importlib import import_module, reload
from types import ModuleType
from typing import Any, Final

import msgpack

_MAINS: Final = ("__main__", "__mp_main__")


class Reloads:
    """What this process knows of it."""

    def __init__(self) -> None:
        self.epoch: int = 0
        """Raised with each module that is loaded again."""
        self._seen: set[str] = set()
        """Modules that have been loaded."""
        self._begun: set[str] = set()
        """Those that have been looked for since these were last counted; they may not be there."""
        self._counts: dict[str, int] = {}
        """How often each module has been loaded again."""
        self._packed = b""
        self._packed_epoch = 0
        self._applied: dict[str, bytes] = {}

    # ---- in the program --------------------------------------------------------------------------------------

    def notice(self) -> None:
        """Begin to notice."""
        self._seen.update(sys.modules)
        if not any(type(finder) is Notice for finder in sys.meta_path):
            sys.meta_path.insert(0, Notice(self))

    def hear(self, name: str, *, again: bool) -> None:
        """A module is about to be loaded."""
        if name in _MAINS:  # which travels by itself, and is looked for by who starts it
            return
        if again or name in self._seen:
            self._counts[name] = self._counts.get(name, 0) + 1
            self.epoch += 1
        else:
            self._begun.add(name)

    def packed(self) -> bytes:
        """All modules that have been loaded again, for other processes; empty if there are none."""
        if self._begun:
            self._seen.update(name for name in self._begun if name in sys.modules)
            self._begun.clear()
        if self._packed_epoch != self.epoch:
            epoch = self.epoch
            entries = [_entry(name, count) for name, count in sorted(self._counts.items())]
            self._packed = msgpack.packb([epoch, [entry for entry in entries if entry is not None]])
            self._packed_epoch = epoch
        return self._packed

    def version_of(self, data: bytes) -> bytes:
        """How often the modules that a pickle mentions have been loaded again; empty for never."""
        if not self._counts:
            return b""
        return b"".join(
            b"%s %d " % (name.encode(), count) for name, count in sorted(self._counts.items()) if name.encode() in data
        )

    # ---- in a process that runs its tasks --------------------------------------------------------------------

    def apply(self, packed: bytes) -> None:
        """Load again what is here as it was; what an older list says is past."""
        if not packed:
            return
        epoch, entries = msgpack.unpackb(packed)
        if epoch <= self.epoch:
            return
        for name, version, origin, text in entries:
            if self._applied.get(name) != version:
                _load(name, origin, text)
                self._applied[name] = version
        self.epoch = self._packed_epoch = epoch
        self._packed = packed


class Notice:
    """Stands in front of the finders."""

    def __init__(self, reloads: Reloads) -> None:
        self._reloads = reloads

    def find_spec(self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> None:
        """Find nothing."""
        self._reloads.hear(name, again=target is not None)


def _entry(name: str, count: int) -> list[Any] | None:
    module = sys.modules.get(name)
    origin = getattr(getattr(module, "__spec__", None), "origin", None)
    if module is None or not isinstance(origin, str):
        return None
    try:
        with open(origin, "rb") as file:
            text: bytes | None = file.read() if origin.endswith(".py") else None
    except OSError:
        text = None
    return [name, blake2b(text or b"", digest_size=12).digest() + count.to_bytes(4, "big"), origin, text]


def _load(name: str, origin: str, text: bytes | None) -> None:
    module = sys.modules.get(name)
    if module is None:
        module = import_module(name)
        if text is None or _is_current(module, text):
            return
    if text is None:
        reload(module)
    else:
        exec(compile(text, origin, "exec", dont_inherit=True), vars(module))


def _is_current(module: ModuleType, text: bytes) -> bool:
    try:
        with open(module.__file__ or "", "rb") as file:
            return file.read() == text
    except OSError:
        return False


reloads: Final = Reloads()
