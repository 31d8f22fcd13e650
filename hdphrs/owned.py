"""Folders and files of this machine that only this user and root can change.

What lives here: the check that comes before such a file is read or made.  A folder is reached from the root of the file
system one name at a time, each folder being open before the next name in it is looked up, as sudo and ssh do: what is
found is what was checked, and nobody else can put something else in its place afterwards (decision 42).

Group and other bits tell of access control lists too: there they are the most that a list allows.
"""

from __future__ import annotations

import errno
import os
import pwd
import shlex
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final

FOLDER_MODE: Final = 0o700
FILE_MODE: Final = 0o600

LINKS_MAX: Final = 40
"""Symbolic links on the way to a folder; as many as Linux follows."""

_REACH: Final = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
"""How a folder is opened to look up a name in it: that may be allowed where listing it is not."""
_LIST: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_READ: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
"""Does not wait where a pipe has been put in the place of a file."""
_MAKE: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class Distrust(Exception):  # noqa: N818 - it never leaves the package but as a sentence
    """Others can change a folder or a file, or may have; says which one, and what to do."""


class Folder:
    """An open folder that only this user and root can change, or put another one in the place of."""

    def __init__(self, path: str, descriptor: int) -> None:
        """
        Args:
            path: how it was reached, for messages and for who opens its files by name.
            descriptor: of the folder; this object closes it.
        """
        self.path = path
        self._descriptor: int | None = descriptor

    @classmethod
    def open(cls, path: str, *, create: bool, sticky: bool = False) -> Folder:
        """The folder at an absolute path.

        Args:
            create: whether it, and what is missing above it, is made, for this user alone.
            sticky: whether a sticky bit is enough for it, as it is for those above: others can then add files, but
                neither remove nor rename those of this user.

        Raises:
            Distrust: others can change it, or a folder above it; or it is a symbolic link.
            OSError: it is not there, or it cannot be opened or made.
        """
        return cls(path, _reach(path, create=create, sticky=sticky))

    def inside(self, name: str, *, create: bool) -> Folder:
        """A folder in this one; as `open`."""
        path = self._path(name)
        if create:
            with suppress(FileExistsError):
                os.mkdir(name, FOLDER_MODE, dir_fd=self.descriptor)
        _check(os.stat(name, dir_fd=self.descriptor, follow_symlinks=False), path, folder=True)
        return Folder(path, os.open(name, _LIST, dir_fd=self.descriptor))

    @property
    def descriptor(self) -> int:
        """An open descriptor of it.

        Raises:
            OSError: it is closed.
        """
        if self._descriptor is None:
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))
        return self._descriptor

    def find(self, name: str) -> os.stat_result | None:
        """What there is about a file in it; None if it is not there.

        Nothing is opened: to close a file of SQLite would end the locks that this process has on it.

        Raises:
            Distrust: it is no regular file, or others can change it.
        """
        try:
            status = os.stat(name, dir_fd=self.descriptor, follow_symlinks=False)
        except FileNotFoundError:
            return None
        _check(status, self._path(name), folder=False)
        return status

    def read(self, name: str) -> bytes:
        """The content of a file in it.

        Raises:
            Distrust: it is no regular file, or others can change it.
            OSError: it cannot be read.
        """
        with self._opened(name, _READ) as descriptor:
            _check(os.fstat(descriptor), self._path(name), folder=False)
            with os.fdopen(descriptor, "rb", closefd=False) as file:
                return file.read()

    def make(self, name: str, content: bytes = b"") -> None:
        """Make a new file in it, for this user alone.

        Raises:
            FileExistsError: there is something of this name, be it a link to nowhere.
        """
        with self._opened(name, _MAKE) as descriptor, os.fdopen(descriptor, "wb", closefd=False) as file:
            file.write(content)

    def names(self) -> list[str]:
        """What is in it, in no order."""
        return os.listdir(self.descriptor)

    def is_gone(self) -> bool:
        """Whether it has been deleted."""
        return os.fstat(self.descriptor).st_nlink == 0

    def close(self) -> None:
        """Let go of it."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            os.close(descriptor)

    def __del__(self) -> None:
        self.close()

    def _path(self, name: str) -> str:
        return os.path.join(self.path, name)

    @contextmanager
    def _opened(self, name: str, flags: int) -> Iterator[int]:
        try:
            descriptor = os.open(name, flags, FILE_MODE, dir_fd=self.descriptor)
        except OSError as error:
            if error.errno == errno.ELOOP:
                raise _link(self._path(name)) from error
            raise
        try:
            yield descriptor
        finally:
            os.close(descriptor)


def read_secret(path: str, bytes_min: int, bytes_max: int) -> bytes:
    """A file of this user that nobody else can read or change.

    Raises:
        Distrust: others can, or it is too small or too large for a secret.
        OSError: it cannot be read.
    """
    path = os.path.abspath(path)
    folder = Folder.open(os.path.dirname(path), create=False, sticky=True)
    try:
        status = folder.find(os.path.basename(path))
        if status is None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
        if status.st_uid != os.geteuid():
            raise Distrust(f"{path} belongs to another user ({_user(status.st_uid)}); a secret must be your own file")
        if status.st_mode & 0o077:
            raise Distrust(f"others can read {path} (mode {_mode(status)}); chmod 600 {shlex.quote(path)}")
        if not bytes_min <= status.st_size <= bytes_max:
            raise Distrust(f"{path} has {status.st_size} bytes; expected {bytes_min} to {bytes_max}")
        return folder.read(os.path.basename(path))
    finally:
        folder.close()


def _reach(path: str, *, create: bool, sticky: bool) -> int:
    """Walk to a folder, and check each one on the way; a descriptor of it."""
    names = [name for name in reversed(path.split("/")) if name]
    links = 0
    given = len(names)  # still to come of the path itself; others come from links
    here, at = _step(None, "/", "/", sticky=sticky or bool(names)), "/"
    try:
        while names:
            name = names.pop()
            is_given, given = len(names) < given, min(given, len(names))
            there = os.path.normpath(os.path.join(at, name))
            if create:
                with suppress(FileExistsError):
                    _make_missing(here, name)
            status = os.stat(name, dir_fd=here, follow_symlinks=False)
            if stat.S_ISLNK(status.st_mode):
                if is_given and given == 0:
                    raise _link(there)
                _check_owner(status, there)
                links += 1
                if links > LINKS_MAX:
                    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
                target = os.readlink(name, dir_fd=here)
                names += [part for part in reversed(target.split("/")) if part not in ("", ".")]
                if not target.startswith("/"):
                    continue
                name, there = "/", "/"
            following = _step(here, name, there, sticky=sticky or bool(names))
            os.close(here)
            here, at = following, there
        return os.open(".", _LIST, dir_fd=here)
    finally:
        os.close(here)


def _make_missing(here: int, name: str) -> None:
    try:
        os.stat(name, dir_fd=here, follow_symlinks=False)
    except FileNotFoundError:
        os.mkdir(name, FOLDER_MODE, dir_fd=here)


def _step(here: int | None, name: str, there: str, *, sticky: bool) -> int:
    """Open a folder on the way, and check it: names in it are looked up after that only."""
    descriptor = os.open(name, _REACH, dir_fd=here)
    try:
        _check(os.fstat(descriptor), there, folder=True, sticky=sticky)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _check(status: os.stat_result, path: str, *, folder: bool, sticky: bool = False) -> None:
    """Raise `Distrust` if others can change what this is about.

    Args:
        sticky: whether a sticky bit is enough.
    """
    if stat.S_ISLNK(status.st_mode):
        raise _link(path)
    if not (stat.S_ISDIR if folder else stat.S_ISREG)(status.st_mode):
        raise Distrust(f"{path} is no {'directory' if folder else 'regular file'}")
    _check_owner(status, path)
    if status.st_mode & 0o022 and not (sticky and status.st_mode & stat.S_ISVTX):
        others = "everybody" if status.st_mode & stat.S_IWOTH else "its group"
        raise Distrust(f"{others} can write to {path} (mode {_mode(status)}); chmod go-w {shlex.quote(path)}")
    if not folder and status.st_nlink > 1:
        raise Distrust(f"{path} is also known by another name (a hard link); copy it, and remove it here")


def _check_owner(status: os.stat_result, path: str) -> None:
    if status.st_uid not in (0, os.geteuid()):
        raise Distrust(f"{path} belongs to another user ({_user(status.st_uid)})")


def _link(path: str) -> Distrust:
    return Distrust(f"{path} is a symbolic link; name what it points to")


def _user(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def _mode(status: os.stat_result) -> str:
    return f"{stat.S_IMODE(status.st_mode):04o}"
