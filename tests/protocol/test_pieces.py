"""The root's store of finished parts of unfinished tasks."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hdphrs.config import CoreConfig
from hdphrs.protocol.pieces import Pieces, check_of, is_keen, is_memo, piece_of, worth
from hdphrs.protocol.tasks import FAIR, KEEN, KEY_BYTES, Outcome, Piece, Task, Verdict

CONFIG = CoreConfig(piece_cost_s=0.02, piece_byte_cost_s=1e-6, pieces_bytes_max=10_000)


def piece(*path: int, cost_s: float = 1.0, size_bytes: int = 10) -> Piece:
    return Piece(bytes(path), b"check", Outcome(Verdict.VALUE, bytes(size_bytes), (), cost_s))


def kept(pieces: Pieces) -> list[tuple[int, ...]]:
    return [tuple(piece.path) for piece in pieces.below(b"")]


def test_piece_is_found_below_every_ancestor_and_nowhere_else() -> None:
    pieces = Pieces(CONFIG, [piece(1, 2, 3), piece(1, 3), piece(2)])
    assert [tuple(found.path) for found in pieces.below(bytes([1]))] == [(1, 2, 3), (1, 3)]
    assert [tuple(found.path) for found in pieces.below(bytes([1, 2]))] == [(1, 2, 3)]
    assert [tuple(found.path) for found in pieces.below(bytes([2]))] == [(2,)]
    assert pieces.below(bytes([3])) == ()


def test_finished_task_covers_its_descendants_whichever_comes_first() -> None:
    pieces = Pieces(CONFIG, [piece(1, 2, 3), piece(1, 2), piece(1, 2, 4), piece(1, 3)])
    assert kept(pieces) == [(1, 2), (1, 3)]
    pieces.cover(bytes([1]))
    assert len(pieces) == 0


def test_beyond_the_bound_the_cheapest_for_their_size_go_first() -> None:
    pieces = Pieces(CONFIG)
    for index in range(5):
        pieces.keep(piece(index, cost_s=index, size_bytes=2_000))
    assert kept(pieces) == [(2,), (3,), (4,)]
    pieces.keep(piece(9, cost_s=100.0, size_bytes=5_000))
    assert (9,) in kept(pieces)


@given(paths=st.lists(st.lists(st.integers(0, 2), min_size=1, max_size=4), max_size=30))
def test_store_is_what_a_plain_reading_of_the_rules_gives(paths: list[list[int]]) -> None:
    pieces = Pieces(replace(CONFIG, pieces_bytes_max=1 << 20))
    plain: list[tuple[int, ...]] = []
    for path in paths:
        new = tuple(path)
        pieces.keep(piece(*new))
        if not any(new[: len(old)] == old for old in plain):
            plain = [old for old in plain if old[: len(new)] != new] + [new]
    assert kept(pieces) == sorted(plain)


def test_piece_of_a_task_checks_function_and_arguments() -> None:
    task = Task("f", bytes([1]), b"code", b"payload")
    outcome = Outcome(Verdict.VALUE, b"v", (), 1.0)
    made = piece_of(task, outcome)
    assert (made.path, made.outcome) == (task.path, outcome)
    assert made.check == check_of(b"code", b"payload")
    assert made.check != check_of(b"code", b"payloads")


@pytest.mark.parametrize(
    ("cost_s", "nodes", "size_bytes", "verdict", "is_worth"),
    [
        (0.02, 1, 0, Verdict.VALUE, True),
        (0.02, 2, 0, Verdict.VALUE, False),
        (0.04, 2, 0, Verdict.VALUE, True),
        (0.04, 1, 40_000, Verdict.VALUE, True),
        (0.04, 1, 41_000, Verdict.VALUE, False),
        (9.0, 1, 0, Verdict.RAISED, False),
    ],
)
def test_result_is_worth_the_way_to_the_root_if_it_cost_much_more(
    cost_s: float, nodes: int, size_bytes: int, verdict: Verdict, is_worth: bool
) -> None:
    assert worth(CONFIG, nodes, Outcome(verdict, bytes(size_bytes), (), cost_s)) is is_worth


def test_task_that_the_ledger_knows_is_recognised_by_its_memo_whatever_its_bytes() -> None:
    keen, fair = KEEN + bytes(KEY_BYTES), FAIR + bytes(KEY_BYTES)
    outcome = Outcome(Verdict.VALUE, b"v", (), 1.0)
    assert piece_of(Task("f", b"\1", b"code", b"payload", memo=fair), outcome).check == fair
    assert (is_memo(fair), is_memo(keen), is_memo(check_of(b"code", b"payload"))) == (True, True, False)
    assert (is_keen(fair), is_keen(keen), is_keen(KEEN + bytes(15))) == (False, True, False)


def test_whoever_asks_is_told_of_pieces_that_are_kept_and_of_no_others() -> None:
    pieces = Pieces(CONFIG)
    told: list[Piece] = []
    pieces.on_keep = told.append
    pieces.keep(piece(1))
    pieces.keep(piece(1, 2))
    assert told == [piece(1)]


def test_piece_that_alone_is_too_large_is_not_kept() -> None:
    pieces = Pieces(CONFIG)
    pieces.keep(Piece(b"\1", b"check", Outcome(Verdict.VALUE, bytes(20_000), (), 1.0)))
    assert len(pieces) == 0
