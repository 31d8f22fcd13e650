"""Starting the nodes of hosts again to which the connection has been lost, while the run goes on.

What lives here: when that is tried, and until when.  A node at the far end of an ssh ends with it, for the ssh is its
leash: so an outage that lasts longer than ssh waits costs the run that node, unless somebody starts another one.  It is
done when the ssh says that its connection has failed, which is also what it says of a node that a signal has killed.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence

from hdphrs.cluster.nodes import Node, RemoteNode
from hdphrs.config import REJOIN_PAUSE_MAX_S, REJOIN_PAUSE_MIN_S
from hdphrs.errors import StartError


class _Lost:
    """One host without a node."""

    def __init__(self, now_s: float, within_s: float) -> None:
        self.until_s = now_s + within_s
        self.next_s = now_s
        """When to try next."""
        self.pause_s = REJOIN_PAUSE_MIN_S
        self.is_tried = False
        """An attempt is under way."""


class Returns:
    """The hosts whose nodes are to be started again.

    Args:
        within_s: how long that is tried for each of them; 0 for not at all.
        begin: starts the node with this place among the nodes again; it may raise StartError.
        say: prints a line for the user.
        now, chance: the time in seconds, and a number from 0 to 1.
    """

    def __init__(
        self,
        within_s: float,
        begin: Callable[[int], RemoteNode],
        say: Callable[[str], None],
        *,
        now: Callable[[], float] = time.monotonic,
        chance: Callable[[], float] = random.random,
    ) -> None:
        self._within_s = within_s
        self._begin = begin
        self._say = say
        self._now = now
        self._chance = chance
        self._lost: dict[int, _Lost] = {}
        """By place."""
        self._given_up: set[int] = set()

    @property
    def wait_s(self) -> float | None:
        """In how many seconds to call `look` again, even if nothing happens; None: that is not necessary."""
        times = [lost.next_s for lost in self._lost.values() if not lost.is_tried]
        return max(0.0, min(times) - self._now()) if times else None

    def look(self, nodes: Sequence[Node]) -> None:
        """Start again what is due, of these as of their latest `poll`."""
        for place, node in enumerate(nodes):
            if isinstance(node, RemoteNode) and place not in self._given_up:
                self._look_at(place, node)

    def _look_at(self, place: int, node: RemoteNode) -> None:
        lost = self._lost.get(place)
        if node.returncode is None:
            if node.is_back:
                self._lost.pop(place, None)
            return
        if lost is None:
            if not self._within_s or not node.is_disconnected:
                return
            lost = self._lost[place] = _Lost(self._now(), self._within_s)
            self._say(
                f"the connection to {node.host} is lost; its node is started again, for at most {self._within_s:g} s"
            )
        elif lost.is_tried:
            self._fail(place, lost, node.why_not_started())
        if place in self._lost and self._now() >= lost.next_s:
            try:
                self._begin(place)
                lost.is_tried = True
            except StartError as error:
                self._fail(place, lost, str(error))

    def _fail(self, place: int, lost: _Lost, why: str) -> None:
        """An attempt has failed."""
        lost.is_tried = False
        if self._now() >= lost.until_s:
            del self._lost[place]
            self._given_up.add(place)
            self._say(f"{why}; given up after {self._within_s:g} s")
            return
        lost.next_s = min(self._now() + lost.pause_s * (1 + self._chance()) / 2, lost.until_s)
        lost.pause_s = min(2 * lost.pause_s, REJOIN_PAUSE_MAX_S)
