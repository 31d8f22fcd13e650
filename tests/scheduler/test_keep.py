"""Which children that have run in place leave pieces."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import hdphrs
from hdphrs.api import future as fast
from hdphrs.api.future import Future
from hdphrs.config import PIECE_BYTE_COST_S, PIECE_COST_S
from hdphrs.protocol.tasks import ROOT, Origin, Spark, Task, TaskRef
from hdphrs.scheduler.assigned import Assigned
from hdphrs.scheduler.keep import COVERS, Keeper
from hdphrs.scheduler.meter import Account, Meter
from hdphrs.wire.page import Page

ENOUGH_S = 2 * PIECE_COST_S


def large(cost_s: float) -> bytes:
    """A value that is worth keeping from so many seconds on, about."""
    return bytes(int(cost_s / PIECE_BYTE_COST_S))


class Stack:
    """A task that has children in place, one after the other, and what it has told the root of them."""

    def __init__(self, keeper: Keeper, told: list[Any], account: Account) -> None:
        self._keeper = keeper
        self._told = told
        self._account = account
        spark = Spark(TaskRef(ROOT, Origin(1), 0), 0, Task("main", bytes(16), b"", b"", True))
        self._task = Assigned(1, spark)

    def runs(self, for_s: float) -> None:
        self._account.ran_s += for_s
        self._account.own_s += for_s

    def keeps(self, for_s: float, value: object = 1, function: Callable[..., Any] = len) -> bool:
        """Whether a child leaves a piece that has just ended, after so long; those for a ledger alone may gather."""
        future: Future[Any] = Future()
        future._parent, future._index, future._content = self._task, 0, ()
        self._told += self._keeper.gathered()
        before = len(self._told)
        self._keeper.keep(future, function, value, for_s, for_s, self._account)
        return len(self._told + self._keeper.gathered()) > before


@pytest.fixture
def ledger() -> bool:
    return False


@pytest.fixture
def stack(monkeypatch: pytest.MonkeyPatch, ledger: bool) -> Any:
    monkeypatch.setattr(fast, "keep", None)
    page = Page.create(1)
    told: list[Any] = []
    meter = Meter(page.line(0))
    keeper = Keeper(
        lambda *messages: told.extend(messages), lambda function, args, path: b"check", meter, ledger=ledger
    )
    keeper.nodes = 2
    yield Stack(keeper, told, Account())
    page.close()


def test_child_that_has_cost_enough_leaves_a_piece(stack: Stack) -> None:
    stack.runs(ENOUGH_S)
    assert not stack.keeps(0.9 * ENOUGH_S)
    assert stack.keeps(ENOUGH_S)


def test_value_that_is_large_for_its_cost_stays(stack: Stack) -> None:
    stack.runs(ENOUGH_S)
    assert not stack.keeps(ENOUGH_S, large(1.1 * ENOUGH_S))
    assert stack.keeps(ENOUGH_S, large(0.9 * ENOUGH_S))


def test_small_value_goes_again_with_what_is_around_it(stack: Stack) -> None:
    stack.runs(ENOUGH_S)
    assert stack.keeps(ENOUGH_S)
    stack.runs(0.1 * ENOUGH_S)
    assert stack.keeps(1.1 * ENOUGH_S)


def test_large_value_whose_parts_have_left_does_not_follow_them_until_it_covers_many(stack: Stack) -> None:
    part_s = 5 * ENOUGH_S
    for number in range(1, COVERS + 1):
        stack.runs(1.01 * part_s)
        assert stack.keeps(part_s, large(0.9 * part_s))
        if number < COVERS:
            assert not stack.keeps(number * part_s, large(0.9 * number * part_s))
    assert stack.keeps(COVERS * part_s, large(0.9 * COVERS * part_s))
    assert not stack.keeps(COVERS * part_s, large(0.9 * COVERS * part_s))


@hdphrs.task(memo=True)
def wanted() -> None: ...


@pytest.mark.parametrize("ledger", [True, False])
def test_only_a_ledger_wants_a_value_that_has_cost_nothing(stack: Stack, ledger: bool) -> None:
    assert stack.keeps(0.0, large(1.0), wanted) is ledger
    assert not stack.keeps(0.0)
