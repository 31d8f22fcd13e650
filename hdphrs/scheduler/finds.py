"""What the tasks of this process have found in searches, and what has become known here of other tasks' finds.

What lives here: a board of finds as bytes, with their pickling.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hdphrs.api.board import FIND_BYTES_MAX, Board
from hdphrs.wire import local
from hdphrs.wire.page import Line, Reading, label
from hdphrs.wire.pickling import dumps, loads
from hdphrs.wire.signals import came_between


class Finds:
    """The board of one scheduler."""

    def __init__(self, tell: Callable[[list[Any]], None], line: Line) -> None:
        """`tell` sends a message to the node; the page's `line` says what is unpickled."""
        self._tell = tell
        self._line = line
        self._board: Board[bytes] = Board()
        self._opened: Board[Any] = Board()

    def tell(self, topic: bytes, rank: float, find: object) -> None:
        """See `Port.tell`."""
        try:
            data = dumps(find)
        except BaseException as error:  # whatever it raises when it is pickled: the others do without it
            if came_between(error):
                raise
            return
        if len(data) <= FIND_BYTES_MAX and self._board.improve(topic, rank, data):
            self._tell([local.FOUND, topic, rank, data])

    def hear(self, topic: bytes, rank: float, data: bytes) -> None:
        """Another process has found this."""
        self._board.improve(topic, rank, data)

    def close(self, topic: bytes) -> None:
        """What is found in this search has taken down a process that unpickled it."""
        self._board.close(topic)

    def best(self, topic: bytes) -> tuple[float, Any] | None:
        """See `Port.best`."""
        known = self._board.best(topic)
        opened = self._opened.best(topic)
        if known is None or (opened is not None and opened[0] >= known[0]):
            return opened
        before = self._line.unpickle(label(Reading.FIND, topic))
        try:
            self._opened.improve(topic, known[0], loads(known[1]))
        except KeyboardInterrupt:
            raise
        except BaseException:  # whatever it raises when it is unpickled: this process does without it
            self.close(topic)
        finally:
            self._line.unpickle(before)
        return self._opened.best(topic)
