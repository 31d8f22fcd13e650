"""Leaving: how a node goes that is told to, for instance because its host will be taken away (decision 10).

What lives here: the leave of this node, from LEAVING to BYE.  What does not: giving its sparks away (`victim.py`), and
what the others do with a node that is gone, which is what they do with a dead one.

LEAVING asks all others to give this node nothing more, and each answers with NOTED.  Links keep their order, so with
NOTED a node has all that was sent to it before LEAVING, and of its own nothing about a task is still to come.  If all
have noted it, and nothing of any task has been here since it was said, then nothing is here or on its way any more, in
either direction, and the node can go.  Otherwise it waits until nothing is here, and asks again.  When its time is
over it goes anyway, and what it still had is lost with it.
"""

from __future__ import annotations

from hdphrs.protocol.effects import Effect, Send
from hdphrs.protocol.membership import Membership
from hdphrs.protocol.messages import Leaving as LeavingMessage
from hdphrs.protocol.tasks import NodeId, Parting


class Leaving:
    """The leave of one node."""

    def __init__(self, me: NodeId, members: Membership) -> None:
        self._me = me
        self._members = members
        self._until_s: float | None = None
        self._round = 0
        self._unnoted: dict[NodeId, None] = {}
        """Who has not answered the last LEAVING."""
        self._quiet = False
        """Nothing of a task has been here since then."""

    @property
    def under_way(self) -> bool:
        """Whether this node leaves."""
        return self._until_s is not None

    def next_deadline(self) -> float | None:
        """When its time is over."""
        return self._until_s

    def begin(self, grace_s: float, now: float) -> list[Effect]:
        """This node is to leave within `grace_s`."""
        if self.under_way:
            return []
        self._until_s = now + grace_s
        self._members.let_go(self._me)
        return self._ask()

    def greet(self, newcomer: NodeId) -> list[Effect]:
        """A node has joined: it is told like the others."""
        if not self.under_way:
            return []
        self._unnoted[newcomer] = None
        return [Send(newcomer, LeavingMessage(self._round))]

    def on_noted(self, sender: NodeId, round_: int) -> bool:
        """NOTED; False if nobody waits for it."""
        if round_ != self._round or sender not in self._unnoted:
            return False
        del self._unnoted[sender]
        return True

    def on_death(self, dead: NodeId) -> None:
        """DEADNODE: it will not answer."""
        self._unnoted.pop(dead, None)

    def stir(self) -> None:
        """Something of a task is here, or was until a moment ago."""
        self._quiet = False

    def proceed(self, now: float, *, holds: bool) -> tuple[list[Effect], Parting | None]:
        """How the leave goes on after an event.

        Args:
            holds: whether anything of a task is here.

        Returns:
            What to send; and how this node parts, if it does so now.
        """
        assert self._until_s is not None
        if holds:
            self.stir()
        if self._quiet and not self._unnoted:
            return [], Parting.LEFT_NOTHING
        if self._until_s <= now:
            return [], Parting.LEFT
        if holds or self._unnoted:
            return [], None
        return self._ask(), None

    def _ask(self) -> list[Effect]:
        self._round += 1
        self._quiet = True
        self._unnoted = dict.fromkeys(self._members.others())
        return [Send(node, LeavingMessage(self._round)) for node in self._unnoted]
