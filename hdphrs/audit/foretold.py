"""What a core has foretold (`protocol/foresight.py`), held against what it does then."""

from __future__ import annotations

from collections.abc import Sequence

from hdphrs.audit.violation import Violation
from hdphrs.protocol.effects import Deliver, Effect, Start
from hdphrs.protocol.events import Event, Exported, Finished, Received
from hdphrs.protocol.messages import Push, Result
from hdphrs.protocol.node import Node
from hdphrs.protocol.tasks import PROGRAM, Spark, TaskRef


def foretell(core: Node, event: Event) -> Effect | None:
    """The first effect of an event that the core has not seen, if it knows already."""
    match event:
        case Exported(origin, [(slot, task)]) if origin == PROGRAM and not task.pin and core.me is not None:
            taker = core.taker(task.path, task.code)
            return None if taker is None else Start(taker, (Spark(TaskRef(core.me, origin, slot), 0, task),))
        case Finished(_, [(ref, _, outcome)]) if ref.origin == PROGRAM and ref.node == core.me:
            return Deliver(PROGRAM, ref.slot, outcome) if core.fills(ref, ref.node) else None
        case Received(sender, Push(thread)):
            host = core.host(sender, thread)
            return None if host is None else Start(host, (thread,))
        case Received(sender, Result(ref, _, outcome)):
            return Deliver(ref.origin, ref.slot, outcome) if core.fills(ref, sender) else None
    return None


def hold_to(foretold: Effect | None, effects: Sequence[Effect]) -> None:
    """The core has seen the event.

    Raises:
        Violation: it does something else, or something before that.
    """
    if foretold is not None and (not effects or effects[0] != foretold):
        raise Violation(6, f"it was certain that {foretold} comes first, and what comes is {effects[:1]}")
