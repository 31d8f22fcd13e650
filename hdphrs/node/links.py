"""What a task may do to the links between its scheduler and the node, as the node notices it: close them, replace them,
or write into them.

What lives here: what is a message and what is not, and the end of a process whose link has ended.  What does not: how
the scheduler notices it itself (`hdphrs/scheduler/links.py`), and who is charged (`coroner.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import trio

from hdphrs.errors import ProtocolError
from hdphrs.node.kernel import stat_of
from hdphrs.node.scheduler import Fault, Scheduler
from hdphrs.wire import local

ENDING_S: Final = 0.1
"""How long a process may take to end after its links have: it mostly is about to."""

LOST: Final = "lost its links to the node (their descriptors were closed or replaced)"
"""How a scheduler has ended, for people; what it did follows."""

SPOILT: Final = "wrote something of its own into the descriptors of its links to the node"

MALFORMED: Final = (
    ProtocolError,
    ValueError,
    TypeError,
    LookupError,
    AttributeError,
    AssertionError,
    OverflowError,
    RecursionError,
)
"""What may be raised by looking into a message that is none."""

FROM_SCHEDULER: Final = {
    local.READY: 1,
    local.CODE: 3,
    local.EXPORT: 2,
    local.RELEASE: 2,
    local.PLACE: 4,
    local.HUNGRY: 4,
    local.RESULTS: 2,
    local.RETURN: 2,
    local.KEEP: 4,
    local.REUSED: 3,
    local.CANCEL: 2,
    local.ABOUT: 3,
    local.BEGUN: 3,
    local.STUCK: 4,
    local.BEHIND: 4,
    local.CALLED: 3,
    local.CALLS: 2,
    local.FOUND: 4,
    local.IMPORTED: 3,
    local.SAID: 2,
    local.PARTS: 3,
}
FROM_PROGRAM: Final = {
    local.CODE: 3,
    local.RELEASE: 2,
    local.EXPORT: 2,
    local.PLACE: 4,
    local.CANCEL: 2,
    local.FOUND: 4,
    local.BYE: 1,
}
"""By kind of message, how many items it has, the kind included."""


def check(messages: Sequence[Any], shapes: dict[int, int]) -> None:
    """See that these may be messages; what their items are is found out when they are understood.

    Raises:
        ProtocolError: one of them is none.
    """
    for message in messages:
        if type(message) is not list or not message or shapes.get(message[0]) != len(message):
            raise ProtocolError("something that is no message")


async def end_without_link(scheduler: Scheduler) -> None:
    """One of its links has ended: wait a moment for the end of the process, and then bring it about.

    Who waits for the process cancels this when it has ended.
    """
    running = scheduler.process.line.running
    await trio.sleep(ENDING_S)
    while (stat := stat_of(scheduler.process.pid)) is not None and stat.is_ending:
        await trio.sleep(ENDING_S)
    scheduler.condemn(Fault(LOST, running))
