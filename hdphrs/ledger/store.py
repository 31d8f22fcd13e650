"""Where a ledger is: what every kind of store can do, and which one belongs to a location."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from hdphrs.ledger.entry import Entry, Label

LABELS_MAX = 1_000_000
"""Entries that one run knows of; of more, it knows the newest."""


LOCAL: Final = frozenset({"file", "local"})
"""Protocols that mean files of this machine."""


@dataclass(frozen=True, slots=True)
class Figures:
    """How much there is in a store."""

    entries: int
    bytes: int
    """Of the entries; the files around them may be larger."""
    cost_s: float | None
    """What it would take to compute all that again; None if only the entries could tell."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of an examination."""

    sound: int
    damaged: int
    unsigned: int
    """Entries that are not signed with the key, if there is one."""


class Store(Protocol):
    """One ledger, used by one thread.

    Damage is never an error: what is damaged is not there, and is complained about; what is not signed with the key is
    not there, and counted.  All
    methods raise `LedgerError` if the store cannot be used: the server does not answer, the disk is full.  What cannot
    be written may still be read.
    """

    @property
    def unsigned(self) -> int:
        """Entries that were not believed so far, because they are not signed with the key."""

    def labels(self) -> list[Label]:
        """What there is, the newest first, at most `LABELS_MAX`."""

    def read(self, keys: Sequence[bytes], *, use: bool = True) -> list[Entry]:
        """Those of them that are there and sound, in any order; with `use` they count as used now."""

    def write(self, entries: Iterable[Entry]) -> None:
        """Add these, all of them or none; then make room, if there is more than there may be."""

    def remove(self, keys: Sequence[bytes]) -> None:
        """Those of them that are there go."""

    def figures(self) -> Figures:
        """How much there is."""

    def verify(self, *, remove: bool) -> Verdict:
        """Open every entry; `remove` those that are damaged, or not signed with the key."""

    def shrink(self, bytes_max: int) -> int:
        """Make room until no more than this is left; how many entries went."""

    def close(self) -> None:
        """Let go of it."""


Complain = Callable[[str], None]
"""Takes a sentence about what is not as it should be."""


def is_url(location: str) -> bool:
    """Whether this is a URL, and not a directory."""
    return "://" in location


def is_here(location: str) -> bool:
    """Whether this URL means files of this machine, or is none that can be used."""
    return "::" in location or location.partition("://")[0] in LOCAL


def open_store(
    location: str, bytes_max: int, complain: Complain, *, key: bytes | None = None, create: bool = True
) -> Store:
    """The store at a location, which is made if it is not there.

    Args:
        location: a directory, or a URL that fsspec understands.
        bytes_max: what it may hold; more makes it drop what is of least use.
        key: signs what is written; what is not signed with it is not read.  None signs nothing and reads all.
        create: if False, one that is not there is an error.

    Raises:
        LedgerError: it cannot be used, or others can change its files; the message says why.
    """
    if is_url(location):
        from hdphrs.ledger.objects import ObjectStore

        return ObjectStore(location, bytes_max, complain, key=key, create=create)
    from hdphrs.ledger.sqlite import SqliteStore

    return SqliteStore(location, bytes_max, complain, key=key, create=create)


def utility(used_s: float, cost_s: float, size_bytes: int) -> tuple[float, float]:
    """What is dropped first: the least recently used, by the hour, and among those what is cheap for its size."""
    return used_s // 3600, cost_s / max(1, size_bytes)
