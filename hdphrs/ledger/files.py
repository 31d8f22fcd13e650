"""What an object store needs of the place where its objects are, and that place in a folder of this machine.

What lives here: `LocalFiles`, for file:// and other URLs that mean this machine.  Every folder and file is checked
before anything of it is read, and what is made is for this user alone: fsspec does neither (decision 42).
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, closing, suppress
from typing import Final, NamedTuple, Protocol

from hdphrs.owned import Folder

TEMPORARY: Final = ".writing"
"""Ends the name of a file that is not whole yet."""


class Found(NamedTuple):
    """One object."""

    name: str
    """As the other methods understand it."""
    bytes: int
    written_s: float
    """By the clock of its file system; 0 if that does not tell."""


class Objects(Protocol):
    """Where objects are."""

    prefix: str
    """Begins the name of each."""

    def list(self) -> Iterable[Found]:
        """All that there are."""

    def read(self, names: Sequence[str]) -> Mapping[str, bytes]:
        """The contents of those that are there."""

    def put(self, blobs: Mapping[str, bytes]) -> None:
        """Write objects, each as a whole or not at all; an older one of this name goes."""

    def remove(self, name: str) -> None:
        """Remove one; a `FileNotFoundError` says that it was not there."""

    def is_gone(self) -> bool:
        """Whether it has been deleted, as far as that can be told at once."""

    def close(self) -> None:
        """Let go of the place."""


class LocalFiles:
    """Files in the folders of one folder."""

    prefix: str = ""

    def __init__(self, folder: Folder, is_part: Callable[[str], bool], is_name: Callable[[str], bool]) -> None:
        """
        Args:
            folder: closed with this object.
            is_part: whether a folder of this name is one of ours; all else is left alone.
            is_name: the same for the files in it.
        """
        self._folder = folder
        self._is_part = is_part
        self._is_name = is_name

    def list(self) -> Iterable[Found]:
        """All files, each checked."""
        for part in sorted(filter(self._is_part, self._folder.names())):
            with self._part(part, create=False) as folder:
                for name in filter(self._is_name, folder.names()):
                    status = folder.find(name)
                    if status is not None:
                        yield Found(f"{part}/{name}", status.st_size, status.st_mtime)

    def read(self, names: Sequence[str]) -> Mapping[str, bytes]:
        """Each is checked once more when it is open."""
        found = {}
        for name in names:
            part, _, last = name.partition("/")
            with suppress(FileNotFoundError), self._part(part, create=False) as folder:
                found[name] = folder.read(last)
        return found

    def put(self, blobs: Mapping[str, bytes]) -> None:
        """Under another name first, then moved."""
        for name, blob in blobs.items():
            part, _, last = name.partition("/")
            temporary = f"{secrets.token_hex(8)}{TEMPORARY}"
            with self._part(part, create=True) as folder:
                try:
                    self._folder.make(temporary, blob)
                    os.rename(temporary, last, src_dir_fd=self._folder.descriptor, dst_dir_fd=folder.descriptor)
                except OSError:
                    with suppress(OSError):
                        os.unlink(temporary, dir_fd=self._folder.descriptor)
                    raise

    def remove(self, name: str) -> None:
        """Its folder stays."""
        part, _, last = name.partition("/")
        with self._part(part, create=False) as folder:
            os.unlink(last, dir_fd=folder.descriptor)

    def is_gone(self) -> bool:
        """Nobody would find what is written into a folder without a name."""
        return self._folder.is_gone()

    def close(self) -> None:
        """Close the folder."""
        self._folder.close()

    def _part(self, name: str, *, create: bool) -> AbstractContextManager[Folder]:
        return closing(self._folder.inside(name, create=create))
