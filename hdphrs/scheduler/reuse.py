"""A task that is run again, and the parts of it that are finished already (decision 8).

What lives here: the meeting of spawns and pieces.  Only children of *interior* tasks are looked at, those that have
pieces below them; so everything that really must be computed again spawns at full speed.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from typing import Any

from hdphrs.api.future import DONE, FAILED, Future, context_of, name_of, take
from hdphrs.api.memo import Wish
from hdphrs.protocol.paths import child_path
from hdphrs.protocol.tasks import Orphan, Outcome, Piece, Spark
from hdphrs.scheduler.note import plain
from hdphrs.wire.page import Reading, label
from hdphrs.wire.values import load_outcome

Check = Callable[[Callable[..., Any], tuple[Any, ...], bytes, bytes], bytes | None]
"""The digest of a call at a path and in a context, as pieces have it; None if the call does not pickle."""

Later = Callable[[bytes], bytes]
"""That of one call, for which only the path is missing."""

CheckLater = Callable[[Callable[..., Any], tuple[Any, ...], Wish], Later | None]
"""Its maker; None if `Check` is to be asked at once."""

Credit = Callable[[Future[Any], float], None]
"""Told which future has got its value from a piece, and the work behind that."""


Fill = Callable[[Future[Any], Outcome, bytes], None]
"""Fills a future; told how the page names its value."""


class Reuse:
    """What one assigned task need not compute again."""

    def __init__(self, spark: Spark, check: Check, credit: Credit, fill: Fill) -> None:
        self._check = check
        self._credit = credit
        self._fill = fill
        self._pieces = {piece.path: piece for piece in spark.pieces}
        self._paths = sorted(self._pieces)
        self._interior: dict[Future[Any] | None, bytes] = {}
        self._top = spark.task.path
        self.used: int = 0
        self.mismatched: int = 0

    def meet(self, future: Future[Any], root: Future[Any]) -> bool:
        """A child has been spawned: fill its future if it is finished; remember it if there are pieces below it.

        Args:
            root: the assigned task.

        Returns:
            Whether it is for the node to see to it, since it still runs somewhere.
        """
        parent = self._top if future._parent is root else self._interior.get(future._parent)
        if parent is None or future is root:
            return False
        path = child_path(parent, future._index)
        piece = self._pieces.get(path)
        if piece is None:
            if self._is_interior(path):
                self._interior[future] = path
        elif isinstance(piece, Orphan):
            return True
        elif (function := take(future)) is not None:
            if self._check(plain(function), future._content, path, context_of(future)) == piece.check:
                self._fill(future, piece.outcome, label(Reading.VALUE, path, name_of(function)))
                self._credit(future, piece.outcome.cost_s)
                self.used += 1
            else:
                future._function = function
                self.mismatched += 1
        return False

    def find(self, path: bytes) -> Piece | None:
        """The piece at this path, for a child that is placed elsewhere."""
        piece = self._pieces.get(path)
        return piece if isinstance(piece, Piece) else None

    def _is_interior(self, path: bytes) -> bool:
        place = bisect_right(self._paths, path)
        return place < len(self._paths) and self._paths[place].startswith(path)


def fill(future: Future[Any], outcome: Outcome) -> None:
    """Fill a future that has been taken."""
    succeeded, content = load_outcome(outcome)
    future._content = content
    future._status = DONE if succeeded else FAILED
