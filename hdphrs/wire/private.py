"""Files that hold what a run has computed, or been given: made for their user alone.

What lives here: making them.  A file or folder that is there already keeps its mode, which its user has chosen.  What
another user has put in the place of one, a link or a file, is refused: it may lead anywhere, and he may read it.
"""

from __future__ import annotations

import errno
import os
import stat
from contextlib import suppress
from typing import Final

FILE_MODE: Final = 0o600
FOLDER_MODE: Final = 0o700

LINKS_MAX: Final = 40
"""Followed one after the other, as by the system."""

_ROOT: Final = 0
_PROC: Final = "/proc/"


def open_private(path: str) -> int:
    """Open a file for writing, from its beginning: a new one of mode 0600, or the one that is there.

    Raises:
        OSError: it cannot be opened, or belongs to another user, or a link to it does.
    """
    target = _behind_links(path)
    if os.path.realpath(os.path.dirname(target)).startswith(_PROC):
        return os.open(target, os.O_WRONLY)  # /dev/stdout: a descriptor of this process, and no link to a path
    with suppress(FileExistsError):
        return os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, FILE_MODE)
    descriptor = os.open(target, os.O_WRONLY | os.O_NOFOLLOW)
    try:
        _check_owner(os.fstat(descriptor))
        if stat.S_ISREG(os.fstat(descriptor).st_mode):
            os.ftruncate(descriptor, 0)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def check_private(path: str) -> None:
    """Check whether `open_private` would refuse what is there for its owner's sake.

    Raises:
        OSError: it would.
    """
    with suppress(FileNotFoundError):
        _check_owner(os.lstat(_behind_links(path)))


def make_private_folder(path: str) -> None:
    """Make a folder of mode 0700, and those that lead to it as usual, unless it is there.

    Raises:
        OSError: it cannot be made, or is a link of another user's.
    """
    os.makedirs(_behind_links(path), mode=FOLDER_MODE, exist_ok=True)


def _behind_links(path: str) -> str:
    """Where a link leads that this user has made, or the system's."""
    for _ in range(LINKS_MAX):
        folder = os.path.dirname(path)
        try:
            found = os.lstat(path)
        except FileNotFoundError:
            return path
        if not stat.S_ISLNK(found.st_mode) or os.path.realpath(folder).startswith(_PROC):
            return path
        if found.st_uid not in (os.geteuid(), _ROOT):
            raise OSError(errno.EPERM, "it is a link that another user has made")
        path = os.path.join(folder, os.readlink(path))
    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))


def _check_owner(found: os.stat_result) -> None:
    if stat.S_ISREG(found.st_mode) and found.st_uid != os.geteuid():
        raise OSError(errno.EPERM, "it belongs to another user")
