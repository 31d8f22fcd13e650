"""A ledger in a directory of this machine: one SQLite file in WAL mode, which several runs may use at once.

What lives here: SQL, and what to do about a file that is damaged: it is set aside, and a new one begun.  The file's
name tells its form, so that another version of hdphrs has another file.

The index answers all that can be answered without opening entries.
"""

from __future__ import annotations

import os
import sqlite3
import stat
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Final, TypeVar

from hdphrs.errors import LedgerError
from hdphrs.ledger.entry import FORM, Damage, Entry, Label, decode_entry, encode_entry, is_key
from hdphrs.ledger.store import LABELS_MAX, Complain, Figures, Verdict

T = TypeVar("T")

FILE_NAME: Final = f"ledger-{FORM}.sqlite"
ASIDE: Final = ".damaged"
"""Appended to the name of a file that is set aside; one is kept."""

BUSY_S: Final = 10.0
"""How long another run may hold the file."""

KEPT_SHARE: Final = 0.75
"""Of the bound, what is left after entries had to be dropped."""

_SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS entries (
    key BLOB PRIMARY KEY,
    top BLOB NOT NULL,
    path BLOB NOT NULL,
    cost_s REAL NOT NULL,
    bytes INTEGER NOT NULL,
    used_s INTEGER NOT NULL,
    entry BLOB NOT NULL
);
CREATE INDEX IF NOT EXISTS labels ON entries (used_s, key, top, path, cost_s, bytes);
"""

_PARAMETERS_MAX: Final = 500
"""Keys in one statement."""

_SURROUNDINGS: Final = frozenset(
    {
        sqlite3.SQLITE_PERM,
        sqlite3.SQLITE_BUSY,
        sqlite3.SQLITE_LOCKED,
        sqlite3.SQLITE_NOMEM,
        sqlite3.SQLITE_READONLY,
        sqlite3.SQLITE_IOERR,
        sqlite3.SQLITE_FULL,
        sqlite3.SQLITE_CANTOPEN,
        sqlite3.SQLITE_NOLFS,
    }
)
"""Errors that are not the file's fault; every other one is taken for damage."""


class SqliteStore:
    """The store in a directory."""

    def __init__(self, folder: str, bytes_max: int, complain: Complain, *, create: bool = True) -> None:
        self._file = os.path.join(folder, FILE_NAME)
        self._bytes_max = bytes_max
        self._complain = complain
        if not create and not os.path.exists(self._file):
            raise LedgerError(f"there is no ledger in {folder}")
        if os.path.exists(folder) and not os.path.isdir(folder):
            raise LedgerError(f"the ledger {folder} cannot be used: it is no directory")
        try:
            os.makedirs(folder, mode=0o700, exist_ok=True)
            os.close(os.open(self._file, os.O_RDWR | os.O_CREAT, 0o600))
            _check_owner(self._file)
            _check_owner(folder)
        except OSError as error:
            raise LedgerError(f"the ledger {folder} cannot be used: {error.strerror}") from error
        self._connection = self._attempt(self._connect, lambda: self._connect())

    # ---- the store -------------------------------------------------------------------------------------------

    def labels(self) -> list[Label]:
        def select() -> list[Label]:
            rows = self._connection.execute(
                "SELECT key, top, path FROM entries ORDER BY used_s DESC LIMIT ?", (LABELS_MAX,)
            )
            return [Label(*row) for row in rows if _is_label(row)]

        return self._run(select)

    def read(self, keys: Sequence[bytes], *, use: bool = True) -> list[Entry]:
        rows = self._run(partial(self._select, keys))
        entries = [entry for key, blob in rows if (entry := self._decode(key, blob)) is not None]
        if entries and use:
            self._run(lambda: self._touch([entry.key for entry in entries]))
        return entries

    def write(self, entries: Iterable[Entry]) -> None:
        now_s = int(time.time())
        rows = []
        for entry in entries:
            blob = encode_entry(entry)
            if len(blob) <= self._bytes_max // 4:
                rows.append((entry.key, entry.top, entry.path, entry.cost_s, len(blob), now_s, blob))

        def insert() -> None:
            with self._connection:
                self._connection.execute("BEGIN IMMEDIATE")
                self._connection.executemany("INSERT OR REPLACE INTO entries VALUES (?, ?, ?, ?, ?, ?, ?)", rows)

        self._run(insert)
        if self._run(self._file_bytes) > self._bytes_max:
            self.shrink(int(KEPT_SHARE * self._bytes_max))

    def remove(self, keys: Sequence[bytes]) -> None:
        self._run(lambda: self._delete(keys))

    def figures(self) -> Figures:
        def select() -> Figures:
            row = self._connection.execute("SELECT COUNT(*), TOTAL(bytes), TOTAL(cost_s) FROM entries").fetchone()
            return Figures(int(row[0]), int(row[1]), float(row[2]))

        return self._run(select)

    def verify(self, *, remove: bool) -> Verdict:
        keys = self._run(lambda: [row[0] for row in self._connection.execute("SELECT key FROM entries")])
        sound = 0
        damaged: list[object] = []
        for key in keys:
            blobs = self._run(partial(self._select, [key]))
            if blobs and is_key(key) and self._decode(key, blobs[0][1]) is not None:
                sound += 1
            else:
                damaged.append(key)
        wrong = self._run(lambda: self._connection.execute("PRAGMA integrity_check(1)").fetchone())
        if wrong not in ((b"ok",), ("ok",)):
            damaged.append(b"")
            if remove:
                self._set_aside("its pages contradict each other")
                self._connection = self._connect()
        elif remove:
            self._run(lambda: self._delete(damaged))
        return Verdict(sound, len(damaged))

    def shrink(self, bytes_max: int) -> int:
        def choose() -> list[object]:
            surplus = self._file_bytes() - bytes_max
            chosen: list[object] = []
            rows = self._connection.execute(
                "SELECT key, bytes FROM entries ORDER BY used_s / 3600, cost_s / max(1, bytes)"
            )
            for key, size in rows:
                if surplus <= 0:
                    break
                chosen.append(key)
                surplus -= size + 200  # what the row and its place in the index take
            return chosen

        keys = self._run(choose)
        self._run(lambda: self._delete(keys))
        return len(keys)

    def close(self) -> None:
        with suppress(sqlite3.Error):
            self._connection.close()

    # ---- SQL -------------------------------------------------------------------------------------------------

    def _connect(self) -> sqlite3.Connection:
        self._inode = os.stat(self._file).st_ino
        connection = sqlite3.connect(self._file, timeout=BUSY_S, isolation_level=None, check_same_thread=False)
        try:
            connection.text_factory = bytes  # there is no text in it, unless it is damaged
            connection.execute("PRAGMA trusted_schema = OFF")
            connection.execute("PRAGMA cell_size_check = ON")
            connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = FULL")
            connection.executescript(_SCHEMA)
        except BaseException:
            connection.close()
            raise
        return connection

    def _file_bytes(self) -> int:
        """Pages in use, as all runs see it."""
        numbers = [self._connection.execute(f"PRAGMA {name}").fetchone()[0] for name in _PAGES]
        pages, free, size = numbers
        return int((pages - free) * size)

    def _select(self, keys: Sequence[bytes]) -> list[tuple[Any, Any]]:
        rows: list[tuple[Any, Any]] = []
        for part in _parts(keys):
            marks = ",".join("?" * len(part))
            rows += self._connection.execute(f"SELECT key, entry FROM entries WHERE key IN ({marks})", part)
        return rows

    def _touch(self, keys: list[bytes]) -> None:
        now_s = int(time.time())
        with self._connection:
            self._connection.execute("BEGIN IMMEDIATE")
            for part in _parts(keys):
                marks = ",".join("?" * len(part))
                self._connection.execute(f"UPDATE entries SET used_s = {now_s} WHERE key IN ({marks})", part)

    def _delete(self, keys: Sequence[object]) -> None:
        with self._connection:
            self._connection.execute("BEGIN IMMEDIATE")
            self._connection.executemany("DELETE FROM entries WHERE key = ?", [(key,) for key in keys])
        self._connection.execute("PRAGMA incremental_vacuum").fetchall()

    def _decode(self, key: object, blob: object) -> Entry | None:
        try:
            if not isinstance(key, bytes):
                raise Damage("it has no key")
            return decode_entry(blob, key)
        except Damage as damage:
            self._complain(f"an entry of {self._file} is damaged ({damage}) and is not used")
            return None

    # ---- damage ----------------------------------------------------------------------------------------------

    def _run(self, action: Callable[[], T]) -> T:
        """Do it; if the file turns out to be damaged, begin a new one, and do it there."""

        def begin_again() -> T:
            self._connection = self._connect()
            return action()

        return self._attempt(action, begin_again)

    def _attempt(self, action: Callable[[], T], again: Callable[[], T]) -> T:
        try:
            return action()
        except (sqlite3.Error, OSError, TypeError, ValueError, OverflowError) as error:
            self._give_up_if_not_damaged(error)
            why = error
        try:
            self._set_aside(str(why) or type(why).__name__)
            return again()
        except (sqlite3.Error, OSError) as error:
            raise LedgerError(f"the ledger {self._file} cannot be used: {_text(error)}") from error

    def _give_up_if_not_damaged(self, error: Exception) -> None:
        code = getattr(error, "sqlite_errorcode", None)
        short_read = code == sqlite3.SQLITE_IOERR_SHORT_READ
        surroundings = code is not None and code & 0xFF in _SURROUNDINGS and not short_read
        if surroundings or isinstance(error, OSError):
            raise LedgerError(f"the ledger {self._file} cannot be used: {_text(error)}") from error

    def _set_aside(self, why: str) -> None:
        connection: sqlite3.Connection | None = getattr(self, "_connection", None)
        if connection is not None:
            with suppress(sqlite3.Error):
                connection.close()
        with suppress(FileNotFoundError):
            if os.stat(self._file).st_ino != self._inode:
                return  # another run has been faster
        self._complain(f"{self._file} is damaged ({why}); it is set aside, and a new one begun")
        for suffix in ("", "-wal", "-shm"):
            with suppress(FileNotFoundError):
                os.replace(self._file + suffix, self._file + ASIDE + suffix)
        os.close(os.open(self._file, os.O_RDWR | os.O_CREAT, 0o600))


_PAGES: Final = ("page_count", "freelist_count", "page_size")


def _check_owner(path: str) -> None:
    """What is read from there is unpickled: nobody else may have written it."""
    status = os.stat(path)
    if status.st_uid != os.geteuid():
        raise LedgerError(f"the ledger {path} belongs to another user; its entries cannot be trusted")
    if status.st_mode & stat.S_IWOTH and not status.st_mode & stat.S_ISVTX:
        raise LedgerError(f"the ledger {path} can be written by everybody; its entries cannot be trusted")


def _is_label(row: Sequence[object]) -> bool:
    key, top, path = row
    return is_key(key) and (is_key(top) or top == b"") and type(path) is bytes


def _parts(keys: Sequence[bytes]) -> list[Sequence[bytes]]:
    return [keys[i : i + _PARAMETERS_MAX] for i in range(0, len(keys), _PARAMETERS_MAX)]


def _text(error: BaseException) -> str:
    return (error.strerror or str(error)) if isinstance(error, OSError) else str(error)
