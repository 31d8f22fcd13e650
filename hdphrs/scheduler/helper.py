"""The helper thread: speaks for a task that does not come to it.

What lives here: what is done on the node's requests while a long task neither spawns nor gets: looking at what runs,
stopping what was cancelled, exporting, and sending what has gathered.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from typing import Any

from hdphrs.scheduler.end import fail, leave
from hdphrs.scheduler.export import Exporter
from hdphrs.scheduler.keep import GATHER_BEATS, Keeper
from hdphrs.scheduler.mail import Mail
from hdphrs.scheduler.note import Noter
from hdphrs.scheduler.stop import Stopper
from hdphrs.wire import local
from hdphrs.wire.page import BEAT, LOOK, SPEAK, Line

ASKED_BYTES = 64
"""Requests that are read at once; those of one kind are one."""


class Helper:
    """That of one scheduler."""

    def __init__(
        self,
        control: socket.socket,
        line: Line,
        mail: Mail,
        exporter: Exporter,
        keeper: Keeper,
        noter: Noter | None,
        stopper: Stopper,
        flush: Callable[[], None],
    ) -> None:
        """
        Args:
            control: where the node's requests come in.
            flush: sends what has gathered.
        """
        self._control = control
        self._line = line
        self._mail = mail
        self._exporter = exporter
        self._keeper = keeper
        self._noter = noter
        self._stopper = stopper
        self._flush = flush
        self._beats = 0

    def start(self) -> None:
        """Begin."""
        threading.Thread(target=self._run, name="hdphrs-helper", daemon=True).start()

    def _run(self) -> None:
        try:
            while asked := self._control.recv(ASKED_BYTES):
                if BEAT in asked:
                    self._look()
                if LOOK in asked:
                    self._look_at_mail()
                if SPEAK in asked:
                    if self._line.demand:
                        self._exporter.export(careful=False)
                    self._flush()
        except ConnectionError:
            pass
        except BaseException:
            fail()
        leave()

    def _look(self) -> None:
        """At what runs."""
        self._keeper.watcher.look()
        self._beats += 1
        if self._noter is not None and self._noter.look():
            self._line.again()
        if self._beats % GATHER_BEATS == 0 and (messages := self._keeper.gathered()):
            self._mail.tell(*messages)

    def _look_at_mail(self) -> None:
        """Stop what has been cancelled, and leave the mail to the main thread."""
        messages: list[list[Any]] = self._mail.glance()
        for message in messages:
            if message[0] == local.STOP:
                self._stopper.stop_copies(message[1])
        self._flush()
