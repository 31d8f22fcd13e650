"""The board of a scheduler: what it tells the node, and what it makes of what it hears."""

from __future__ import annotations

import threading
from typing import Any

from hdphrs.api.board import FIND_BYTES_MAX
from hdphrs.scheduler.finds import Finds
from hdphrs.wire import local
from hdphrs.wire.pickling import dumps, loads


def test_news_is_told_and_comes_back_as_it_was() -> None:
    said: list[list[Any]] = []
    finds = Finds(said.append)
    finds.tell(b"search", 1.0, ["one"])
    finds.tell(b"search", 0.5, ["less"])
    ((kind, topic, rank, data),) = said
    assert (kind, topic, rank, loads(data)) == (local.FOUND, b"search", 1.0, ["one"])
    assert finds.best(b"search") == (1.0, ["one"])
    assert finds.best(b"another") is None


def test_what_is_heard_counts_if_it_is_better_and_is_unpickled_once() -> None:
    finds = Finds(lambda message: None)
    finds.hear(b"search", 2.0, dumps(["two"]))
    best = finds.best(b"search")
    assert best == (2.0, ["two"])
    finds.hear(b"search", 1.0, b"never looked at")
    assert finds.best(b"search") is best


def test_what_does_not_pickle_or_is_too_large_stays_here() -> None:
    said: list[list[Any]] = []
    finds = Finds(said.append)
    finds.tell(b"search", 1.0, threading.Lock())
    finds.tell(b"search", 1.0, bytes(FIND_BYTES_MAX))
    assert said == []
    assert finds.best(b"search") is None
