"""What a scheduler sends to the root for the case that a task is run again (decision 8).

What lives here: `Keeper`, which decides whether the value of a child that has run in place is worth keeping, and makes
a piece of it.  What does not: noticing which children take long (`watch.py`), and using pieces (`reuse.py`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from contextlib import suppress
from sys import getsizeof
from typing import Any

from hdphrs.api import future as fast
from hdphrs.api.future import Future, name_of
from hdphrs.api.memo import Wish, wish_of
from hdphrs.config import LEDGER_PIECE_BYTE_COST_S, LEDGER_PIECE_COST_S, PIECE_BYTE_COST_S, PIECE_COST_S
from hdphrs.protocol.tasks import Piece, Verdict
from hdphrs.scheduler.assigned import path_of, root_of
from hdphrs.scheduler.meter import Account, Meter, Share
from hdphrs.scheduler.note import Timed, plain
from hdphrs.scheduler.reuse import Check, CheckLater
from hdphrs.scheduler.watch import Watcher
from hdphrs.wire import local
from hdphrs.wire.items import pack_piece
from hdphrs.wire.pickling import PLAIN
from hdphrs.wire.values import dump_result

COVERS = 8
"""A large value whose parts have left as pieces leaves all the same when it has cost so many times what the dearest of
them has: it covers them, so that they do not become very many."""

GATHERED_MAX = 32
"""Pieces that are only there for the ledger, and wait for each other."""

GATHER_LOOKS = 2
"""How long they do."""

SMALL_BYTES_MAX = 256
"""In memory; a value that is worth keeping whatever else has left."""

LOOK_S_MIN = 20e-3
LOOK_S_MAX = 0.1
"""How often running tasks are looked at: twice as often as they may leave pieces, for what takes long is seen twice."""

LEDGER_LOOK_S = 25e-3
"""That in a run with a ledger, see `note.py`."""


class Keeper:
    """Makes pieces; serves the fast path's `keep`."""

    def __init__(
        self, tell: Callable[..., None], check: Check, check_later: CheckLater, meter: Meter, *, ledger: bool
    ) -> None:
        """
        Args:
            tell: sends messages to the node.
            check: the digest of a call.
            check_later: the same, of a call in a run with a ledger that stays as it is.
            meter: knows how long tasks have run.
            ledger: whether pieces are for a ledger too, and then there are more of them.
        """
        self.nodes = 1
        """How many there are; the more, the more a piece must have cost."""
        self.watcher: Watcher = Watcher(meter.ran_s)
        self._meter = meter
        self._ledger = ledger
        self._cost_s = LEDGER_PIECE_COST_S if ledger else PIECE_COST_S
        self._byte_cost_s = LEDGER_PIECE_BYTE_COST_S if ledger else PIECE_BYTE_COST_S
        self._gathered: deque[tuple[Callable[[], Piece], Share]] = deque()
        self._tell = tell
        self._check = check
        self._check_later = check_later
        fast.keep = self.keep_watched

    @property
    def look_s(self) -> float:
        """How often it is to be looked at what runs."""
        return LEDGER_LOOK_S if self._ledger else min(max(LOOK_S_MIN, PIECE_COST_S * self.nodes / 2), LOOK_S_MAX)

    def keep_watched(self, future: Future[Any], function: Callable[..., Any], value: Any) -> None:
        """A watched task has been run in place; its arguments are still in the future."""
        account = self._meter.account
        assert account is not None, "somebody has run it"
        self._meter.enter(account)
        ran_s, surely_s = self.watcher.finished(future)
        if not (isinstance(function, Timed) or isinstance(getattr(function, "function", None), Timed)):
            self.keep(future, plain(function), value, ran_s + account.below_s.pop(future, 0.0), surely_s, account)

    def keep_timed(self, timed: Timed, future: Future[Any], value: Any, began_s: float, ended_s: float) -> None:
        """A timed task has been run in place, or else has a stack of its own, which is accounted for elsewhere."""
        account = self._meter.account
        assert account is not None, "somebody has run it"
        if self._meter.owner(future) is None:
            ran_s = ended_s - began_s
            cost_s = ran_s + account.below_s.pop(future, 0.0)
            if timed.wish is Wish.ALWAYS or cost_s >= self._cost_s * self.nodes:
                self._meter.enter(account)
                function = plain(timed)
                if not self._keep_later(future, function, timed.wish, value, cost_s, ran_s, account):
                    self.keep(future, function, value, cost_s, ran_s, account)

    def keep(
        self,
        future: Future[Any],
        function: Callable[..., Any],
        value: Any,
        cost_s: float,
        ran_s: float,
        account: Account,
    ) -> None:
        """A child has been run here; the root keeps its value if that has cost enough, also for its size and beside
        what has left of it already, and may be needed again.

        Args:
            cost_s: the work behind the value.
            ran_s: for how long it has run on its stack at least, children in place included.
            account: that of the stack.
        """
        enough_s = self._cost_s * self.nodes
        keen = self._ledger and wish_of(function) is Wish.ALWAYS
        if not (keen or cost_s >= enough_s) or not root_of(future).is_supervised:
            return
        outcome = dump_result(name_of(function), value, cost_s)
        if outcome.verdict is not Verdict.VALUE:
            return
        size_cost_s = self._byte_cost_s * len(outcome.data)
        left = account.left(ran_s)
        is_new = cost_s - left.sum_s + enough_s >= size_cost_s or ran_s >= COVERS * left.dearest_s
        if not (keen or (cost_s >= size_cost_s and is_new)):
            return
        path = path_of(future)
        check = self._check(function, future._content, path)
        if check is None:
            return
        piece = Piece(path, check, outcome)
        share = account.give(cost_s, ran_s)
        if self._is_urgent(cost_s):
            self._tell(*self.gathered(), [local.KEEP, [pack_piece(piece)], *share])
        else:
            self._gather(lambda: piece, share)

    def _keep_later(
        self,
        future: Future[Any],
        function: Callable[..., Any],
        wish: Wish,
        value: Any,
        cost_s: float,
        ran_s: float,
        account: Account,
    ) -> bool:
        """The same as `keep` for what is wanted for its time alone, and is the same when pieces have gathered.

        Many pieces in a row are made faster than one after each task of milliseconds (decision 9).
        """
        if self._is_urgent(cost_s) or type(value) not in PLAIN or getsizeof(value) > SMALL_BYTES_MAX:
            return False
        later = self._check_later(function, future._content, wish)
        if later is None or not root_of(future).is_supervised:
            return False

        def piece() -> Piece:
            path = path_of(future)
            return Piece(path, later(path), dump_result(name_of(function), value, cost_s))

        self._gather(piece, account.give(cost_s, ran_s))
        return True

    def _is_urgent(self, cost_s: float) -> bool:
        """Whether a piece is not for the ledger alone."""
        return cost_s >= PIECE_COST_S * self.nodes

    def _gather(self, piece: Callable[[], Piece], share: Share) -> None:
        self._gathered.append((piece, share))
        if len(self._gathered) >= GATHERED_MAX:
            self._tell(*self.gathered())

    def gathered(self) -> list[list[Any]]:
        """The pieces that have gathered, as a message if there are any; the helper thread may ask at the same time."""
        if not self._gathered:
            return []
        pieces, own_s, here_s = [], 0.0, 0.0
        with suppress(IndexError):
            while True:
                piece, share = self._gathered.popleft()
                pieces.append(pack_piece(piece()))
                own_s += share.own_s
                here_s += share.here_s
        return [[local.KEEP, pieces, own_s, here_s]] if pieces else []
