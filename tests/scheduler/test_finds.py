"""The board of a scheduler: what it tells the node, and what it makes of what it hears."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any, ClassVar

import pytest

from hdphrs.api.board import FIND_BYTES_MAX
from hdphrs.scheduler.finds import Finds
from hdphrs.wire import local
from hdphrs.wire.page import Label, Line, Page, Reading
from hdphrs.wire.pickling import dumps, loads


@pytest.fixture
def line() -> Iterator[Line]:
    page = Page.create(1)
    yield page.line(0)
    page.close()


class Spy:
    """Looks at the page when it is unpickled."""

    line: Line
    seen: ClassVar[list[Label]] = []

    def __reduce__(self) -> Any:
        return _look, ()


def _look() -> str:
    Spy.seen.append(Spy.line.unpickles)
    return "a find"


def _raise() -> None:
    raise SystemExit(3)


class Broken:
    def __reduce__(self) -> Any:
        return _raise, ()


def test_news_is_told_and_comes_back_as_it_was(line: Line) -> None:
    said: list[list[Any]] = []
    finds = Finds(said.append, line)
    finds.tell(b"search", 1.0, ["one"])
    finds.tell(b"search", 0.5, ["less"])
    ((kind, topic, rank, data),) = said
    assert (kind, topic, rank, loads(data)) == (local.FOUND, b"search", 1.0, ["one"])
    assert finds.best(b"search") == (1.0, ["one"])
    assert finds.best(b"another") is None


def test_what_is_heard_counts_if_it_is_better_and_is_unpickled_once(line: Line) -> None:
    finds = Finds(lambda message: None, line)
    finds.hear(b"search", 2.0, dumps(["two"]))
    best = finds.best(b"search")
    assert best == (2.0, ["two"])
    finds.hear(b"search", 1.0, b"never looked at")
    assert finds.best(b"search") is best


def test_what_does_not_pickle_or_is_too_large_stays_here(line: Line) -> None:
    said: list[list[Any]] = []
    finds = Finds(said.append, line)
    finds.tell(b"search", 1.0, threading.Lock())
    finds.tell(b"search", 1.0, bytes(FIND_BYTES_MAX))
    assert said == []
    assert finds.best(b"search") is None


def test_the_page_says_which_search_it_is_while_a_find_is_unpickled(line: Line) -> None:
    Spy.line, Spy.seen = line, []
    finds = Finds(lambda message: None, line)
    finds.hear(b"search", 2.0, dumps(Spy()))
    assert finds.best(b"search") == (2.0, "a find")
    assert Spy.seen == [Label(Reading.FIND, b"search", "")]
    assert line.unpickles == Label()


def test_a_search_is_closed_here_when_a_find_does_not_unpickle_and_the_task_that_asked_goes_on(line: Line) -> None:
    finds = Finds(lambda message: None, line)
    finds.tell(b"search", 1.0, Broken())
    assert finds.best(b"search") is None
    assert line.unpickles == Label()
    finds.hear(b"search", 3.0, dumps("better"))
    assert finds.best(b"search") is None


def test_what_was_known_of_a_search_that_is_closed_is_not_looked_at(line: Line) -> None:
    finds = Finds(lambda message: None, line)
    finds.hear(b"search", 2.0, b"never looked at")
    finds.close(b"search")
    assert finds.best(b"search") is None
