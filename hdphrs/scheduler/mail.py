"""The link to the node, as both threads of a scheduler use it.

What lives here: sending, and reading by whoever wants to know; what the helper thread has read waits for the main one.
The process ends with its node.  A copy of it, which a task has made, neither sends nor reads.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

from hdphrs.lookout import Lookout
from hdphrs.scheduler.end import conclude, leave
from hdphrs.scheduler.links import Links
from hdphrs.wire import local
from hdphrs.wire.local import Link
from hdphrs.wire.page import Line

PLAIN_START = 2
"""A START is longer whose tasks are to begin before anything else."""

SETTLE_S = 2e-3
"""How long a node may take for what it has read."""

SETTLE_S_MAX = 1.0
"""How long it may take to read."""


class Mail:
    """That of one scheduler."""

    def __init__(self, link: Link, line: Line, links: Links) -> None:
        """The node says in the `line` that something has come."""
        self._links = links
        self._link = link
        self._line = line
        self.lookout: Lookout = Lookout(link.poll)
        self._reading = threading.Lock()
        """Held by whoever reads the link."""
        self._read: list[list[Any]] = []
        """By the helper thread."""

    def tell(self, *messages: list[Any]) -> None:
        """Send these together."""
        if not self._links.are_ours:
            leave()
        try:
            self._link.send(*messages)
        except OSError as error:
            self._links.fail(error)

    def lay(self, *messages: list[Any]) -> None:
        """Have the node hear these when it comes by."""
        if not self._links.are_ours:
            leave()
        try:
            self._link.lay(*messages)
        except OSError as error:
            self._links.fail(error)

    def conclude(self) -> None:
        """The run is over: do what is done at the end of a process; the node waits for that."""
        self._line.leave()
        conclude()

    @property
    def has_come(self) -> bool:
        """Whether there is probably something to fetch; what has just been written may be seen a moment later."""
        return self._line.mail or bool(self._read)

    def fetch(self, *, block: bool, for_s: float | None = None) -> list[list[Any]]:
        """What has come; at least one message if `block`, unless that would take longer than `for_s`."""
        with self._reading:
            messages, self._read = self._read, []
            return messages or self._receive(block=block, for_s=for_s)

    def glance(self) -> list[list[Any]]:
        """In the helper thread: what has just come, which the main thread gets too; nothing if that reads itself."""
        if not self._reading.acquire(blocking=False):
            return []
        try:
            messages = self._receive(block=False)
            self._read += messages
        finally:
            self._reading.release()
        return messages

    def pick(self, is_wanted: Callable[[list[Any]], bool]) -> list[list[Any]]:
        """In another thread than the main one, while that does not read: the wanted ones of what has come, which the
        main thread does not get any more."""
        if not self.has_come or not self._reading.acquire(blocking=False):
            return []
        try:
            messages = self._read + self._receive(block=False)
            self._read = [message for message in messages if not is_wanted(message)]
        finally:
            self._reading.release()
        return [message for message in messages if is_wanted(message)]

    @property
    def holds_tasks(self) -> bool:
        """In the helper thread: whether it has read of tasks, and the main one has not."""
        return any(message[0] == local.START and message[1] for message in self._read)

    def take_back(self, *, urgent: bool) -> list[list[Any]]:
        """In the helper thread: the items of START that the main thread has not read; it finds a START with none.

        Args:
            urgent: also those that are to begin before anything else.
        """
        if not self._reading.acquire(blocking=False):
            return []
        try:
            started = [
                message
                for message in self._read
                if message[0] == local.START and (urgent or len(message) == PLAIN_START)
            ]
            items = [item for message in started for item in message[1]]
            for message in started:
                message[1] = []
        finally:
            self._reading.release()
        return items

    def settle(self) -> None:
        """Wait until the node has read, and dealt with, what is in the link, whoever wrote it: that is charged to what
        has run until now."""
        self._link.wait_until_read(SETTLE_S_MAX)
        time.sleep(SETTLE_S)

    def _receive(self, *, block: bool, for_s: float | None = None) -> list[list[Any]]:
        self._line.take_mail()
        if not self._links.are_ours:
            leave()
        if block:
            self.lookout.wait(for_s)
        try:
            messages = self._link.receive(block=block and for_s is None)
        except OSError as error:
            self._links.fail(error)
        if messages is None:
            leave()
        return messages
