"""Who waits in a program for which future.

What lives here: filling futures, and the calls that are to be made when they are full.  A signal handler may raise
anywhere in the main thread, but must not raise between two of these calls: so they are made by the receiver or the
sender, and the main thread only says what is due.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from hdphrs.api.future import AWAY, Future, Status


class Waiters:
    """Those of one program."""

    def __init__(self, lock: threading.RLock) -> None:
        """The `lock` guards the status of futures."""
        self.due: list[Callable[[], object]] = []
        """Of those whose futures have been filled."""
        self._lock = lock
        self._calls: dict[Future[Any], list[Callable[[], object]]] = {}

    def __len__(self) -> int:
        """How many futures somebody waits for."""
        return len(self._calls)

    def add(self, future: Future[Any], call: Callable[[], object]) -> None:
        """Under the lock: make this call when the future is full, which it is not."""
        self._calls.setdefault(future, []).append(call)

    def remove(self, future: Future[Any], call: Callable[[], object]) -> None:
        """Do not, if it has not been made."""
        with self._lock, suppress(ValueError):
            calls = self._calls.get(future, [])
            calls.remove(call)
            if not calls:
                del self._calls[future]

    def fill(self, future: Future[Any], status: Status, content: Any) -> None:
        """Under the lock: fill a future; `call_due` is to follow, without it."""
        future._content = content
        future._status = status
        if self._calls and (calls := self._calls.get(future)) is not None:
            self.due += calls  # from here on nothing is called, so nothing interrupts
            del self._calls[future]

    def mend(self) -> None:
        """A signal handler has raised in the midst of something: those whose futures are full are due."""
        with self._lock:
            for future in [one for one in self._calls if one._status is not AWAY]:
                self.due += self._calls.pop(future)

    def call_due(self) -> None:
        """Let those know who have waited for what has been filled; not in the main thread."""
        if self.due:
            with self._lock:
                due, self.due = self.due, []
            for call in due:
                call()
