"""What the tasks of one search let each other know: the best that anybody has found.

What lives here: `Board`, of which each scheduler has one, and each node another, where finds are bytes; and the one of
sequential mode.  What is on a board is a help and no more: it may be late, and it may be lost; a search loses time by
that, and nothing of its result.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from typing import Generic, TypeVar

T = TypeVar("T")

TOPICS_MAX = 64
"""Searches that a board remembers; what was known of the oldest is forgotten."""

TOPIC_BYTES_MAX = 256
FIND_BYTES_MAX = 16 << 10
"""A find that takes more bytes is told to nobody."""


class Board(Generic[T]):
    """For each search the best find that has become known here, with its rank."""

    def __init__(self) -> None:
        self._best: OrderedDict[bytes, tuple[float, T]] = OrderedDict()
        self._closed: OrderedDict[bytes, None] = OrderedDict()
        """Searches of which nothing more is taken in; the oldest are forgotten."""

    def improve(self, topic: bytes, rank: float, find: T) -> bool:
        """Take this in if nothing better, or as good, is known of the search; whether it was."""
        known = self._best.get(topic)
        if math.isnan(rank) or (known is not None and known[0] >= rank) or topic in self._closed:
            return False
        self._best[topic] = rank, find
        self._best.move_to_end(topic)
        if len(self._best) > TOPICS_MAX:
            self._best.popitem(last=False)
        return True

    def close(self, topic: bytes) -> None:
        """What is found in this search cannot be looked at: forget it, and take in no more of it."""
        self._best.pop(topic, None)
        self._closed[topic] = None
        if len(self._closed) > TOPICS_MAX:
            self._closed.popitem(last=False)

    def best(self, topic: bytes) -> tuple[float, T] | None:
        """The rank and the find, if any is known; the same tuple as long as it is the best."""
        return self._best.get(topic)

    @property
    def closed(self) -> list[bytes]:
        """The searches of which nothing more is taken in."""
        return list(self._closed)

    def all(self) -> list[tuple[bytes, float, T]]:
        """Everything: topic, rank, find."""
        return [(topic, rank, find) for topic, (rank, find) in self._best.items()]
