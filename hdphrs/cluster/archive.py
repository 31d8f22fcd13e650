"""The program's own directory, packed for the other hosts.

What lives here: a zip archive of the Python files that a program may import from its directory.  It is bounded, and
says so when it leaves something out: a program that lies in a home directory must not send the home directory.
"""

from __future__ import annotations

import io
import os
import stat
import zipfile

from hdphrs.program.entry import Entry, Kind
from hdphrs.records import dataclass

ARCHIVE_BYTES_MAX = 16 << 20
"""Of the files, before they are compressed."""
ARCHIVE_FILES_MAX = 5000
DIRECTORIES_MAX = 2000

_SKIPPED = frozenset({"__pycache__", "node_modules", "site-packages"})
_VIRTUALENV_MARK = "pyvenv.cfg"
_EARLIEST = (1980, 1, 1, 0, 0, 0)
"""The same files make the same archive, whenever they were written."""


_EMPTY = b"PK\x05\x06" + bytes(18)
"""A zip archive of nothing."""


@dataclass(frozen=True, slots=True)
class Archive:
    """The bytes of the zip, and what a person should know about it."""

    content: bytes
    warnings: tuple[str, ...]


def pack_program(program: Entry) -> Archive:
    """What other hosts need of a program: its directory, or itself if it is an archive already; nothing of a module
    that is an installed one."""
    if not program.is_here:
        return Archive(_EMPTY, ())
    if program.kind is Kind.CONTAINER and not os.path.isdir(program.folder):
        return _whole(program.folder)
    return pack_directory(program.folder)


def _whole(path: str) -> Archive:
    """An archive as it is."""
    with open(path, "rb") as file:
        content = file.read(ARCHIVE_BYTES_MAX + 1)
    if len(content) <= ARCHIVE_BYTES_MAX:
        return Archive(content, ())
    bound = f"{ARCHIVE_BYTES_MAX >> 20} MiB"
    return Archive(_EMPTY, (f"the program {path} is larger than {bound}, and is not sent to other hosts",))


def pack_directory(directory: str) -> Archive:
    """Pack the `*.py` files under `directory`, those nearest to it first.

    Hidden folders, virtual environments, caches, and links to folders are left out.  A file that cannot be read, or
    all that comes after a bound is reached, is left out with a warning.
    """
    warnings: list[str] = []
    bytes_left, files_left = ARCHIVE_BYTES_MAX, ARCHIVE_FILES_MAX
    buffer = io.BytesIO()
    pending, seen = [directory], 0
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        while pending:
            folder = pending.pop(0)
            seen += 1
            if seen > DIRECTORIES_MAX:
                warnings.append(_beyond(directory, f"{DIRECTORIES_MAX} folders"))
                break
            files, folders = _list(folder)
            pending += folders
            for path in files:
                try:
                    content = _read(path, bytes_left)
                except OSError as error:
                    warnings.append(f"cannot read {path}, so other hosts go without it: {error.strerror}")
                    continue
                bytes_left -= len(content)
                files_left -= 1
                if bytes_left < 0 or files_left < 0:
                    bound = f"{ARCHIVE_BYTES_MAX >> 20} MiB of" if bytes_left < 0 else str(ARCHIVE_FILES_MAX)
                    warnings.append(_beyond(directory, f"{bound} Python files"))
                    pending.clear()
                    break
                info = zipfile.ZipInfo(os.path.relpath(path, directory), _EARLIEST)
                archive.writestr(info, content, zipfile.ZIP_DEFLATED)
    return Archive(buffer.getvalue(), tuple(warnings))


def _beyond(directory: str, bound: str) -> str:
    return f"the program's directory {directory} holds more than {bound}; the rest is not sent to other hosts"


def _list(folder: str) -> tuple[list[str], list[str]]:
    """The regular Python files of a folder, and the folders in it to look at, in the order of their names."""
    files, folders = [], []
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError:
        return [], []
    if any(entry.name == _VIRTUALENV_MARK for entry in entries):
        return [], []
    for entry in entries:
        try:
            if entry.is_dir(follow_symlinks=False):
                if not entry.name.startswith(".") and entry.name not in _SKIPPED:
                    folders.append(entry.path)
            elif entry.name.endswith(".py") and stat.S_ISREG(entry.stat().st_mode):
                files.append(entry.path)
        except OSError:
            continue  # a dangling link
    return files, folders


def _read(path: str, bytes_left: int) -> bytes:
    with open(path, "rb") as file:
        return file.read(bytes_left + 1)
