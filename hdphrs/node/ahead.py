"""What a program waits for leaves before the core is asked (decision 31).

What lives here: a lone call of the program's, on its way to a scheduler, and a lone result, on its way back.  Where the
core is sure to pass it on, it is passed on as it came; the core hears of it at once afterwards, while whoever has got
it works, and wants what has been done.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any, Final, Protocol

from hdphrs.protocol.node import Node
from hdphrs.protocol.tasks import PROGRAM, Origin, Task
from hdphrs.wire import local

_FIELDS: Final = [field.name for field in fields(Task)]
_PATH, _CODE, _PIN = _FIELDS.index("path"), _FIELDS.index("code"), _FIELDS.index("pin")
"""Where a packed task has them."""


class Starter(Protocol):
    """The schedulers."""

    def start_ahead(self, origin: Origin, slot: int, task: list[Any]) -> None: ...


class Program(Protocol):
    """The link to it."""

    def post(self, message: list[Any]) -> None: ...
    def flush(self) -> None: ...


class Ahead:
    """That of the root."""

    def __init__(self, core: Node, schedulers: Starter, program: Program) -> None:
        self._core = core
        self._schedulers = schedulers
        self._program = program
        self._filled: int | None = None
        """The slot of the program's whose outcome has left, and about which the core is asked next."""

    def call(self, messages: list[list[Any]]) -> None:
        """The program has sent this, of which the core has not heard."""
        first = messages[0]
        if first[0] != local.EXPORT or len(first[1]) > 1 or len(messages) > 1:
            return
        slot, task = first[1][0]
        if not task[_PIN] and (taker := self._core.taker(task[_PATH], task[_CODE])) is not None:
            self._schedulers.start_ahead(taker, slot, task)

    def result(self, messages: list[list[Any]]) -> None:
        """A scheduler has sent this, of which the core has not heard."""
        first = messages[0]
        if first[0] != local.RESULTS or len(first[1]) > 1:
            return
        ref, _, outcome, _, _ = first[1][0]
        _, origin, slot = ref
        if origin == PROGRAM and self._core.fills(local.ref_of(ref)):
            self._filled = slot
            self._program.post([local.DELIVER, slot, outcome])
            self._program.flush()

    def has_filled(self, slot: int) -> bool:
        """The core wants this future filled; whether that has been done."""
        if self._filled is None:
            return False
        assert slot == self._filled, f"slot {self._filled} was filled before the core was asked, and it fills {slot}"
        self._filled = None
        return True
