"""The board: it keeps the best of each search, and of not too many."""

from __future__ import annotations

from hdphrs.api.board import TOPICS_MAX, Board


def test_only_what_is_better_is_news() -> None:
    board: Board[bytes] = Board()
    assert [board.improve(b"search", rank, b"%d" % rank) for rank in (1.0, 3.0, 2.0, 3.0)] == [True, True, False, False]
    assert board.best(b"search") == (3.0, b"3")
    assert board.best(b"another") is None


def test_what_is_no_number_is_no_rank() -> None:
    board: Board[bytes] = Board()
    assert not board.improve(b"search", float("nan"), b"")
    assert board.all() == []


def test_searches_that_were_longest_without_news_are_forgotten() -> None:
    board: Board[bytes] = Board()
    for number in range(TOPICS_MAX):
        board.improve(b"%d" % number, 1.0, b"")
    board.improve(b"0", 2.0, b"")
    board.improve(b"new", 1.0, b"")
    assert len(board.all()) == TOPICS_MAX
    assert board.best(b"0") == (2.0, b"")
    assert board.best(b"1") is None


def test_of_a_search_that_is_closed_nothing_is_known_or_taken_in_any_more() -> None:
    board: Board[bytes] = Board()
    board.improve(b"search", 1.0, b"")
    board.close(b"search")
    assert not board.improve(b"search", 2.0, b"")
    assert (board.best(b"search"), board.all(), board.closed) == (None, [], [b"search"])
    for number in range(TOPICS_MAX):
        board.close(b"%d" % number)
    assert len(board.closed) == TOPICS_MAX
    assert board.improve(b"search", 2.0, b"")
