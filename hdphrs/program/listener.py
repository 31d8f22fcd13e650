"""The thread in which a program hears its tasks, and what it lets them know that it wants to hear.

What lives here: `Listener`.  The receiver of the link only puts things down here, so a slow terminal keeps no result
waiting.  Who waits for a result shows what has come before it, in the waiting thread: so a task's words are there when
its value is, and in a notebook below the cell that has asked for it.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from time import monotonic
from typing import Any

from hdphrs.api.board import FIND_BYTES_MAX
from hdphrs.program.echo import Echo, write
from hdphrs.room import PAUSE_MAX_S, try_to_start
from hdphrs.wire import local, said
from hdphrs.wire.said import Wanted

BUNDLES_MAX = 1024
"""That wait to be shown; what comes then is dropped, and counted."""

CLOSE_S = 1.0
"""How long the end of a program waits for a terminal that is slow."""

SHOW_S = 0.2
"""And how long a result does."""

LOOK_S = 0.1
"""How often it is looked at the levels of loggers, at most."""


class Listener:
    """That of one program."""

    def __init__(self) -> None:
        self._echo = Echo(write, monotonic)
        self._showing = threading.RLock()
        self._bundles: deque[bytes] = deque()
        self._come = threading.Event()
        self._thread: threading.Thread | None = None
        self._try_s = 0.0
        """When to try again to start the thread."""
        self._dropped = 0
        self._mains: dict[bytes, None] = {}
        self._wanted = Wanted()
        self._version = 0
        self._looked_s = 0.0
        self.unsure: bool = True
        """Whether `wanted` is to be asked again."""

    # ---- hearing

    def __len__(self) -> int:
        """How much has come and has not been shown."""
        return len(self._bundles)

    def take(self, bundle: bytes) -> None:
        """In the receiver: something was said."""
        if len(self._bundles) >= BUNDLES_MAX:
            self._dropped += said.lost_with(bundle)
            return
        self._bundles.append(bundle)
        if self._thread is None and monotonic() >= self._try_s:
            thread = threading.Thread(target=self._listen, name="hdphrs-listener", daemon=True)
            if try_to_start(thread):
                self._thread = thread
            else:  # whoever waits for a result shows it meanwhile
                self._try_s = monotonic() + PAUSE_MAX_S
        self._come.set()

    def show(self, within_s: float = SHOW_S) -> None:
        """Show what has come so far, or wait until the other thread has."""
        if not self._bundles and self._thread is None:
            return
        taken: deque[bool] = deque()
        try:
            taken.extend(map(self._showing.acquire, (True,), (within_s,)))  # one step: a signal handler may raise here
            if taken[0]:
                self._show()
        finally:
            if taken and taken[0]:
                self._showing.release()

    def close(self) -> None:
        """Nothing more comes: show the rest."""
        if (self._bundles or self._thread is not None) and self._showing.acquire(timeout=CLOSE_S):
            try:
                self._show()
                self._echo.end()
            finally:
                self._showing.release()

    def _listen(self) -> None:
        while True:
            due_s = self._echo.due_s
            self._come.wait(None if due_s is None else max(0.0, due_s - monotonic()))
            self._come.clear()
            with self._showing:
                self._show()
                self._echo.tick()

    def _show(self) -> None:
        while self._bundles:
            for item in said.open_bundle(self._bundles.popleft()):
                self._echo.hear(item)
        dropped, self._dropped = self._dropped, 0
        if dropped:
            self._echo.hear(said.Held(dropped))

    # ---- what it wants to hear

    def begin_main(self, path: bytes) -> None:
        """What this task prints is the program's own."""
        self._echo.mains.add(path)
        self._mains[path] = None
        self.unsure = True
        self._looked_s = 0.0

    def end_main(self, path: bytes) -> None:
        """It has ended."""
        self._mains.pop(path, None)

    def wanted(self) -> list[Any] | None:
        """In the sender: the message that lets the schedulers know what is wanted, if that has changed."""
        now_s = monotonic()
        if now_s - self._looked_s < LOOK_S:
            self.unsure = True
            return None
        self._looked_s = now_s
        self.unsure = False
        wanted = Wanted(tuple(self._mains), _levels(), logging.root.manager.disable)
        if wanted == self._wanted:
            return None
        self._wanted = wanted
        self._version += 1
        data = said.encode_wanted(wanted)
        if len(data) > FIND_BYTES_MAX:
            data = said.encode_wanted(wanted._replace(levels={"": logging.root.level}))
        return [local.FOUND, said.WANTED, float(self._version), data]


def _levels() -> dict[str, int]:
    """Of the loggers that have one."""
    known = list(logging.root.manager.loggerDict.items())
    levels = {name: logger.level for name, logger in known if isinstance(logger, logging.Logger) and logger.level}
    return {"": logging.root.level, **levels}
