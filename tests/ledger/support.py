"""Entries for tests, and stores of every kind."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import cache
from pathlib import Path

from hdphrs.ledger import Entry, Store, open_store
from hdphrs.protocol.paths import child_path
from hdphrs.protocol.tasks import FAIR, KEY_BYTES

BYTES_MAX = 1 << 20


@cache
def entry_of(number: int, *, size: int = 40, cost_s: float = 1.0, top: int = 0) -> Entry:
    """The same for the same numbers."""
    return Entry(memo_of(number), memo_of(top), child_path(b"\0", number), "f", cost_s, data_of(number, size))


@cache
def data_of(number: int, size: int = 40) -> bytes:
    """The value of an entry."""
    return random.Random(number).randbytes(size)


def memo_of(number: int) -> bytes:
    """The memo of an entry."""
    return FAIR + number.to_bytes(KEY_BYTES, "big")


class Opener:
    """Opens a store again and again, and remembers what it complained about."""

    def __init__(self, location: str) -> None:
        self.location = location
        self.complaints: list[str] = []

    def __call__(self, bytes_max: int = BYTES_MAX) -> Store:
        return open_store(self.location, bytes_max, self.complaints.append)


def file_location(folder: Path) -> str:
    """A directory that fsspec serves."""
    return f"file://{folder / 'objects'}"


def right(store: Store, numbers: range, check: Callable[[int], bytes] = data_of) -> int:
    """How many of these entries are there; none may be wrong."""
    store.labels()
    found = store.read([memo_of(number) for number in numbers])
    for entry in found:
        number = int.from_bytes(entry.key[1:], "big")
        assert entry == entry_of(number)
        assert entry.data == check(number)
    return len(found)
