"""What the schedulers of a node have done, and what of it would be lost with them.

What lives here: the books of one node, in seconds of work.  Each scheduler says in the shared page for how long it has
run tasks, which survives it; what it sends carries the share of the work that was nowhere else until then
(`scheduler/meter.py`).  A share that goes to a future of this very node is handed on with the value, for it will leave
the node with whatever that future is needed for.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from time import perf_counter
from typing import Any, NamedTuple, TypeAlias

from hdphrs.protocol.tasks import ROOT, Origin, Piece, TaskRef
from hdphrs.wire import local
from hdphrs.wire.page import Line, Totals

Sums: TypeAlias = "memoryview[float]"
"""By `Totals`."""


class Work(NamedTuple):
    """Of one node, in seconds."""

    done_s: float = 0.0
    """For how long its schedulers have run tasks."""
    away_s: float = 0.0
    """Of that: what is known on other nodes."""
    lost_s: float = 0.0
    """Of that: what schedulers that have died had done, and had not told anybody."""

    @property
    def at_risk_s(self) -> float:
        """What is lost if the node dies now, beside what is lost already."""
        return max(0.0, self.done_s - self.away_s - self.lost_s)


def work_of(totals: Sums, lines: Iterable[Line]) -> Work:
    """What a page says, up to now: that of this node, or of another one of this host."""
    now_s = perf_counter()
    done_s = totals[Totals.BURIED] + sum(line.busy_up_to(now_s) for line in lines)
    return Work(done_s, totals[Totals.AWAY], totals[Totals.LOST])


class _Shares:
    """The share of one result, on its way through the node."""

    def __init__(self, origin: Origin, own_s: float, here_s: float) -> None:
        self.origin = origin
        """Whose result it is."""
        self.own_s = own_s
        self.here_s = here_s
        self.message: list[Any] | None = None
        """What hands it on, until it has left."""


class Books:
    """Those of one node."""

    def __init__(self, totals: Sums) -> None:
        """`totals` is where the sums are kept, by `Totals`."""
        self.me = ROOT
        self._totals = totals
        self._told_s: dict[Origin, float] = {}
        """By scheduler: its own work that others know of."""
        self._leaving_s = 0.0
        self._by_future: dict[tuple[Origin, int], _Shares] = {}
        self._by_path: dict[bytes, _Shares] = {}
        """Of results that are being handled just now."""

    def finish(self, origin: Origin, ref: TaskRef, path: bytes, own_s: float, here_s: float) -> None:
        """A scheduler has answered a task."""
        if ref.node != self.me:
            self.give(origin, own_s, here_s)
            return
        shares = _Shares(origin, own_s, here_s)
        self._by_future[ref.origin, ref.slot] = self._by_path[path] = shares
        if ref.origin != origin:
            self._tell(origin, own_s)
            shares.own_s, shares.here_s = 0.0, own_s + here_s

    def give(self, origin: Origin, own_s: float, here_s: float) -> None:
        """A scheduler's share of something is about to leave the node; with `settle` it has left."""
        self._tell(origin, own_s)
        self._leaving_s += own_s + here_s

    def deliver(self, origin: Origin, slot: int, outcome: list[object]) -> list[Any]:
        """The message that fills a scheduler's future."""
        shares = self._by_future.get((origin, slot))
        if shares is None:
            return [local.DELIVER, slot, outcome, 0.0, 0.0]
        shares.message = [local.DELIVER, slot, outcome, shares.own_s, shares.here_s]
        return shares.message

    def keep(self, pieces: Sequence[Piece]) -> None:
        """These go to the root, some of them results that have just been handed on."""
        for piece in pieces:
            shares = self._by_path.pop(piece.path, None)
            if shares is not None:
                self.give(shares.origin, shares.own_s, shares.here_s)
                if shares.message is not None:
                    shares.message[3:] = 0.0, 0.0

    def settle(self) -> None:
        """What a scheduler has said is done with, and what others are to know of it has been sent."""
        self._totals[Totals.AWAY] += self._leaving_s
        self._leaving_s = 0.0
        self._by_future.clear()
        self._by_path.clear()

    def bury(self, origin: Origin, line: Line) -> None:
        """A scheduler has died, and all that it had said has been heard."""
        done_s = line.busy_up_to(perf_counter())
        self._totals[Totals.BURIED] += done_s
        self._totals[Totals.LOST] += max(0.0, done_s - self._told_s.pop(origin, 0.0))

    def work(self, lines: Iterable[Line]) -> Work:
        """The state of the books.

        Args:
            lines: of the schedulers that live.
        """
        return work_of(self._totals, lines)

    def _tell(self, origin: Origin, own_s: float) -> None:
        self._told_s[origin] = self._told_s.get(origin, 0.0) + own_s
