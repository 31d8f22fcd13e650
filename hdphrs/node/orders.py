"""What a node process is told from outside: by signals, and by its leash.

What lives here: which of these counts when.  A member that is told to leave hands over and goes (decision 10).  A
second SIGTERM ends it at once; `LEAVE_SIGNAL`, which `hdphrs drain` sends, never does, however often it comes.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable

import trio

from hdphrs.console import say
from hdphrs.node.driver import Driver
from hdphrs.protocol.effects import Halt
from hdphrs.protocol.events import Terminate
from hdphrs.protocol.tasks import ROOT
from hdphrs.wire.settings import LEASH_KILL, LEAVE_SIGNAL

ENDING = (signal.SIGTERM, signal.SIGINT)
"""Signals that tell a node to go; Ctrl-C does not reach it, but somebody may send what that sends."""

ORPHAN_S = 1.5
"""How long a member whose launcher is gone may take to end in an orderly way."""


class Orders:
    """What the process of a node is told, which holds for all lives of the node.

    Args:
        present: the driver of its present life; None before the first one.
        grace_s: how long it may take to leave.
    """

    def __init__(self, present: Callable[[], Driver | None], grace_s: float) -> None:
        self._present = present
        self._grace_s = grace_s
        self.to_go: bool = False
        """It was told to leave or to end, or its launcher is gone: no other life begins."""
        self.is_orphan: bool = False
        """Its launcher is gone."""

    async def obey_signals(self) -> None:
        """SIGTERM, SIGINT, which is taken for the same, and `LEAVE_SIGNAL`.  The root cannot leave; with SIGTERM the
        run ends."""
        terminated = False
        for ending in ENDING:
            signal.signal(ending, signal.SIG_IGN)  # as it is again behind this block: the process ends already
        with trio.open_signal_receiver(*ENDING, LEAVE_SIGNAL) as signals:
            async for number in signals:
                driver = self._present()
                if driver is not None and driver.core.me == ROOT:
                    if number in ENDING:
                        driver.told_to_end = True
                        driver.handle([Terminate()])
                    else:
                        say("the root node cannot leave: the run needs it")
                    continue
                self.to_go = True
                if driver is None or driver.halt is not None:
                    pass  # between two lives: there will be no other one
                elif driver.core.me is None or (terminated and number in ENDING):
                    driver.end(Halt(f"it was told to, by {signal.Signals(number).name}"))
                else:
                    driver.leave(self._grace_s)
                terminated = terminated or number in ENDING

    async def watch_leash(self) -> None:
        """Standard input ends with the launcher."""
        while True:
            await trio.lowlevel.wait_readable(0)
            data = os.read(0, 64)
            if LEASH_KILL in data:
                os.kill(os.getpid(), signal.SIGKILL)
            if not data:
                break
        self.to_go = self.is_orphan = True
        driver = self._present()
        if driver is not None and driver.core.me == ROOT:
            driver.handle([Terminate()])
            return
        if driver is not None and driver.core.me is not None:
            await trio.sleep(ORPHAN_S)
        # A host that goes down may end the ssh behind the leash first: whoever leaves has its time, or the root's end.
        driver = self._present()
        if driver is not None and not driver.is_leaving:
            driver.end(Halt("its launcher is gone"))
