"""What somebody waits for leaves before the core is asked (decision 31).

What lives here: a lone call of the program's and a thread from another node, on their way to a scheduler, and a lone
result, on its way back.  Where the core is sure to pass it on, it is passed on as it came; the core hears of it at once
afterwards, while whoever has got it works, and wants what has been done.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any, Final, Protocol

from hdphrs.protocol.messages import Message, Push, Result
from hdphrs.protocol.node import Node
from hdphrs.protocol.tasks import PROGRAM, ROOT, NodeId, Origin, Task, TaskRef
from hdphrs.wire import local
from hdphrs.wire.items import pack_outcome, pack_spark

_FIELDS: Final = [field.name for field in fields(Task)]
_PATH, _CODE, _PIN = _FIELDS.index("path"), _FIELDS.index("code"), _FIELDS.index("pin")
"""Where a packed task has them."""


class Schedulers(Protocol):
    """What is needed of them."""

    def start_ahead(self, origin: Origin, ref: TaskRef, spark: list[Any]) -> None: ...
    def deliver_ahead(self, origin: Origin, slot: int, outcome: list[Any]) -> None: ...


class Program(Protocol):
    """The link to it."""

    def post(self, message: list[Any]) -> None: ...
    def flush(self) -> None: ...


class Ahead:
    """That of one node."""

    def __init__(self, core: Node, schedulers: Schedulers, program: Program | None = None) -> None:
        """`program` is the link to it, at the root."""
        self._core = core
        self._schedulers = schedulers
        self._program = program
        self._filled: tuple[Origin, int] | None = None
        """Whose future has been filled, of which the core hears next."""

    def call(self, messages: list[list[Any]]) -> None:
        """The program has sent this."""
        first = messages[0]
        if first[0] != local.EXPORT or len(first[1]) > 1 or len(messages) > 1:
            return
        slot, task = first[1][0]
        if not task[_PIN] and (taker := self._core.taker(task[_PATH], task[_CODE])) is not None:
            ref = TaskRef(ROOT, PROGRAM, slot)
            self._schedulers.start_ahead(taker, ref, local.first_copy(ref, task))

    def answer(self, messages: list[list[Any]]) -> None:
        """A scheduler has sent this."""
        first = messages[0]
        if first[0] == local.RESULTS and len(first[1]) == 1:
            packed, _, outcome, _, _ = first[1][0]
            ref = local.ref_of(packed)
            if ref.origin == PROGRAM and self._core.fills(ref, ROOT):
                self._fill(ref, outcome)

    def message(self, sender: NodeId, message: Message) -> None:
        """Another node has sent this."""
        if isinstance(message, Push):
            thread = message.spark
            if (host := self._core.host(sender, thread)) is not None:
                self._schedulers.start_ahead(host, thread.ref, pack_spark(thread))
        elif isinstance(message, Result) and self._core.fills(message.ref, sender):
            self._fill(message.ref, pack_outcome(message.outcome))

    def _fill(self, ref: TaskRef, outcome: list[Any]) -> None:
        _, origin, slot = ref
        self._filled = origin, slot
        if origin != PROGRAM:
            self._schedulers.deliver_ahead(origin, slot, outcome)
        elif self._program is not None:
            self._program.post([local.DELIVER, slot, outcome])
            self._program.flush()

    def has_filled(self, origin: Origin, slot: int) -> bool:
        """The core wants this future filled; whether that has been done."""
        if self._filled is None:
            return False
        assert (origin, slot) == self._filled, f"{self._filled} was filled, and the core fills {origin}, {slot}"
        self._filled = None
        return True
