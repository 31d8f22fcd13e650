"""What a scheduler lays down for its node, which is not woken for it and takes it when it comes by (decision 36).

What lives here: both ends of a tray.  It is a pipe whose end at the node nobody watches; a count in the shared page
says that there is something, so that a look costs no system call.  What has been laid down outlives the scheduler.

Each message says how many had gone over the link before it: so the node hears all that a scheduler says in the order in
which it was said.
"""

from __future__ import annotations

import select
from collections import deque
from collections.abc import Sequence
from io import FileIO
from typing import Any, Final

from hdphrs.errors import ProtocolError
from hdphrs.wire.framing import FrameDecoder, plain_frame
from hdphrs.wire.page import Line

LAID_BYTES_MAX: Final = select.PIPE_BUF
"""Of so much at once a pipe takes all or nothing (POSIX); what is larger goes over the link."""

TAKEN_BYTES: Final = 1 << 16
"""At once: all that a pipe holds, mostly."""


class Tray:
    """The scheduler's end; one thread at a time."""

    def __init__(self, pipe: FileIO, line: Line) -> None:
        """`pipe` does not block."""
        self._pipe = pipe
        self._line = line

    @property
    def descriptor(self) -> int:
        """Where it is open."""
        return self._pipe.fileno()

    def lay(self, messages: Sequence[list[Any]], *, after: int) -> bool:
        """Lay these down, if there is room for them, and they are not large; whether they lie there.

        Args:
            after: how many have gone over the link.

        Raises:
            OSError: the node is gone.
        """
        frame = plain_frame([after, messages])
        if self._pipe.closed:
            raise BrokenPipeError("this process is a copy of a scheduler, made by a task")
        if frame is None or len(frame) > LAID_BYTES_MAX or self._pipe.write(frame) is None:
            return False
        self._line.lay()
        return True


class Taker:
    """The node's end."""

    def __init__(self, pipe: FileIO, line: Line) -> None:
        """`pipe` does not block."""
        self._pipe = pipe
        self._line = line
        self._taken = 0
        self._heard = 0
        """Messages that have come over the link."""
        self._decoder = FrameDecoder(LAID_BYTES_MAX, trusted=True)
        self.is_spoilt: bool = False
        """Whether something lay there that is no message: nothing is taken any more."""
        self._waiting: deque[tuple[int, list[list[Any]]]] = deque()
        """What has been taken, and comes after one that has not been heard."""

    @property
    def finds(self) -> bool:
        """Whether something lies there."""
        return self._taken != self._line.laid

    def among(self, messages: list[Any]) -> list[Any]:
        """What was laid down, each at its place among these, which have just come over the link."""
        first, self._heard = self._heard, self._heard + len(messages)
        if self.finds:
            self._take()
        if not self._waiting:
            return messages
        all_of_them: list[Any] = []
        for number, message in enumerate(messages, first):
            all_of_them += self._up_to(number)
            all_of_them.append(message)
        return all_of_them + self._up_to(self._heard)

    def rest(self, messages: list[Any]) -> list[Any]:
        """The same, when the scheduler is dead and these are the last of its link: all that was laid down, whether or
        not it came to count it."""
        self._take()
        rest = self.among(messages)
        while self._waiting:
            rest += self._waiting.popleft()[1]
        return rest

    def _take(self) -> None:
        self._taken = self._line.laid
        while not self.is_spoilt:
            data = self._pipe.read(TAKEN_BYTES)
            if not data:
                break
            self._put_down(data)
            if len(data) < TAKEN_BYTES:
                break

    def _put_down(self, data: bytes) -> None:
        try:
            for laid in self._decoder.feed(data):
                after, messages = laid
                if type(after) is not int or type(messages) is not list:
                    raise ProtocolError("something that is no message")
                self._waiting.append((after, messages))
        except (ProtocolError, TypeError, ValueError):
            self.is_spoilt = True

    def _up_to(self, number: int) -> list[list[Any]]:
        """Of what waits, that which comes before the next message of the link, if so many have come before that."""
        due: list[list[Any]] = []
        while self._waiting and self._waiting[0][0] <= number:
            due += self._waiting.popleft()[1]
        return due
