"""The resource tracker of a node: what tasks have made and left behind, it deletes when all is over.

What lives here: multiprocessing's own tracker, started when the first task reports something, as a process that
outlives this one.  What does not: who reports what (`hdphrs/scheduler/resource_tracker.py`).
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from typing import Final

from hdphrs.console import say
from hdphrs.wire.files import beyond_standard

_MAIN: Final = """
import sys
from multiprocessing.resource_tracker import main
sys.excepthook = lambda *_: None
main({})
"""
"""It passes what it cannot read, such as what a task has written into all its pipes, to that hook, and goes on."""
_IGNORED: Final = (signal.SIGINT, signal.SIGTERM)
"""Blocked until the tracker itself ignores them."""


class Tracker:
    """The pipe to it, and its process if there is one."""

    def __init__(self) -> None:
        self._owner = 0
        self._reading = self._writing = -1
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def writing(self) -> int:
        """The descriptor by which schedulers report; they inherit it."""
        self._open()
        return self._writing

    @property
    def reading(self) -> int | None:
        """Readable when a scheduler has reported something; None if the tracker reads it."""
        self._open()
        return None if self._process is not None else self._reading

    def start(self) -> None:
        """Start the process, which ends when nobody can report any more."""
        before = signal.pthread_sigmask(signal.SIG_BLOCK, _IGNORED)
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-c", _MAIN.format(self._reading)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                pass_fds=[self._reading],
            )
        except OSError as error:
            say(f"cannot start a resource tracker, so what tasks leave behind in shared memory may stay: {error}")
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)

    def _open(self) -> None:
        if self._owner != os.getpid():  # a node that was forked has a tracker of its own
            self._owner, self._process = os.getpid(), None
            self._reading, self._writing = map(beyond_standard, os.pipe())


tracker: Final = Tracker()
"""Of this node."""
