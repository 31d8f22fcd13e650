"""Large arguments of tasks that are away from their scheduler, and when they are enough (decision 54).

What lives here: `Held`, which counts them.  What does not: what is done about it, which is to give no more of what may
stay, and to have a task wait that wants to send more (`export.py`, `port.py`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from hdphrs.api.places import Roster
from hdphrs.wire.bulk import BULK_BYTES_MIN

HELD_BYTES_MAX: Final = 256 << 20
"""Arguments that are large, and whose tasks are away: the node keeps them until these are done with.  As in a program
(`hdphrs/program/calls.py`)."""

TASKS_PER_CORE_MIN: Final = 2
"""So many are always allowed, however large they are: one that a core runs, and the next one."""


class Held:
    """That of one scheduler; its two threads may use it at the same time."""

    def __init__(self, roster: Roster) -> None:
        self.bytes: int = 0
        """Of all of them."""
        self._roster = roster
        self._sizes: dict[int, int] = {}

    def __iter__(self) -> Iterator[int]:
        """The slots of those tasks."""
        return iter(list(self._sizes))

    @property
    def is_full(self) -> bool:
        """Whether enough is away, and nobody goes without work for that."""
        return self.bytes >= HELD_BYTES_MAX and len(self._sizes) >= self._fewest

    @property
    def is_half_full(self) -> bool:
        """Whether who has waited since it was full is to wait still, so that not each that comes back wakes somebody
        for one."""
        return self.bytes >= HELD_BYTES_MAX // 2 and len(self._sizes) >= self._fewest

    @property
    def _fewest(self) -> int:
        return TASKS_PER_CORE_MIN * max(1, sum(info.slots for info in self._roster.infos))

    def add(self, slot: int, size: int) -> None:
        """A task with so many bytes of arguments leaves."""
        if size >= BULK_BYTES_MIN:
            self._sizes[slot] = size
            self.bytes += size

    def drop(self, slot: int) -> None:
        """It is back, or nobody waits for it; it may have been said before."""
        if self._sizes and (size := self._sizes.pop(slot, 0)):  # GIL: forgetting what has come back
            self.bytes -= size
