"""What a scheduler sends to the root for the case that a task is run again (decision 8).

What lives here: `Keeper`, which decides whether the value of a child that has run in place is worth keeping, and makes
a piece of it.  What does not: noticing which children take long (`watch.py`), and using pieces (`reuse.py`).

Pieces gather for a few looks, or until something else is sent: a child often ends not long before its parent, whose
piece covers that of the child, and in a run with a ledger each message wakes the node; in others it does not (decision
36).  One that is small, and cannot change, is made only when it leaves.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from contextlib import suppress
from math import inf
from sys import getsizeof
from typing import Any, NamedTuple

from hdphrs.api import future as fast
from hdphrs.api.future import Future, context_of, name_of
from hdphrs.api.memo import Wish, wish_of
from hdphrs.config import LEDGER_PIECE_BYTE_COST_S, LEDGER_PIECE_COST_S, PIECE_BYTE_COST_S, PIECE_COST_S
from hdphrs.protocol.tasks import Piece, Verdict
from hdphrs.scheduler.assigned import is_below, path_of, root_of
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
"""Pieces that wait for each other."""

GATHER_LOOKS = 1
"""For so many whole looks at least, until the next one comes."""

STAY_LOOKS = 2
"""Or for so many if none comes: the helper thread sends them then.  It takes the interpreter from the main one for
that, so this is the dearer way."""

GATHER_S = 0.1
STAY_S = 0.16
"""For about so long, where looks are short."""

AT_ONCE = 3
"""A piece with so many times the work that one must have cost does not wait."""

AT_ONCE_S = 0.18
"""Nor with so much of it, where that is more."""

SMALL_BYTES_MAX = 256
"""In memory; a value that is worth keeping whatever else has left, or an argument."""

LOOK_S_MIN = 30e-3
LOOK_S_MAX = 0.1
"""How often running tasks are looked at: twice as often as they may leave pieces, for what takes long is seen twice."""

LEDGER_LOOK_S = 25e-3
"""That in a run with a ledger, see `note.py`."""


class Gathered(NamedTuple):
    """A piece that waits."""

    future: Future[Any]
    """Of the child."""
    piece: Callable[[], Piece]
    share: Share


class Keeper:
    """Makes pieces; serves the fast path's `keep`."""

    def __init__(
        self, tell: Callable[..., None], check: Check, check_later: CheckLater, meter: Meter, *, ledger: bool
    ) -> None:
        """
        Args:
            tell: has the node hear messages, sooner or later.
            check: the digest of a call.
            check_later: the same, of a call that stays as it is.
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
        self._gathered: deque[Gathered] = deque()
        self._looks = 0
        self._since = 0
        """How many looks there had been when the first of them came."""
        self._tell = tell
        self._check = check
        self._check_later = check_later
        fast.keep = self.keep_watched

    @property
    def look_s(self) -> float:
        """How often it is to be looked at what runs."""
        return LEDGER_LOOK_S if self._ledger else min(max(LOOK_S_MIN, PIECE_COST_S * self.nodes / 2), LOOK_S_MAX)

    @property
    def needs_looks(self) -> bool:
        """Whether pieces wait for one, or there will soon be some."""
        return bool(self._gathered) or self.watcher.sees_much

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
                self.keep(future, plain(timed), value, cost_s, ran_s, account)

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
        wish = wish_of(function) if self._ledger else Wish.NEVER
        keen = wish is Wish.ALWAYS
        if not (keen or cost_s >= enough_s) or not root_of(future).is_supervised:
            return
        piece = self._made_later(future, function, wish, value, cost_s)
        if piece is None:
            left = account.left(ran_s)
            new_s = inf if ran_s >= COVERS * left.dearest_s else cost_s - left.sum_s + enough_s
            piece = self._made_now(future, function, value, cost_s, inf if keen else min(cost_s, new_s))
        if piece is not None:
            self._gather(future, piece, account.give(cost_s, ran_s))

    def _made_now(
        self, future: Future[Any], function: Callable[..., Any], value: Any, cost_s: float, worth_s: float
    ) -> Callable[[], Piece] | None:
        """The piece, while nobody has changed the value; None if that is too large for what it is worth, or it or its
        call does not pickle."""
        outcome = dump_result(name_of(function), value, cost_s)
        if outcome.verdict is not Verdict.VALUE or worth_s < self._byte_cost_s * len(outcome.data):
            return None
        path = path_of(future)
        check = self._check(function, future._content, path, context_of(future))
        if check is None:
            return None
        piece = Piece(path, check, outcome)
        return lambda: piece

    def _made_later(
        self, future: Future[Any], function: Callable[..., Any], wish: Wish, value: Any, cost_s: float
    ) -> Callable[[], Piece] | None:
        """The piece of what is the same when pieces have gathered, and is small; it is made only then.

        Many pieces in a row are made faster than one after each task of milliseconds (decision 9), and those that are
        covered by then are not made at all.
        """
        if not all(map(_stays, (value, *future._content))) or context_of(future):
            return None
        check = self._check_later(function, future._content, wish)
        if check is None:
            return None
        return lambda: Piece(path := path_of(future), check(path), dump_result(name_of(function), value, cost_s))

    def _gather(self, future: Future[Any], piece: Callable[[], Piece], share: Share) -> None:
        gathered = self._gathered
        if not gathered:
            self._since = self._looks
        if not self._ledger:  # where each counts for itself
            with suppress(IndexError):  # the helper thread sends them
                while is_below((last := gathered.pop()).future, future):
                    share = Share(share.own_s + last.share.own_s, share.here_s + last.share.here_s)
                gathered.append(last)
        gathered.append(Gathered(future, piece, share))
        much_s = max(AT_ONCE * PIECE_COST_S * self.nodes, 0.0 if self._ledger else AT_ONCE_S)
        is_much = share.own_s + share.here_s >= much_s
        if is_much or len(gathered) >= GATHERED_MAX or self._waited() > self._looks_in(GATHER_LOOKS, GATHER_S):
            self.send()

    def send_due(self) -> None:
        """In the helper thread, at each look: send what has gathered for too long."""
        self._looks += 1
        if self._waited() > self._looks_in(STAY_LOOKS, STAY_S):
            self.send()

    def send(self) -> None:
        """Have the node hear what has gathered, while there is nothing else to say; the helper thread may do the same
        at the same time."""
        if messages := self.gathered():
            self._tell(*messages)

    def _waited(self) -> int:
        """How many looks there have been since the first of those that have gathered came."""
        return self._looks - self._since

    def _looks_in(self, at_least: int, for_s: float) -> int:
        """How many there are in so many seconds; with a ledger, where each piece is of use to the next run, as few as
        may be."""
        return at_least if self._ledger else max(at_least, round(for_s / self.look_s))

    def gathered(self) -> list[list[Any]]:
        """The pieces that have gathered, as messages; the helper thread may ask at the same time."""
        if not self._gathered:
            return []
        pieces, own_s, here_s = [], 0.0, 0.0
        with suppress(IndexError):
            while True:
                one = self._gathered.popleft()
                pieces.append(pack_piece(one.piece()))
                own_s += one.share.own_s
                here_s += one.share.here_s
        messages: list[list[Any]] = []
        for chunk in local.chunks(pieces, local.kept_bytes):
            messages.append([local.KEEP, chunk, own_s, here_s])
            own_s = here_s = 0.0
        return messages


def _stays(value: object) -> bool:
    """Whether nobody can change it, and it is small."""
    return type(value) in PLAIN and getsizeof(value) <= SMALL_BYTES_MAX
