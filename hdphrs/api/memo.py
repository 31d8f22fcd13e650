"""Which tasks the ledger is to know: a mark on functions, and files that tasks read.

What lives here: `task`, `InputFile`, and how the mark is found.  The mark is read when a task is encoded in a run with
a ledger, and at no other time.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from enum import Enum
from functools import lru_cache, partial
from hashlib import blake2b
from types import MethodType
from typing import Any, TypeVar

from hdphrs.errors import UsageError

F = TypeVar("F", bound=Callable[..., Any])

MARK = "__hdphrs_memo__"
_READ_BYTES = 1 << 20


class Wish(Enum):
    """What is wished for the results of a function."""

    ALWAYS = "always"
    """`memo=True`."""
    NEVER = "never"
    """`memo=False`."""
    SKELETON = "skeleton"
    """A skeleton's task."""
    FAIR = "fair"
    """Nothing was said: it depends on what they have cost."""


def task(*, memo: bool | None = None) -> Callable[[F], F]:
    """Say something about the tasks of a function: `@hdphrs.task(memo=True)`.

    The function itself stays what it is.

    Args:
        memo: True: their results go to the ledger, whatever they have cost; False: they never do, as befits what is
            random, looks at the clock or has effects.  None: those that have cost enough do.  Without --ledger, it
            means nothing.  A task that is found in the ledger is not run, nor are those that it would have spawned: to
            have a task run each time, mark those above it too.

    Raises:
        UsageError: `memo` is none of these, or what is decorated takes no mark.
    """
    if memo is not None and not isinstance(memo, bool):
        raise UsageError(f"task: memo is True, False or None, not {memo!r}")

    def mark(function: F) -> F:
        try:
            setattr(function, MARK, {True: Wish.ALWAYS, False: Wish.NEVER, None: Wish.FAIR}[memo].value)
        except AttributeError as error:
            raise UsageError(f"task: {function!r} takes no mark; decorate a function") from error
        return function

    return mark


def mark_skeleton(task: partial[Any], *functions: Callable[..., Any]) -> None:
    """Mark a task of a skeleton that calls these functions of the user's."""
    never = any(wish_of(function) is Wish.NEVER for function in functions)
    setattr(task, MARK, (Wish.NEVER if never else Wish.SKELETON).value)


def wish_of(function: object) -> Wish:
    """What is wished for the results of a callable."""
    while True:
        value = getattr(function, MARK, None)
        if value is not None:
            return Wish(value)
        if isinstance(function, partial):
            function = function.func
        elif isinstance(function, MethodType):
            function = function.__func__
        elif hasattr(function, "__wrapped__"):
            function = function.__wrapped__
        else:
            return Wish.FAIR


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
