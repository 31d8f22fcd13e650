"""The greenlets of a scheduler: a stack for each task that waits, one for the task that runs, and idle ones.

What lives here: making them, switching between them, and reusing them.  Who waits for what is `waiting.py`'s business.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import NoReturn

from greenlet import getcurrent, greenlet

IDLE_MAX = 64
"""Greenlets that are kept for reuse; making one costs some 8 µs, keeping one some 20 kB."""


class Stacks:
    """Those of one scheduler; made by its main greenlet."""

    def __init__(self, body: Callable[[], object]) -> None:
        """`body` is what every greenlet runs."""
        self.ready: deque[greenlet] = deque()
        """Whose tasks may go on."""
        self.aside: int = 0
        """How many tasks have been left where they are, and are not back."""
        self._body = body
        self._main = getcurrent()
        self._factory = greenlet(self._make)
        self._idle: list[greenlet] = []

    def begin(self) -> None:
        """Before the first task runs."""
        self._factory.switch()

    def suspend(self) -> None:
        """Leave the running task where it is until somebody puts its greenlet on `ready`."""
        target = self._idle.pop() if self._idle else self._factory
        self.aside += 1
        target.switch()
        self.aside -= 1

    def go_on(self) -> bool:
        """Let the first of those that are ready go on; whether the caller, when it is back, has more to do.

        When enough greenlets are idle, the caller's is to end, and the other goes on then.
        """
        waiter = self.ready.popleft()
        me = getcurrent()
        if len(self._idle) >= IDLE_MAX and me is not self._main:
            me.parent = waiter  # where a greenlet goes when it ends
            return False
        self._idle.append(me)
        waiter.switch()
        return True

    def _make(self) -> NoReturn:
        """Make a greenlet whenever this one is switched to.

        A new greenlet counts its recursion from where it is started: were it started by a task that suspends itself,
        each would begin deeper than the last.
        """
        self._main.switch()
        while True:
            greenlet(self._body, self._main).switch()
