"""Retained results: what this node and one other have, for the case that the other dies (decision 8).

What lives here: results of tasks that were run here for other nodes, and that other nodes have run for schedulers of
this one.  They cost nobody a message until one of the two is gone; then the other sends them to the root as pieces.
The bound is in bytes, and the oldest are forgotten: the tasks that wanted them will have ended.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import NamedTuple

from hdphrs.config import CoreConfig
from hdphrs.protocol.pieces import piece_of
from hdphrs.protocol.tasks import NodeId, Outcome, Piece, Task, TaskRef, Verdict

OVERHEAD_BYTES = 200
"""Of one that is retained, about."""


class Copy(NamedTuple):
    """This node's copy of a result."""

    ref: TaskRef
    """The future that it fills."""
    other: NodeId
    """Who has it too."""
    task: Task
    outcome: Outcome

    @property
    def size_bytes(self) -> int:
        """What it takes."""
        return len(self.task.payload) + len(self.outcome.data) + OVERHEAD_BYTES


class Retained:
    """Those of one node."""

    def __init__(self, config: CoreConfig) -> None:
        self._config = config
        self._copies: deque[Copy] = deque()
        """Oldest first."""
        self._bytes = 0

    def retain(self, copy: Copy) -> None:
        """A result is here and there."""
        config, outcome = self._config, copy.outcome
        if outcome.cost_s < config.retained_cost_s or outcome.verdict is not Verdict.VALUE:
            return
        if not copy.task.supervised or not config.pieces_bytes_max:
            return
        self._copies.append(copy)
        self._bytes += copy.size_bytes
        while self._bytes > config.retained_bytes_max:
            self._bytes -= self._copies.popleft().size_bytes

    def give_up(self, is_last: Callable[[Copy], bool]) -> list[Piece]:
        """Those of which nobody else has a copy any more."""
        last: list[Piece] = []
        kept: deque[Copy] = deque()
        for copy in self._copies:
            if is_last(copy):
                last.append(piece_of(copy.task, copy.outcome))
                self._bytes -= copy.size_bytes
            else:
                kept.append(copy)
        self._copies = kept
        return last
