"""A ledger below a URL: one object an entry, in whatever file system fsspec has for it, or in files of this machine.

What lives here: the objects' names, which tell all that a label does, so that one listing is the index:

    URL/<first byte of the key>/<key>-<top>-<path>-<value, see `_value_byte`>

all in hexadecimal.  An object appears whole or not at all: where a put is not atomic, it is written under another name
and moved.  Several runs may put the same one: the last one wins, and both are right.
"""

from __future__ import annotations

import math
import os
import re
import secrets
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

from hdphrs.errors import LedgerError
from hdphrs.ledger.entry import FORM, Entry, Label
from hdphrs.ledger.files import TEMPORARY, Found, LocalFiles, Objects
from hdphrs.ledger.seal import Seal
from hdphrs.ledger.store import LABELS_MAX, LOCAL, Complain, Figures, Verdict
from hdphrs.owned import Distrust, Folder
from hdphrs.protocol.tasks import MEMO_BYTES

if TYPE_CHECKING:
    from fsspec import AbstractFileSystem

T = TypeVar("T")

ATOMIC_PUT: Final = frozenset({"memory", "s3", "s3a", "gs", "gcs", "abfs", "abfss", "az", "oci"})
"""Protocols whose put is all or nothing."""

PATH_BYTES_MAX: Final = 56
"""Longer paths are not told by names, which file systems bound: such a piece is found by its program's task alone."""

KEPT_SHARE: Final = 0.75

_HEX: Final = f"[0-9a-f]{{{2 * MEMO_BYTES}}}"
_NAME: Final = re.compile(rf"({_HEX})-({_HEX}|)-((?:[0-9a-f][0-9a-f])*)-([0-9a-f]{{2}})")
_PART: Final = re.compile(r"[0-9a-f]{2}")


class ObjectStore:
    """The store below a URL."""

    def __init__(
        self, url: str, bytes_max: int, complain: Complain, *, key: bytes | None = None, create: bool = True
    ) -> None:
        self._url = url
        self._bytes_max = bytes_max
        self._complain = complain
        self._seal = Seal(f"the ledger {url}", key, complain)
        self._names: dict[bytes, str] = {}
        self._bytes = 0
        if "::" in url:
            raise LedgerError(f"the ledger {url} cannot be used: it is a chain of URLs; name the last of them alone")
        try:
            from fsspec import AbstractFileSystem
            from fsspec.core import url_to_fs
            from fsspec.implementations.local import LocalFileSystem
        except ImportError as error:
            raise LedgerError(f"the ledger {url} needs fsspec: pip install 'hdphrs[url]'") from error
        system, root = self._try(lambda: url_to_fs(url))
        root = f"{root.rstrip('/')}/ledger-{FORM}"
        protocols = {system.protocol} if isinstance(system.protocol, str) else set(system.protocol)
        if isinstance(getattr(system, "fs", None), AbstractFileSystem):
            raise LedgerError(f"the ledger {url} cannot be used: it does not say where its files are; name that place")
        self._objects: Objects
        if protocols & LOCAL or isinstance(system, LocalFileSystem):
            try:
                folder = self._try(lambda: Folder.open(os.path.abspath(root), create=create))
            except LedgerError as error:
                if not create and isinstance(error.__cause__, FileNotFoundError):
                    raise LedgerError(f"there is no ledger at {url}") from None
                raise
            self._objects = LocalFiles(folder, _is_part, _is_name)
        else:
            self._objects = _RemoteObjects(system, root, atomic=bool(protocols & ATOMIC_PUT))
            if not create and not self._try(lambda: system.exists(root)):
                raise LedgerError(f"there is no ledger at {url}")

    # ---- the store -------------------------------------------------------------------------------------------

    @property
    def unsigned(self) -> int:
        return self._seal.unsigned

    def labels(self) -> list[Label]:
        found = sorted(self._list(), key=lambda item: item[1].written_s, reverse=True)
        self._bytes = sum(item.bytes for _, item, _ in found)
        found = [each for each in found if each[1].bytes <= self._bytes_max]  # nobody fills our memory with one
        self._names = {label.key: item.name for label, item, _ in reversed(found)}
        return [label for label, _, _ in found[:LABELS_MAX]]

    def read(self, keys: Sequence[bytes], *, use: bool = True) -> list[Entry]:
        wanted = {self._names[key]: key for key in keys if key in self._names}
        blobs = self._try(lambda: self._objects.read(list(wanted))) if wanted else {}
        found = [self._seal.open(wanted[name], blob) for name, blob in blobs.items()]
        return [entry for entry in found if entry is not None]

    def write(self, entries: Iterable[Entry]) -> None:
        blobs: dict[str, bytes] = {}
        names: dict[bytes, str] = {}
        for entry in entries:
            blob = self._seal.close(entry)
            if len(blob) <= self._bytes_max // 4:
                name = names[entry.key] = self._objects.prefix + _name(entry, len(blob))
                blobs[name] = blob
        if self._objects.is_gone():
            raise LedgerError(f"the ledger {self._url} has been deleted")
        self._try(lambda: self._objects.put(blobs), "written")
        self._names |= names
        self._bytes += sum(map(len, blobs.values()))
        if self._bytes > self._bytes_max:
            try:
                self.shrink(int(KEPT_SHARE * self._bytes_max))
            except LedgerError as error:
                self._complain(f"{error}; so it grows beyond what it may hold")

    def remove(self, keys: Sequence[bytes]) -> None:
        self._remove([name for key in keys if (name := self._names.pop(key, None)) is not None])

    def figures(self) -> Figures:
        found = self._list()
        return Figures(len(found), sum(item.bytes for _, item, _ in found), None)

    def verify(self, *, remove: bool) -> Verdict:
        unsigned = self._seal.unsigned
        sound = 0
        bad = []
        for label, item, _ in self._list():
            blobs = self._try(partial(self._objects.read, [item.name]))
            if item.name not in blobs:
                continue  # another run has made room
            if self._seal.open(label.key, blobs[item.name]) is not None:
                sound += 1
            else:
                bad.append(item.name)
        unsigned = self._seal.unsigned - unsigned
        if remove:
            self._remove(bad)
        return Verdict(sound, len(bad) - unsigned, unsigned)

    def shrink(self, bytes_max: int) -> int:
        found = sorted(self._list(), key=lambda item: (int(item[1].written_s) // 3600, item[2]))
        self._bytes = sum(item.bytes for _, item, _ in found)
        names = []
        for _, item, _ in found:
            if self._bytes <= bytes_max:
                break
            names.append(item.name)
            self._bytes -= item.bytes
        self._remove(names)
        return len(names)

    def close(self) -> None:
        self._names.clear()
        self._objects.close()

    # ---- objects ---------------------------------------------------------------------------------------------

    def _list(self) -> list[tuple[Label, Found, int]]:
        """(label, the object, worth a byte) of each."""
        found = []
        for item in self._try(lambda: list(self._objects.list())):
            parts = _NAME.fullmatch(item.name.rsplit("/", 1)[-1])
            if parts is not None:
                label = Label(bytes.fromhex(parts[1]), bytes.fromhex(parts[2]), bytes.fromhex(parts[3]))
                found.append((label, item, int(parts[4], 16)))
        return found

    def _remove(self, names: Sequence[str]) -> None:
        for name in names:
            self._try(partial(self._remove_one, name), "made smaller")

    def _remove_one(self, name: str) -> None:
        with suppress(FileNotFoundError):  # another run has been faster
            self._objects.remove(name)

    def _try(self, action: Callable[[], T], what: str = "used") -> T:
        """Every file system has exceptions of its own."""
        try:
            return action()
        except Distrust as error:
            raise LedgerError(f"the ledger {self._url} cannot be trusted: {error}") from error
        except Exception as error:
            why = _why(error)
            raise LedgerError(f"the ledger {self._url} cannot be {what}: {why}") from error


class _RemoteObjects:
    """Objects of a file system that fsspec knows."""

    def __init__(self, system: AbstractFileSystem, root: str, *, atomic: bool) -> None:
        self.prefix = f"{root}/"
        self._fs = system
        self._root = root
        self._is_atomic = atomic

    def list(self) -> Iterable[Found]:
        self._fs.invalidate_cache()
        infos: dict[str, dict[str, Any]] = self._fs.find(self._root, detail=True)
        return [Found(name, int(info.get("size") or 0), _written_s(info)) for name, info in infos.items()]

    def read(self, names: Sequence[str]) -> Mapping[str, bytes]:
        blobs: dict[str, Any] = self._fs.cat(list(names), on_error="return")
        for blob in blobs.values():
            if isinstance(blob, Exception) and not isinstance(blob, FileNotFoundError):
                raise blob
        return {name: blob for name, blob in blobs.items() if not isinstance(blob, Exception)}

    def put(self, blobs: Mapping[str, bytes]) -> None:
        if self._is_atomic:
            self._fs.pipe(dict(blobs))
            return
        for name, blob in blobs.items():
            temporary = f"{self.prefix}{secrets.token_hex(8)}{TEMPORARY}"
            self._fs.makedirs(name.rsplit("/", 1)[0], exist_ok=True)
            self._fs.pipe_file(temporary, blob)
            self._fs.mv(temporary, name)

    def remove(self, name: str) -> None:
        self._fs.rm_file(name)

    def is_gone(self) -> bool:
        return False

    def close(self) -> None:
        """There is nothing to let go of: fsspec keeps its connections for who comes next."""


def _is_name(name: str) -> bool:
    return _NAME.fullmatch(name) is not None


def _is_part(name: str) -> bool:
    return _PART.fullmatch(name) is not None


def _name(entry: Entry, size: int) -> str:
    path = entry.path.hex() if len(entry.path) <= PATH_BYTES_MAX else ""
    key = entry.key.hex()
    return f"{key[:2]}/{key}-{entry.top.hex()}-{path}-{_value_byte(entry.cost_s, size):02x}"


def _why(error: Exception) -> str:
    """Every file system has words of its own."""
    match error:
        case FileNotFoundError():
            return "there is no such place"
        case NotADirectoryError():
            return "it is no directory"
        case OSError(strerror=str(text)):
            return text
        case _:
            return " ".join(str(error).split()) or type(error).__name__


def _value_byte(cost_s: float, size: int) -> int:
    """What computing one byte has cost, on a logarithmic scale from 0 to 255."""
    return min(255, max(0, round(128 + 4 * math.log2(max(cost_s, 1e-9) / max(1, size) * 1e6))))


def _written_s(info: dict[str, Any]) -> float:
    """When an object was written, as its file system tells."""
    for name in ("mtime", "LastModified", "last_modified", "created"):
        value = info.get(name)
        if isinstance(value, datetime):
            return value.timestamp()
        if isinstance(value, int | float):
            return float(value)
    return 0.0
