"""Membership: who is alive, in one order for everybody.

What lives here: the members, those of them that leave, the dead, the epoch, and the root's rulings.  Anyone may
suspect; only the root declares.  It rules at once and always against the accused: by then the transport has failed to
reach it for as long as silence counts as death, or its port has refused.  If both ends of a broken pair accuse each
other, the first accusation to arrive counts, and what the dead one says later does not.  So two live nodes never
disagree about a third for longer than a message takes, and nobody acts on a private verdict (hole R23).
"""

from __future__ import annotations

from hdphrs.protocol.effects import Admit, Connect, Effect, Send
from hdphrs.protocol.events import Arrived
from hdphrs.protocol.messages import DeadNode, Joined, Suspect, Welcome
from hdphrs.protocol.tasks import ROOT, Member, NodeId, Parting


class Membership:
    """The members as one node knows them."""

    def __init__(self, me: NodeId) -> None:
        self.me = me
        self.epoch: int = 0
        self._others: dict[NodeId, Member | None] = {}
        """None: known by its messages alone, like the root to the others."""
        self._dead: dict[NodeId, None] = {}
        self._leaving: dict[NodeId, None] = {}
        """Members still, perhaps self, but nobody gives them anything."""
        self._next_id = 1

    def live(self) -> list[NodeId]:
        """All live nodes, self first."""
        return [self.me, *self._others]

    def others(self) -> list[NodeId]:
        """All live nodes but self."""
        return list(self._others)

    def staying(self) -> list[NodeId]:
        """All live nodes but self and those that leave."""
        return [node for node in self._others if node not in self._leaving] if self._others else []

    def is_live(self, node: NodeId) -> bool:
        """Whether `node` is a member now."""
        return node == self.me or node in self._others

    def is_dead(self, node: NodeId) -> bool:
        """Whether `node` has been declared dead."""
        return node in self._dead

    def is_going(self, node: NodeId) -> bool:
        """Whether `node` is dead, or leaves: no task may go there any more."""
        return node in self._dead or node in self._leaving

    @property
    def roster(self) -> tuple[int, int]:
        """Changes with every node that joins, dies or begins to leave."""
        return self.epoch, len(self._leaving)

    def on_arrived(self, event: Arrived) -> list[Effect]:
        """At the root: a newcomer gets the next id, which nobody has had before."""
        assert self.me == ROOT
        member = Member(NodeId(self._next_id), event.host, event.slots, event.address, event.pid)
        self._next_id += 1
        self.epoch += 1
        known = tuple(other for other in self._others.values() if other is not None)
        effects: list[Effect] = [Admit(event.ticket, member)]
        effects.append(
            Send(member.node, Welcome(member.node, self.epoch, known, tuple(self._dead), tuple(self._leaving)))
        )
        effects += [Send(other, Joined(self.epoch, member)) for other in self._others]
        self._others[member.node] = member
        return effects

    def on_welcome(self, message: Welcome) -> list[Effect]:
        """At a newcomer: these are the others."""
        self.epoch = message.epoch
        self._dead = dict.fromkeys(message.dead)
        self._leaving = dict.fromkeys(message.leaving)
        self._others[ROOT] = None
        self._others.update((member.node, member) for member in message.members)
        return [Connect(member) for member in message.members]

    def on_joined(self, message: Joined) -> list[Effect]:
        """A new node is there."""
        self.epoch = message.epoch
        self._others[message.member.node] = message.member
        return [Connect(message.member)]

    def hear(self, sender: NodeId) -> None:
        """A node that is not dead has sent something: it is a member, even if the root's JOINED is still on its way."""
        self._others.setdefault(sender, None)

    def accuse(self, node: NodeId) -> list[Effect] | None:
        """Somebody hears nothing of `node` any more.

        Returns:
            What to send: at the root the verdict, elsewhere the accusation.  None if there is nothing to decide.
        """
        if node not in self._others:
            return None
        return self.rule(node, Parting.DIED) if self.me == ROOT else [Send(ROOT, Suspect(node))]

    def rule(self, node: NodeId, parting: Parting) -> list[Effect]:
        """At the root: `node` is gone, and all others are told."""
        self.epoch += 1
        return [Send(other, DeadNode(node, self.epoch, parting)) for other in self._others if other != node]

    def let_go(self, node: NodeId) -> None:
        """`node` leaves; it stays a member until the root says otherwise."""
        self._leaving[node] = None

    def bury(self, node: NodeId) -> None:
        """`node`, a member until now, is gone for ever."""
        assert node in self._others, f"the root declares the death of node {node} twice, or it never was a member"
        del self._others[node]
        self._leaving.pop(node, None)
        self._dead[node] = None
