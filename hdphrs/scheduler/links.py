"""The descriptors between a scheduler and its node, which a task may close, replace, or hand on to a copy of itself.

What lives here: noticing that, in time for the task that did it to be charged, and ending the process then; and the end
of a thread's loop by an error, which may have come from that.  What does not: how the node notices it
(`hdphrs/node/crew.py`), and what it does about it.
"""

from __future__ import annotations

import errno
import os
import select
from typing import NoReturn

from hdphrs.scheduler.end import fail, flush_streams, leave
from hdphrs.wire.page import Line
from hdphrs.wire.settings import LINKS_LOST_STATUS

_CLOSED_OR_OTHERS = {errno.EBADF, errno.ENOTSOCK, errno.ENOTCONN, errno.EOPNOTSUPP}
"""What the system says of a descriptor that is not open, or is no link."""

_LOST = select.POLLNVAL


class Links:
    """Those of one scheduler process."""

    def __init__(self, line: Line) -> None:
        """`line` says which task runs."""
        self.last: int = 0
        """Serial number of the task that has had the core last, but for one that has it."""
        self._line = line
        self._pid = os.getpid()
        self._poll = select.poll()
        self._look = self._poll.poll

    def guard(self, *descriptors: int) -> None:
        """These are not to be closed by tasks."""
        for descriptor in descriptors:
            self._poll.register(descriptor, 0)

    @property
    def are_ours(self) -> bool:
        """Whether this process has made them: a copy of it, which a task has made, must not speak for it."""
        return os.getpid() == self._pid

    def check(self) -> None:
        """End the process if one of them has been closed, or if it is a copy: before the task that has the core is
        answered."""
        if os.getpid() != self._pid:
            leave()
        for _, state in self._look(0):
            if state & _LOST:
                self.lost()

    def lost(self) -> NoReturn:
        """They have been closed or replaced: end the process, and let the node know by whom."""
        if not self.are_ours:
            leave()
        if not self._line.running:
            self._line.run(self.last, careful=False, again=False)
        flush_streams()
        os._exit(LINKS_LOST_STATUS)

    def fail(self, error: BaseException) -> NoReturn:
        """The loop of a thread was ended by this error."""
        if isinstance(error, ConnectionError):
            leave()
        if isinstance(error, OSError) and error.errno in _CLOSED_OR_OTHERS:
            self.lost()
        self.check()
        fail(error)
