"""Which tasks the ledger is to know: a mark on functions, and files that tasks read.

What lives here: `InputFile`, the mark, and how marks are found; `task`, which sets it, is in `options.py`.  The mark is
read when a task is encoded in a run with a ledger, and at no other time.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from enum import Enum
from functools import lru_cache, partial
from hashlib import blake2b
from types import MethodType
from typing import Any

MARK = "__hdphrs_memo__"
_READ_BYTES = 1 << 20


class Wish(Enum):
    """What is wished for the results of a function."""

    ALWAYS = "always"
    """`task(memo=True)`."""
    NEVER = "never"
    """`memo=False`."""
    SKELETON = "skeleton"
    """A skeleton's task."""
    FAIR = "fair"
    """Nothing was said: it depends on what they have cost."""


def mark_memo(function: Callable[..., Any], wish: Wish) -> None:
    """Leave a wish on a function.

    Raises:
        AttributeError: it takes no mark.
    """
    setattr(function, MARK, wish.value)


def mark_skeleton(task: partial[Any], *functions: Callable[..., Any]) -> None:
    """Mark a task of a skeleton that calls these functions of the user's."""
    never = any(wish_of(function) is Wish.NEVER for function in functions)
    setattr(task, MARK, (Wish.NEVER if never else Wish.SKELETON).value)


def wish_of(function: object) -> Wish:
    """What is wished for the results of a callable."""
    value = mark_of(function, MARK)
    return Wish.FAIR if value is None else Wish(value)


def mark_of(function: object, mark: str) -> Any:
    """A mark on a callable, or on what it surrounds; None if there is none."""
    while True:
        value = getattr(function, mark, None)
        if value is not None:
            return value
        if isinstance(function, partial):
            function = function.func
        elif isinstance(function, MethodType):
            function = function.__func__
        elif hasattr(function, "__wrapped__"):
            function = function.__wrapped__
        else:
            return None


class InputFile(os.PathLike[str]):
    """A file that a task reads, as one of its arguments: the ledger knows the task by what is in the file.

    `open(file)` works with it, as with any path.  The file must be readable where the task is spawned, and must not
    change during the run.
    """

    __slots__ = ("path",)

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path: str = os.fspath(path)

    def __fspath__(self) -> str:
        return self.path

    def __repr__(self) -> str:
        return f"InputFile({self.path!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, InputFile) and self.path == other.path

    def __hash__(self) -> int:
        return hash(self.path)

    def __hdphrs_digest__(self) -> bytes:
        """What stands for it in the ledger: its contents, wherever it is."""
        status = os.stat(self.path)
        return _digest_file(self.path, status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)


@lru_cache(maxsize=1024)
def _digest_file(path: str, device: int, inode: int, size: int, changed_ns: int) -> bytes:
    digest = blake2b(digest_size=32)
    with open(path, "rb") as file:
        while block := file.read(_READ_BYTES):
            digest.update(block)
    return digest.digest()
