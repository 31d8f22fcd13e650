"""What a node has done, and what of it would be lost with it."""

from __future__ import annotations

from collections.abc import Iterator
from time import perf_counter

import pytest

from hdphrs.node.books import Books, Work
from hdphrs.protocol.tasks import NodeId, Origin, Outcome, Piece, TaskRef, Verdict
from hdphrs.wire.page import Line, Page

ME, OTHER = NodeId(1), NodeId(2)
ONE, TWO = Origin(1), Origin(2)
PATH = b"path"


@pytest.fixture
def page() -> Iterator[Page]:
    page = Page.create(1)
    yield page
    page.close()


@pytest.fixture
def books(page: Page) -> Books:
    books = Books(page.totals)
    books.me = ME
    return books


def busy(page: Page, seconds: float) -> Line:
    line = page.line(0)
    line.ran(seconds, 0.0)
    return line


def shares_of(message: list[object]) -> list[object]:
    return message[3:]


def test_what_other_nodes_know_is_not_at_risk(books: Books, page: Page) -> None:
    books.finish(ONE, TaskRef(OTHER, ONE, 0), PATH, 2.0, 1.0)
    assert books.work([busy(page, 5.0)]).at_risk_s == 5.0  # not sent yet
    books.settle()
    work = books.work([busy(page, 5.0)])
    assert work == Work(done_s=5.0, away_s=3.0, lost_s=0.0)
    assert work.at_risk_s == 2.0


@pytest.mark.parametrize(("owner", "shares"), [(ONE, [2.0, 1.0]), (TWO, [0.0, 3.0])])
def test_share_is_handed_on_with_a_value_for_this_node(books: Books, owner: Origin, shares: list[float]) -> None:
    books.finish(ONE, TaskRef(ME, owner, 7), PATH, 2.0, 1.0)
    assert shares_of(books.deliver(owner, 7, [])) == shares
    books.settle()
    assert shares_of(books.deliver(owner, 7, [])) == [0.0, 0.0]
    assert books.work([]).away_s == 0.0


def test_share_that_goes_to_the_root_as_a_piece_is_not_handed_on(books: Books) -> None:
    books.finish(ONE, TaskRef(ME, ONE, 7), PATH, 2.0, 1.0)
    message = books.deliver(ONE, 7, [])
    books.keep([Piece(PATH, b"", Outcome(Verdict.VALUE, b"")), Piece(b"other", b"", Outcome(Verdict.VALUE, b""))])
    assert shares_of(message) == [0.0, 0.0]
    books.settle()
    assert books.work([]).away_s == 3.0


def test_dead_scheduler_loses_what_it_has_told_nobody(books: Books, page: Page) -> None:
    books.finish(ONE, TaskRef(ME, TWO, 0), PATH, 2.0, 0.0)  # to another scheduler
    books.finish(ONE, TaskRef(ME, ONE, 1), PATH, 1.0, 0.0)  # to itself
    books.give(ONE, 0.5, 0.0)  # a piece
    books.settle()
    books.bury(ONE, busy(page, 5.0))
    assert books.work([]) == Work(done_s=5.0, away_s=0.5, lost_s=2.5)


def test_task_that_runs_when_its_scheduler_dies_counts(books: Books, page: Page) -> None:
    line = busy(page, 5.0)
    line.ran(line.busy_s, perf_counter() - 10.0)
    books.bury(ONE, line)
    assert books.work([]).lost_s == pytest.approx(15.0, abs=1.0)
