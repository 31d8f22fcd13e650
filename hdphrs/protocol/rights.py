"""Rights: who may say what.

What lives here: one rule for each message that not everybody may send, or not in everybody's name.  Peers are late or
confused, not malicious; but a message in another's name, or a ruling of somebody who is not the root, is never heard.
"""

from __future__ import annotations

from hdphrs.protocol import messages as msg
from hdphrs.protocol.membership import Membership
from hdphrs.protocol.tasks import ROOT, NodeId

RULINGS = (msg.Joined, msg.DeadNode, msg.Term, msg.Recalled, msg.Gone)
"""What only the root may say."""


def may_say(members: Membership, sender: NodeId, message: msg.Message) -> bool:
    """Everybody speaks for itself; the root alone rules, and hears accusations."""
    match message:
        case msg.Fish(_, thief):
            return thief == sender and not members.is_going(sender)
        case msg.Req():
            return message.victim == sender
        case msg.Suspect() | msg.Bye():
            return members.me == ROOT
        case msg.Leaving():
            return sender != ROOT
        case msg.Purge(_, refs):
            return sender == ROOT or (members.me == ROOT and all(ref.node == sender for ref in refs))
        case msg.Cancel(_, refs):
            return sender == ROOT or all(ref.node == sender for ref in refs)
        case msg.Orphans(_, orphans):
            return members.me == ROOT and all(orphan.node == sender for orphan in orphans)
        case msg.Await(ref):
            return members.me == ROOT and ref.node == sender
        case msg.Keep() | msg.Discard() | msg.Recall():
            return members.me == ROOT
        case _:
            return sender == ROOT or not isinstance(message, RULINGS)
