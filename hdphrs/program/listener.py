"""The thread in which a program hears its tasks, and what it lets them know that it wants to hear.

What lives here: `Listener`.  The receiver of the link only puts things down here, and no thread waits for a stream
that nobody reads (`screen.py`), so a slow terminal keeps no result waiting.  Who waits for a result shows what has come
before it, in the waiting thread: so a task's words are there when its value is, and in a notebook below the cell that
has asked for it.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from time import monotonic
from typing import Any

from hdphrs.api.board import FIND_BYTES_MAX
from hdphrs.program.echo import Echo
from hdphrs.program.screen import Screen
from hdphrs.room import PAUSE_MAX_S, OwnThread, try_to_start
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
        self._screen = Screen()
        self._echo = Echo(self._screen.put, monotonic)
        self._showing = threading.RLock()
        self._bundles: deque[bytes] = deque()
        self._come = threading.Event()
        self._thread: OwnThread | None = None
        self._try_s = 0.0
        """When to try again to start the thread."""
        self._dropped = 0
        """Lines that had no place; only the receiver counts them."""
        self._told = 0
        """Of these; only who shows counts here, so no line is counted twice."""
        self._is_stuck = False
        """Nobody reads what is shown: there is no use in waiting for that."""
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
            thread = OwnThread(self._listen, "hdphrs-listener")
            if try_to_start(thread):
                self._thread = thread
            else:  # whoever waits for a result shows it meanwhile
                self._try_s = monotonic() + PAUSE_MAX_S
        self._come.set()

    def show(self, within_s: float = SHOW_S) -> None:
        """Show what has come so far, or wait until the other thread has; not much longer than so many seconds, and not
        at all as long as nobody reads it."""
        if not self._bundles and self._thread is None:
            return
        if self._is_stuck:
            within_s = 0.0
        taken: deque[bool] = deque()
        try:
            taken.extend(map(self._showing.acquire, (True,), (within_s,)))  # one step: a signal handler may raise here
            if taken[0] and self._has_something and not self._show(within_s) and within_s:
                self._is_stuck = True
        finally:
            if taken and taken[0]:
                self._showing.release()

    def close(self) -> None:
        """Nothing more comes: show the rest."""
        if (self._bundles or self._thread is not None) and self._showing.acquire(timeout=CLOSE_S):
            try:
                if self._show(CLOSE_S):
                    self._echo.end()
                    self._screen.flush(CLOSE_S)
            finally:
                self._showing.release()

    def _listen(self) -> None:
        while True:
            due_s = self._echo.due_s
            self._come.wait(None if due_s is None else max(0.0, due_s - monotonic()))
            self._come.clear()
            while not self._show_now():
                self._screen.await_room(LOOK_S)  # while others may have the lock

    @property
    def _has_something(self) -> bool:
        """To show; mostly not, and then the streams need not be asked whether there is room."""
        return bool(self._bundles) or not self._screen.is_empty or self._dropped != self._told

    def _show_now(self) -> bool:
        with self._showing:
            has_room = self._show(0.0)
            if has_room:
                self._echo.tick()
                self._screen.flush(0.0)
            return has_room

    def _show(self, within_s: float) -> bool:
        """Whether there is room for all of it, or will be in this time."""
        end_s = monotonic() + within_s
        while has_room := self._screen.flush(max(0.0, end_s - monotonic())):
            self._is_stuck = False
            if not self._bundles:
                break
            for item in said.open_bundle(self._bundles.popleft()):
                self._echo.hear(item)
            dropped = self._dropped
            if dropped != self._told:
                self._echo.hear(said.Held(dropped - self._told))
                self._told = dropped
        return has_room

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
