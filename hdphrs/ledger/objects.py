"""A ledger below a URL: one object an entry, in whatever file system fsspec has for it.

What lives here: the objects' names, which tell all that a label does, so that one listing is the index:

    URL/<first byte of the key>/<key>-<top>-<path>-<value, see `_value_byte`>

all in hexadecimal.  An object appears whole or not at all: where a put is not atomic, it is written under another name
and moved.  Several runs may put the same one: the last one wins, and both are right.
"""

from __future__ import annotations

import itertools
import math
import os
import re
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

from hdphrs.errors import LedgerError
from hdphrs.ledger.entry import FORM, Damage, Entry, Label, decode_entry, encode_entry
from hdphrs.ledger.store import LABELS_MAX, Complain, Figures, Verdict
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
_NAME: Final = re.compile(rf"({_HEX})-({_HEX}|)-([0-9a-f]*)-([0-9a-f]{{2}})")
_TEMPORARY: Final = ".writing"


class ObjectStore:
    """The store below a URL."""

    def __init__(self, url: str, bytes_max: int, complain: Complain, *, create: bool = True) -> None:
        self._url = url
        self._bytes_max = bytes_max
        self._complain = complain
        self._serial = itertools.count()
        self._names: dict[bytes, str] = {}
        self._bytes = 0
        try:
            from fsspec.core import url_to_fs
        except ImportError as error:
            raise LedgerError(f"the ledger {url} needs fsspec: pip install 'hdphrs[url]'") from error
        self._fs: AbstractFileSystem
        self._fs, root = self._try(lambda: url_to_fs(url))
        self._root = f"{root.rstrip('/')}/ledger-{FORM}"
        protocols = {self._fs.protocol} if isinstance(self._fs.protocol, str) else set(self._fs.protocol)
        self._is_atomic = bool(protocols & ATOMIC_PUT)
        if "file" in protocols:
            self._try(lambda: os.makedirs(self._root, mode=0o700, exist_ok=True) if create else None)
        if not create and not self._try(lambda: self._fs.exists(self._root)):
            raise LedgerError(f"there is no ledger at {url}")

    # ---- the store -------------------------------------------------------------------------------------------

    def labels(self) -> list[Label]:
        found = sorted(self._list(), key=lambda item: item[2], reverse=True)
        self._bytes = sum(size for _, _, _, size, _ in found)
        self._names = {label.key: name for label, name, _, _, _ in reversed(found)}
        return [label for label, _, _, _, _ in found[:LABELS_MAX]]

    def read(self, keys: Sequence[bytes], *, use: bool = True) -> list[Entry]:
        wanted = {self._names[key]: key for key in keys if key in self._names}
        if not wanted:
            return []
        blobs: dict[str, Any] = self._try(lambda: self._fs.cat(list(wanted), on_error="return"))
        entries = []
        for name, blob in blobs.items():
            if isinstance(blob, FileNotFoundError):
                continue  # another run has made room
            if isinstance(blob, Exception):
                raise self._unusable(blob) from blob
            entry = self._decode(blob, wanted[name])
            if entry is not None:
                entries.append(entry)
        return entries

    def write(self, entries: Iterable[Entry]) -> None:
        blobs: dict[str, bytes] = {}
        for entry in entries:
            blob = encode_entry(entry)
            if len(blob) <= self._bytes_max // 4:
                name = self._name(entry, len(blob))
                self._names[entry.key] = name
                blobs[name] = blob
                self._bytes += len(blob)
        self._try(lambda: self._put(blobs))
        if self._bytes > self._bytes_max:
            self.shrink(int(KEPT_SHARE * self._bytes_max))

    def remove(self, keys: Sequence[bytes]) -> None:
        self._remove([name for key in keys if (name := self._names.pop(key, None)) is not None])

    def figures(self) -> Figures:
        found = self._list()
        size = sum(size for _, _, _, size, _ in found)
        return Figures(len(found), size, None)

    def verify(self, *, remove: bool) -> Verdict:
        sound = 0
        damaged = []
        for label, name, _, _, _ in self._list():
            blob = self._try(partial(self._fs.cat_file, name))
            if self._decode(blob, label.key) is not None:
                sound += 1
            else:
                damaged.append(name)
        if remove:
            self._remove(damaged)
        return Verdict(sound, len(damaged))

    def shrink(self, bytes_max: int) -> int:
        found = sorted(self._list(), key=lambda item: (int(item[2]) // 3600, item[4]))
        self._bytes = sum(size for _, _, _, size, _ in found)
        names = []
        for _, name, _, size, _ in found:
            if self._bytes <= bytes_max:
                break
            names.append(name)
            self._bytes -= size
        self._remove(names)
        return len(names)

    def close(self) -> None:
        self._names.clear()

    # ---- objects ---------------------------------------------------------------------------------------------

    def _list(self) -> list[tuple[Label, str, float, int, int]]:
        """(label, name, when it was written, bytes, worth a byte) of each object."""
        self._fs.invalidate_cache()
        infos: dict[str, dict[str, Any]] = self._try(lambda: self._fs.find(self._root, detail=True))
        found = []
        for name, info in infos.items():
            parts = _NAME.fullmatch(name.rsplit("/", 1)[-1])
            if parts is not None and len(parts[3]) % 2 == 0:
                label = Label(bytes.fromhex(parts[1]), bytes.fromhex(parts[2]), bytes.fromhex(parts[3]))
                found.append((label, name, _written_s(info), int(info.get("size") or 0), int(parts[4], 16)))
        return found

    def _name(self, entry: Entry, size: int) -> str:
        path = entry.path.hex() if len(entry.path) <= PATH_BYTES_MAX else ""
        key = entry.key.hex()
        return f"{self._root}/{key[:2]}/{key}-{entry.top.hex()}-{path}-{_value_byte(entry.cost_s, size):02x}"

    def _put(self, blobs: dict[str, bytes]) -> None:
        if self._is_atomic:
            self._fs.pipe(blobs)
            return
        for name, blob in blobs.items():
            temporary = f"{self._root}/{os.getpid()}-{next(self._serial)}{_TEMPORARY}"
            self._fs.makedirs(name.rsplit("/", 1)[0], exist_ok=True)
            self._fs.pipe_file(temporary, blob)
            self._fs.mv(temporary, name)

    def _remove(self, names: Sequence[str]) -> None:
        for name in names:
            try:
                self._fs.rm_file(name)
            except FileNotFoundError:
                continue  # another run has been faster
            except Exception as error:
                raise self._unusable(error) from error

    def _decode(self, blob: bytes, key: bytes) -> Entry | None:
        try:
            return decode_entry(blob, key)
        except Damage as damage:
            self._complain(f"an entry below {self._url} is damaged ({damage}) and is not used")
            return None

    def _try(self, action: Callable[[], T]) -> T:
        """Every file system has exceptions of its own."""
        try:
            return action()
        except FileNotFoundError:
            raise self._unusable(FileNotFoundError("there is no such place")) from None
        except Exception as error:
            raise self._unusable(error) from error

    def _unusable(self, error: Exception) -> LedgerError:
        why = " ".join(str(error).split()) or type(error).__name__
        return LedgerError(f"the ledger {self._url} cannot be used: {why}")


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
