"""A ledger in a directory of this machine: one SQLite file in WAL mode, which several runs may use at once.

What lives here: SQL, and what to do about a file that is damaged: it is set aside, and a new one begun.  The file's
name tells its form, so that another version of hdphrs has another file.

The index answers all that can be answered without opening entries.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Final, TypeVar
from urllib.parse import quote

from hdphrs.errors import LedgerError
from hdphrs.ledger.entry import FORM, Entry, Label, is_key
from hdphrs.ledger.seal import Seal
from hdphrs.ledger.store import LABELS_MAX, Complain, Figures, Verdict
from hdphrs.owned import Distrust, Folder

T = TypeVar("T")

FILE_NAME: Final = f"ledger-{FORM}.sqlite"
SUFFIXES: Final = ("", "-wal", "-shm", "-journal")
"""Of the files that SQLite opens by itself, and believes."""

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

_READING: Final = (
    ("mode=rw", "PRAGMA locking_mode = EXCLUSIVE"),
    ("mode=ro", "PRAGMA query_only = ON"),
    ("immutable=1", "PRAGMA query_only = ON"),
)
"""How a file is opened that cannot be written, and what is said then, until it can be read."""

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

    def __init__(
        self, folder: str, bytes_max: int, complain: Complain, *, key: bytes | None = None, create: bool = True
    ) -> None:
        self._place = folder
        self._file = os.path.join(folder, FILE_NAME)
        self._bytes_max = bytes_max
        self._complain = complain
        self._seal = Seal(self._file, key, complain)
        self._obstacle: str | None = None
        """Why nothing can be written through the connection that there is."""
        self._touches = True
        """Whether it is worth while to note what is used."""
        self._is_wal = False
        self._inode = 0
        self._folder = self._reach(create=create)
        self._connection = self._attempt(self._connect_somehow, self._connect, "used")

    def _reach(self, *, create: bool) -> Folder:
        """The folder, with a file in it, all of it checked before anything is opened."""
        try:
            folder = Folder.open(os.path.abspath(self._place), create=create)
            for suffix in SUFFIXES:
                folder.find(FILE_NAME + suffix)
            if folder.find(FILE_NAME) is None:
                if not create:
                    raise FileNotFoundError
                with suppress(FileExistsError):  # another run has been faster
                    folder.make(FILE_NAME)
        except FileNotFoundError as error:
            if create:
                raise LedgerError(f"the ledger {self._place} cannot be used: {error.strerror}") from error
            raise LedgerError(f"there is no ledger in {self._place}") from None
        except NotADirectoryError as error:
            raise LedgerError(f"the ledger {self._place} cannot be used: it is no directory") from error
        except OSError as error:
            raise LedgerError(f"the ledger {self._place} cannot be used: {error.strerror}") from error
        except Distrust as error:
            raise LedgerError(f"the ledger {self._place} cannot be trusted: {error}") from error
        return folder

    # ---- the store -------------------------------------------------------------------------------------------

    @property
    def unsigned(self) -> int:
        return self._seal.unsigned

    def labels(self) -> list[Label]:
        def select() -> list[Label]:
            rows = self._connection.execute(
                "SELECT key, top, path FROM entries ORDER BY used_s DESC LIMIT ?", (LABELS_MAX,)
            )
            return [Label(*row) for row in rows if _is_label(row)]

        return self._run(select)

    def read(self, keys: Sequence[bytes], *, use: bool = True) -> list[Entry]:
        rows = self._run(partial(self._select, keys))
        entries = [entry for key, blob in rows if (entry := self._seal.open(key, blob)) is not None]
        if entries and use and self._touches and self._obstacle is None:
            try:
                self._run(lambda: self._touch([entry.key for entry in entries]))
            except LedgerError:  # what cannot be written can be read
                self._touches = False
        return entries

    def write(self, entries: Iterable[Entry]) -> None:
        now_s = int(time.time())
        rows = []
        for entry in entries:
            blob = self._seal.close(entry)
            if len(blob) <= self._bytes_max // 4:
                rows.append((entry.key, entry.top, entry.path, entry.cost_s, len(blob), now_s, blob))

        def insert() -> None:
            with self._connection:
                self._connection.execute("BEGIN IMMEDIATE")
                self._connection.executemany("INSERT OR REPLACE INTO entries VALUES (?, ?, ?, ?, ?, ?, ?)", rows)

        self._run(self._make_sure_of_files, "written")
        self._run(insert, "written")
        self._run(self._make_sure_of_files, "written")
        self._touches = True
        if self._run(self._file_bytes) > self._bytes_max:
            try:
                self.shrink(int(KEPT_SHARE * self._bytes_max))
            except LedgerError as error:
                self._complain(f"{error}; so it grows beyond what it may hold")

    def remove(self, keys: Sequence[bytes]) -> None:
        self._run(lambda: self._delete(keys))

    def figures(self) -> Figures:
        def select() -> Figures:
            row = self._connection.execute("SELECT COUNT(*), TOTAL(bytes), TOTAL(cost_s) FROM entries").fetchone()
            return Figures(int(row[0]), int(row[1]), float(row[2]))

        return self._run(select)

    def verify(self, *, remove: bool) -> Verdict:
        keys = self._run(lambda: [row[0] for row in self._connection.execute("SELECT key FROM entries")])
        before = self._seal.unsigned
        sound = 0
        damaged: list[object] = []
        for key in keys:
            blobs = self._run(partial(self._select, [key]))
            if blobs and is_key(key) and self._seal.open(key, blobs[0][1]) is not None:
                sound += 1
            else:
                damaged.append(key)
        unsigned = self._seal.unsigned - before
        wrong = self._run(lambda: self._connection.execute("PRAGMA integrity_check(1)").fetchone())
        if wrong not in ((b"ok",), ("ok",)):
            damaged.append(b"")
            if remove:
                self._set_aside("its pages contradict each other")
                self._connection = self._connect()
        elif remove:
            self._run(lambda: self._delete(damaged), "written")
        return Verdict(sound, len(damaged) - unsigned, unsigned)

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
        self._run(lambda: self._delete(keys), "made smaller")
        return len(keys)

    def close(self) -> None:
        with suppress(sqlite3.Error):
            self._connection.close()
        self._folder.close()

    # ---- SQL -------------------------------------------------------------------------------------------------

    def _connect(self) -> sqlite3.Connection:
        """A connection that reads and writes."""
        self._check_files()
        connection = self._opened("mode=rw", BUSY_S)
        try:
            connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
            self._is_wal = connection.execute("PRAGMA journal_mode = WAL").fetchone()[0] in (b"wal", "wal")
            connection.execute("PRAGMA synchronous = FULL")
            connection.executescript(_SCHEMA)
        except BaseException:
            connection.close()
            raise
        self._obstacle = None
        return connection

    def _connect_somehow(self) -> sqlite3.Connection:
        """Where nothing can be written, one that reads.

        SQLite makes files beside its own even to read one that is written ahead, and a full disk has no room for them.
        Alone, it keeps what would be in them in memory; on a disk that cannot be changed it uses those that are there,
        or else reads without any.
        """
        self._obstacle = None
        try:
            return self._connect()
        except sqlite3.Error as error:
            if not _is_surroundings(error) or not self._has_content():
                raise
            obstacle = error
        for how, pragma in _READING:
            with suppress(sqlite3.Error):
                connection = self._opened(how, 0.0)
                try:
                    connection.execute(pragma)
                    connection.execute("SELECT key FROM entries LIMIT 1").fetchall()
                except BaseException:
                    connection.close()
                    raise
                self._obstacle = self._text(obstacle)
                return connection
        raise obstacle

    def _connect_again(self) -> None:
        """Perhaps it can be written now, or there are other files."""
        with suppress(sqlite3.Error):
            self._connection.close()
        self._connection = self._connect_somehow()
        if self._obstacle is not None:
            raise LedgerError(f"the ledger {self._file} cannot be written: {self._obstacle}")

    def _opened(self, how: str, busy_s: float) -> sqlite3.Connection:
        connection = sqlite3.connect(
            f"file:{quote(os.path.abspath(self._file))}?{how}",
            timeout=busy_s,
            isolation_level=None,
            check_same_thread=False,
            uri=True,
        )
        try:
            connection.text_factory = bytes  # there is no text in it, unless it is damaged
            connection.execute("PRAGMA trusted_schema = OFF")
            connection.execute("PRAGMA cell_size_check = ON")
        except BaseException:
            connection.close()
            raise
        return connection

    def _has_content(self) -> bool:
        return any(status.st_size for suffix in SUFFIXES if (status := self._folder.find(FILE_NAME + suffix)))

    def _check_files(self) -> None:
        """Nobody else may have written what SQLite will read: it believes all of them."""
        for suffix in SUFFIXES:
            status = self._folder.find(FILE_NAME + suffix)
            if not suffix:
                self._inode = 0 if status is None else status.st_ino

    def _make_sure_of_files(self) -> None:
        """SQLite goes on writing to files that have been deleted, or replaced, where they are lost."""
        status = None if self._folder.is_gone() else self._folder.find(FILE_NAME)
        if status is None:
            raise LedgerError(f"the ledger {self._place} has been deleted")
        is_whole = not self._is_wal or self._folder.find(f"{FILE_NAME}-wal") is not None
        if self._obstacle is not None or status.st_ino != self._inode or not is_whole:
            self._connect_again()

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

    # ---- damage ----------------------------------------------------------------------------------------------

    def _run(self, action: Callable[[], T], what: str = "used") -> T:
        """Do it; if the file turns out to be damaged, begin a new one, and do it there."""

        def begin_again() -> T:
            self._connection = self._connect()
            return action()

        return self._attempt(action, begin_again, what)

    def _attempt(self, action: Callable[[], T], again: Callable[[], T], what: str) -> T:
        try:
            try:
                return action()
            except (sqlite3.Error, OSError, TypeError, ValueError, OverflowError) as error:
                read_as_it_is = self._obstacle is not None  # another run may be changing it under our eyes
                if read_as_it_is or isinstance(error, OSError) or _is_surroundings(error):
                    raise LedgerError(f"the ledger {self._file} cannot be {what}: {self._text(error)}") from error
                why = error
            try:
                self._set_aside(str(why) or type(why).__name__)
                return again()
            except (sqlite3.Error, OSError) as error:
                raise LedgerError(f"the ledger {self._file} cannot be used: {self._text(error)}") from error
        except Distrust as error:
            raise LedgerError(f"the ledger {self._place} cannot be trusted: {error}") from error

    def _text(self, error: Exception) -> str:
        """Why something was not possible: SQLite often does not know more than that it was not."""
        said = (error.strerror or str(error)) if isinstance(error, OSError) else str(error)
        try:
            disk = os.fstatvfs(self._folder.descriptor)
        except OSError:
            return said
        if disk.f_flag & os.ST_RDONLY:
            return f"{said} (the file system is read-only)"
        return f"{said} (the disk is full)" if disk.f_blocks and not disk.f_bavail else said

    def _set_aside(self, why: str) -> None:
        connection: sqlite3.Connection | None = getattr(self, "_connection", None)
        if connection is not None:
            with suppress(sqlite3.Error):
                connection.close()
        status = self._folder.find(FILE_NAME)
        if status is not None and status.st_ino != self._inode:
            return  # another run has been faster
        self._complain(f"{self._file} is damaged ({why}); it is set aside, and a new one begun")
        here = self._folder.descriptor
        for suffix in SUFFIXES:
            with suppress(FileNotFoundError):
                os.replace(FILE_NAME + suffix, FILE_NAME + ASIDE + suffix, src_dir_fd=here, dst_dir_fd=here)
        with suppress(FileExistsError):
            self._folder.make(FILE_NAME)


_PAGES: Final = ("page_count", "freelist_count", "page_size")


def _is_surroundings(error: Exception) -> bool:
    """Whether it is not the file's fault."""
    if isinstance(error, sqlite3.ProgrammingError):
        return True  # it is closed
    code = getattr(error, "sqlite_errorcode", None)
    return code is not None and code & 0xFF in _SURROUNDINGS and code != sqlite3.SQLITE_IOERR_SHORT_READ


def _is_label(row: Sequence[object]) -> bool:
    key, top, path = row
    return is_key(key) and (is_key(top) or top == b"") and type(path) is bytes


def _parts(keys: Sequence[bytes]) -> list[Sequence[bytes]]:
    return [keys[i : i + _PARAMETERS_MAX] for i in range(0, len(keys), _PARAMETERS_MAX)]
