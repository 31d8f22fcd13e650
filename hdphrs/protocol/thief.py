"""The thief: looks for work when the schedulers of this node are hungry (paper, section 4.1).

What lives here: the fish that are out, whom they were sent to, and when to stop and rest.  A fish carries an id, so a
late answer cannot be taken for that of another (hole R14), and a deadline, so a lost one does not stop the fishing for
ever (hole R5).  Several are out at a time, each to another victim (hole R20).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from hdphrs.config import CoreConfig
from hdphrs.protocol.effects import Send
from hdphrs.protocol.messages import Fish
from hdphrs.protocol.quiet import Quiet
from hdphrs.protocol.tasks import ROOT, FishId, NodeId
from hdphrs.records import dataclass


@dataclass(frozen=True, slots=True)
class _Sent:
    victim: NodeId
    at_s: float


class Thief:
    """The fishing of one node."""

    def __init__(self, me: NodeId, config: CoreConfig, choose: Callable[[int], int], quiet: Quiet) -> None:
        self._me = me
        self._config = config
        self._choose = choose
        self._quiet = quiet
        self._out: dict[FishId, _Sent] = {}
        self._next_fish = 1
        self._favourite: NodeId | None = None
        """Who made the work that came the last time; it may make more, and who passes some on has soon none."""
        self._refusals = 0
        """Quick refusals since the last success."""
        self._rest_s = config.backoff_min_s
        self._resting_until_s: float | None = None

    @property
    def out(self) -> int:
        """Fish without an answer."""
        return len(self._out)

    def hunt(self, others: Sequence[NodeId], now: float) -> list[Send]:
        """Send fish until enough are out; called while this node is hungry."""
        sent: list[Send] = []
        if self._resting_until_s is not None or not others:
            return sent
        while len(self._out) < self._config.fish_max:
            asked = [fish.victim for fish in self._out.values()]
            victims = [node for node in others if node not in asked]
            if not victims:
                break
            victim = self._next_victim(others, victims, now)
            fish = FishId(self._next_fish)
            self._next_fish += 1
            self._out[fish] = _Sent(victim, now)
            sent.append(Send(victim, Fish(fish, self._me, self._config.want_max, self._quiet.lasts_s(now))))
        return sent

    def _next_victim(self, others: Sequence[NodeId], victims: Sequence[NodeId], now: float) -> NodeId:
        """The favourite, or anybody; when it has been quiet for long, the last fish are kept on the lifelines."""
        favourite = self._favourite
        if favourite is not None and favourite in victims:
            return favourite
        if self._quiet.is_deep(now):
            free = [node for node in self._lifelines(others) if node in victims]
            if free and len(free) >= self._config.fish_max - len(self._out):
                return free[0]
        return victims[self._choose(len(victims))]

    def _lifelines(self, others: Sequence[NodeId]) -> list[NodeId]:
        """The next node, so that there is a fish at each; and the root, where what the program spawns begins.  One
        fish at least goes anywhere (decision 25)."""
        following = min([node for node in others if node > self._me], default=min(others))
        return [following, ROOT][max(0, 3 - self._config.fish_max) :]

    def on_nowork(self, fish: FishId, others: int, now: float) -> bool:
        """NOWORK: try elsewhere, but rest when everybody has refused at once; False if nobody waits for it."""
        sent = self._out.pop(fish, None)
        if sent is None:
            return False
        if self._favourite == sent.victim:
            self._favourite = None
        if now - sent.at_s < self._config.park_s / 2:
            self._refusals += 1
            if self._refusals >= others:
                self._refusals = 0
                self._resting_until_s = now + self._rest_s
                self._rest_s = min(2 * self._rest_s, self._config.backoff_max_s)
        return True

    def on_schedule(self, source: NodeId, fish: FishId) -> None:
        """SCHEDULE: there is work at `source`; sparks that come without a fish (late ones) are welcome too."""
        self._out.pop(fish, None)
        self._favourite = source
        self.refresh()

    def refresh(self) -> None:
        """There is work again: forget the refusals."""
        self._refusals = 0
        self._rest_s = self._config.backoff_min_s
        self._resting_until_s = None

    def on_death(self, dead: NodeId) -> None:
        """DEADNODE (line 29): a fish to the dead will not be answered, and it is nobody's favourite (hole R4)."""
        self._out = {fish: sent for fish, sent in self._out.items() if sent.victim != dead}
        if self._favourite == dead:
            self._favourite = None

    def stop(self) -> None:
        """This node leaves: nobody will answer it."""
        self._out.clear()
        self._resting_until_s = None

    def expire(self, now: float) -> int:
        """Give up fish past their deadline, and end a rest; how many fish (hole R5)."""
        if self._resting_until_s is not None and self._resting_until_s <= now:
            self._resting_until_s = None
        late = [fish for fish, sent in self._out.items() if sent.at_s + self._config.fish_deadline_s <= now]
        for fish in late:
            if self._out.pop(fish).victim == self._favourite:
                self._favourite = None
        return len(late)

    def next_deadline(self) -> float | None:
        """When to look again."""
        if not self._out:
            return self._resting_until_s
        deadlines = [sent.at_s + self._config.fish_deadline_s for sent in self._out.values()]
        if self._resting_until_s is not None:
            deadlines.append(self._resting_until_s)
        return min(deadlines, default=None)
