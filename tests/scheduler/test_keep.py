"""Which children that have run in place leave pieces."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import hdphrs
from hdphrs.api import future as fast
from hdphrs.api.future import Future
from hdphrs.api.memo import Wish
from hdphrs.config import LEDGER_PIECE_COST_S, PIECE_BYTE_COST_S, PIECE_COST_S
from hdphrs.protocol.tasks import ROOT, Origin, Spark, Task, TaskRef
from hdphrs.scheduler.assigned import Assigned
from hdphrs.scheduler.keep import (
    AT_ONCE,
    AT_ONCE_S,
    COVERS,
    GATHER_LOOKS,
    GATHERED_MAX,
    SMALL_BYTES_MAX,
    STAY_LOOKS,
    Keeper,
)
from hdphrs.scheduler.meter import Account, Meter
from hdphrs.scheduler.note import Timed
from hdphrs.scheduler.reuse import Later
from hdphrs.wire import local
from hdphrs.wire.items import unpack_outcome
from hdphrs.wire.page import Page
from hdphrs.wire.values import load_outcome

ENOUGH_S = 2 * PIECE_COST_S
LITTLE_S = 2.001 * LEDGER_PIECE_COST_S
"""As two nodes have it; and a little, for a difference of times is rounded more, the longer the machine has been up."""
GATHER, STAY = 3, 5
"""Looks for which pieces wait there, every 30 ms: for another one, and for none."""


def large(cost_s: float) -> bytes:
    """A value that is worth keeping from so many seconds on, about."""
    return bytes(int(cost_s / PIECE_BYTE_COST_S))


class Stack:
    """A task that has children in place, one after the other, and what it has told the root of them."""

    def __init__(self, keeper: Keeper, told: list[Any], account: Account, *, supervised: bool) -> None:
        self._keeper = keeper
        self._told = told
        self._account = account
        spark = Spark(TaskRef(ROOT, Origin(1), 0), 0, Task("main", bytes(16), b"", b"", supervised))
        self._task = Assigned(1, spark)

    def among(self, nodes: int) -> None:
        """There are so many nodes."""
        self._keeper.nodes = nodes

    def runs(self, for_s: float) -> None:
        self._account.ran_s += for_s
        self._account.own_s += for_s

    def keeps(self, for_s: float, value: object = 1, function: Callable[..., Any] = len) -> bool:
        """Whether a child leaves a piece that has just ended, after so long; it may have gathered."""
        self._told += self._keeper.gathered()
        before = len(self._told)
        self._keeper.keep(self.child(), function, value, for_s, for_s, self._account)
        return len(self._told + self._keeper.gathered()) > before

    def child(self, parent: Future[Any] | None = None) -> Future[Any]:
        """One of the task, or of another child."""
        future: Future[Any] = Future()
        future._parent, future._index, future._content = parent or self._task, 0, ()
        return future

    def keep(self, future: Future[Any], for_s: float) -> None:
        """This child has just ended."""
        self._keeper.keep(future, some, 1, for_s, for_s, self._account)

    def look(self, count: int = 1) -> list[tuple[int, float]]:
        """Of the messages that the helper thread sends: how many pieces, and the work that was nowhere else."""
        before = len(self._told)
        for _ in range(count):
            self._keeper.send_due()
        messages = self._told[before:]
        del self._told[before:]
        return [(len(pieces), own_s) for _, pieces, own_s, _ in messages]

    def stay(self, count: int) -> None:
        """So many timed children end."""
        for _ in range(count):
            self.ends(LITTLE_S, 7, some)

    def told(self) -> int:
        """How many pieces have left."""
        return sum(len(message[1]) for message in self._told)

    def times(
        self, for_s: float, value: object, function: Callable[..., Any], args: tuple[Any, ...] = ()
    ) -> list[list[Any]]:
        """The pieces that a timed child leaves, as they are when they leave."""
        self.ends(for_s, value, function, args)
        self._told += self._keeper.gathered()
        pieces = [piece for message in self._told for piece in message[1]]
        self._told.clear()
        return pieces

    def ends(self, for_s: float, value: object, function: Callable[..., Any], args: tuple[Any, ...] = ()) -> None:
        """A timed child has run for so long."""
        future = self.child()
        future._content = args
        self.runs(for_s)
        began_s = self._account.ran_s - for_s
        timed = Timed(function, lambda: self._account.ran_s, self._keeper.keep_timed)
        self._keeper.keep_timed(timed, future, value, began_s, self._account.ran_s)


@pytest.fixture
def ledger() -> bool:
    return False


@pytest.fixture
def supervised() -> bool:
    return True


def check_later(function: Callable[..., Any], args: tuple[Any, ...], wish: Wish) -> Later | None:
    """Only functions of this module have been asked about before."""
    return (lambda path: b"later" + path) if function.__module__ == __name__ else None


@pytest.fixture
def stack(monkeypatch: pytest.MonkeyPatch, ledger: bool, supervised: bool) -> Any:
    monkeypatch.setattr(fast, "keep", None)
    page = Page.create(1)
    told: list[Any] = []
    meter = Meter(page.line(0))
    keeper = Keeper(
        lambda *messages: told.extend(messages),
        lambda function, args, path, context: b"check",
        check_later,
        meter,
        ledger=ledger,
    )
    keeper.nodes = 2
    meter.account = Account()
    yield Stack(keeper, told, meter.account, supervised=supervised)
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


def some() -> None: ...


@pytest.mark.parametrize(("ledger", "enough_s"), [(True, LITTLE_S), (False, ENOUGH_S)])
def test_a_small_value_becomes_a_piece_when_pieces_have_gathered(stack: Stack, enough_s: float) -> None:
    ((path, check, outcome),) = stack.times(enough_s, 7, some, ("argument",))
    assert check == b"later" + path
    assert load_outcome(unpack_outcome(outcome)) == (True, 7)
    assert stack.times(0.9 * enough_s, 7, some) == []


@pytest.mark.parametrize(("ledger", "for_s"), [(True, LITTLE_S), (False, ENOUGH_S)])
@pytest.mark.parametrize(
    ("value", "function", "args"),
    [
        pytest.param([7], some, (), id="it may change"),
        pytest.param("x" * SMALL_BYTES_MAX, some, (), id="it is large"),
        pytest.param(7, some, ([7],), id="an argument may change"),
        pytest.param(7, some, (7, "x" * SMALL_BYTES_MAX), id="an argument is large"),
        pytest.param(7, len, (), id="its function may change"),
    ],
)
def test_others_become_pieces_at_once(
    stack: Stack, for_s: float, value: object, function: Any, args: tuple[Any, ...]
) -> None:
    ((_, check, outcome),) = stack.times(for_s, value, function, args)
    assert check == b"check"
    assert load_outcome(unpack_outcome(outcome)) == (True, value)


@pytest.mark.parametrize("ledger", [True])
@pytest.mark.parametrize("supervised", [False])
def test_below_an_unsupervised_task_nothing_leaves(stack: Stack) -> None:
    assert stack.times(LITTLE_S, 7, some) == []
    assert stack.times(LITTLE_S, [7], some) == []


@pytest.mark.parametrize("ledger", [True])
def test_many_pieces_do_not_wait_for_each_other(stack: Stack) -> None:
    stack.stay(GATHERED_MAX - 1)
    assert stack.told() == 0
    stack.stay(1)
    assert stack.told() == GATHERED_MAX


def test_pieces_wait_for_each_other_for_a_few_looks(stack: Stack) -> None:
    stack.runs(3 * ENOUGH_S)
    stack.keep(stack.child(), ENOUGH_S)
    assert stack.look(GATHER) == []
    stack.keep(stack.child(), ENOUGH_S)
    assert stack.told() == 0
    assert stack.look() == []
    stack.keep(stack.child(), ENOUGH_S)
    assert stack.told() == 3


def test_the_helper_thread_sends_them_if_no_other_comes(stack: Stack) -> None:
    stack.runs(2 * ENOUGH_S)
    for _ in range(2):
        stack.keep(stack.child(), ENOUGH_S)
        assert stack.look(STAY) == []
        assert stack.look() == [(1, ENOUGH_S)]
        assert stack.look(2 * STAY) == []


def test_they_wait_for_fewer_looks_where_these_are_rare(stack: Stack) -> None:
    """Among many nodes: so that they do not wait for longer."""
    stack.among(7)
    for_s = 7 * PIECE_COST_S
    stack.runs(4 * for_s)
    stack.keep(stack.child(), for_s)
    assert stack.look(GATHER_LOOKS + 1) == []
    stack.keep(stack.child(), for_s)
    assert stack.told() == 2
    stack.keep(stack.child(), for_s)
    assert stack.look(STAY_LOOKS) == []
    assert stack.look() == [(1, for_s)]


def test_a_piece_that_is_covered_by_then_does_not_leave(stack: Stack) -> None:
    parent, aunt = stack.child(), stack.child()
    grandchild = stack.child(stack.child(parent))
    stack.runs(2.5 * ENOUGH_S)
    stack.keep(aunt, ENOUGH_S)
    stack.keep(grandchild, ENOUGH_S)
    stack.keep(parent, 1.5 * ENOUGH_S)
    assert stack.look(STAY + 1) == [(2, 2.5 * ENOUGH_S)]


@pytest.mark.parametrize("ledger", [True])
def test_unless_there_is_a_ledger(stack: Stack) -> None:
    parent = stack.child()
    stack.runs(ENOUGH_S)
    stack.keep(stack.child(parent), ENOUGH_S)
    stack.keep(parent, ENOUGH_S)
    assert stack.look(STAY_LOOKS + 1) == [(2, ENOUGH_S)]


def test_much_work_does_not_wait(stack: Stack) -> None:
    stack.runs(2 * AT_ONCE_S)
    stack.keep(stack.child(), 0.9 * AT_ONCE_S)
    assert stack.told() == 0
    stack.keep(stack.child(), AT_ONCE_S)
    assert stack.told() == 2


def test_what_is_much_grows_with_the_cluster(stack: Stack) -> None:
    stack.among(7)
    much_s = AT_ONCE * PIECE_COST_S * 7
    stack.runs(2 * much_s)
    stack.keep(stack.child(), 0.9 * much_s)
    assert stack.told() == 0
    stack.keep(stack.child(), much_s)
    assert stack.told() == 2


def test_large_pieces_do_not_share_a_message(stack: Stack, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local, "CHUNK_BYTES_MAX", 1)
    stack.runs(2 * ENOUGH_S)
    stack.keep(stack.child(), ENOUGH_S)
    stack.keep(stack.child(), ENOUGH_S)
    assert stack.look(STAY + 1) == [(1, 2 * ENOUGH_S), (1, 0.0)]
