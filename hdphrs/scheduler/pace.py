"""How much a scheduler exports, by what that has turned out to be worth (decision 17).

What lives here: `Pace`, which sets what an export costs this scheduler against how long the exported tasks have run
elsewhere.  What runs in place says nothing about that: the oldest sparks of divide and conquer are large though nearly
all of its tasks are tiny.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from time import perf_counter
from typing import NamedTuple

EXPORT_MAX = 64
"""Sparks in one export; of small ones, bundles."""

PAYS = 4.0
"""Exporting pays if the tasks run so many times as long as it takes this scheduler to export them: their way through
the node and into another scheduler takes three times that again."""

SHARE = 0.02
"""Of this scheduler's time may go into exports that do not pay: what they take, which is a part of what they cost. They
also wake three processes, and the helper thread takes the interpreter from the main one."""

LONGER = 2.0
"""So many times as long as the last one a rest is, if nothing has paid since."""

REST_S_MAX = 30e-3
"""A rest is no longer than this on that account."""

MEMORY = 16
"""Tasks that came back lately, by which the next ones are judged."""

CREDIT_S = 5e-3
"""What the first are taken to have been worth, until enough have come back, or a few that are tiny."""

WORTH_S = 12e-6
"""What takes less is tiny: even with many others it costs its scheduler about as much to send it as to run it."""

AWAY_S = 3e-3
"""One that has been away for so long is not tiny, though nobody knows yet how long it takes."""


class _Sent(NamedTuple):
    at_s: float
    took_s: float
    """What its export has taken."""


class Pace:
    """Of one scheduler; its two threads use it in turn."""

    def __init__(self, clock: Callable[[], float] = perf_counter) -> None:
        self.rest_until_s: float = 0.0
        """Until then nothing is exported on demand; not 0 until its end has been noticed."""
        self._clock = clock
        self._most = 1
        self._credit_s = CREDIT_S
        self._worth_s = 0.0
        self._took_s = 0.0
        self._out: dict[int, _Sent] = {}
        """By slot, oldest first."""
        self._heard_s = 0.0
        """When the last one came back."""
        self._overtaken = -1
        """Slot of the oldest one out, when one that had left after it came back."""
        self._rest_s = 0.0
        """How long the last rest was; 0 if something has paid since."""
        self._rested_s = 0.0
        """When it was over."""

    @property
    def is_resting(self) -> bool:
        """Whether demand is to wait."""
        return self._clock() < self.rest_until_s

    def allow(self) -> int:
        """How many sparks, or bundles of them, may leave now: 0 during a rest, one to see whether it pays, and twice as
        many each time while it does."""
        if self.is_resting:
            return 0
        self.rest_until_s = 0.0
        if not self._pays():
            self._most = 1
        return self._most

    def left(self, slots: list[int], took_s: float) -> None:
        """These have been exported, which took this scheduler so many seconds of processor time."""
        now_s = self._clock()
        for slot in slots:
            self._out[slot] = _Sent(now_s, took_s / len(slots))
        if self._pays():
            self._most = min(2 * self._most, EXPORT_MAX)
            self._rest_s = 0.0
        else:
            self._rest(now_s, took_s)

    def came_back(self, slot: int, cost_s: float) -> bool:
        """The outcome of a task has arrived, and so much work is behind it; one that was not exported does not count.

        Returns:
            Whether a rest is over, because exporting pays after all.
        """
        sent = self._out.pop(slot, None)
        if sent is None:
            return False
        self._heard_s = self._clock()
        for oldest in list(self._out)[:1]:
            if oldest < slot:
                self._overtaken = oldest
        self._credit_s *= 0.5 if cost_s < WORTH_S else 1 - 1 / MEMORY
        self._worth_s += cost_s - self._worth_s / MEMORY
        self._took_s += sent.took_s - self._took_s / MEMORY
        if not self.rest_until_s or not self._pays():
            return False
        self._rest_s = 0.0
        self.rest_until_s = self._heard_s  # so its end is still to be noticed
        return True

    def forget(self, slots: Iterable[int]) -> None:
        """These are not waited for: they will not come back, or are here."""
        for slot in slots:
            self._out.pop(slot, None)

    def pause(self) -> None:
        """Enough is away (`held.py`): rest until something comes back, or for a while."""
        self.rest_until_s = max(self.rest_until_s, self._clock() + REST_S_MAX)

    def _rest(self, now_s: float, took_s: float) -> None:
        """Longer than before, unless nobody has been hungry for a while."""
        before_s = self._rest_s if now_s < self._rested_s + REST_S_MAX else 0.0
        self._rest_s = max(took_s / SHARE, min(LONGER * before_s, REST_S_MAX))
        self._rested_s = self.rest_until_s = now_s + self._rest_s

    def _pays(self) -> bool:
        if self._credit_s + self._worth_s >= PAYS * self._took_s:
            return True
        for slot, sent in list(self._out.items())[:1]:  # if others come back, it may just wait for its turn behind them
            since_s = sent.at_s if slot == self._overtaken else max(sent.at_s, self._heard_s)
            return self._clock() - since_s >= AWAY_S + PAYS * sent.took_s
        return False
