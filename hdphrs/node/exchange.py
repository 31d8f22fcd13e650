"""All links of a node, served together.

What lives here: hearing whoever of schedulers, program and other nodes has something to say.  They answer each other
within microseconds, and a task of trio's that waits for each of them, and is woken for each message, takes longer than
most messages do.  So one task waits for all links, hears all that have something to say, and then, while one message
follows the other, waits a moment for the next itself before it lets trio do so: what trio has to do besides, timers,
can be late by a millisecond.
"""

from __future__ import annotations

import select
import selectors
from collections.abc import Callable
from contextlib import suppress
from math import inf
from time import perf_counter
from typing import Any, Final

import trio

from hdphrs.lookout import look_out
from hdphrs.node.link import NodeLink

ANSWER_S = 1e-3
"""How long to wait for an answer."""

TALK_S = 2e-3
"""Nobody waits for one unless there has been something to hear in this time before the turn."""

TURN_S = 2e-3
"""Then it is trio's turn, however much there is to hear."""

ONLY_END: Final = 0
"""To watch for nothing else: that the other end is gone is told in any case."""

Hear = Callable[[list[list[Any]]], bool]
"""Takes messages; whether there may be more."""


def _nothing() -> None:
    """What there is to do around a turn, if nobody says otherwise."""


class _Line:
    """What is watched."""

    def __init__(self, hear: Callable[[], bool]) -> None:
        self.hear = hear
        self.ended = trio.Event()


class _Selector:
    """What `select.epoll` does, where there is none."""

    def __init__(self) -> None:
        self._selector: Any = selectors.DefaultSelector()  # those of macOS and the BSDs have a descriptor
        self.fileno = self._selector.fileno
        self.unregister = self._selector.unregister
        self.close = self._selector.close

    def register(self, descriptor: int, mask: int) -> None:
        self._selector.register(descriptor, selectors.EVENT_READ)

    def poll(self, timeout_s: float) -> list[tuple[int, int]]:
        return [(key.fd, events) for key, events in self._selector.select(timeout_s)]


def _poll() -> Any:
    """That of `selectors` makes an object of each event, which takes as long as to find out that there is one."""
    return select.epoll() if hasattr(select, "epoll") else _Selector()


class Exchange:
    """Those of one node."""

    def __init__(
        self,
        has_time: Callable[[], bool],
        has_core: Callable[[], bool] = lambda: False,
        clock: Callable[[], float] = perf_counter,
    ) -> None:
        """
        Args:
            has_time: whether it does no harm if trio has its turn a little later.
            has_core: whether somebody has nothing to do, whose core can be had to look out for the next message.
        """
        self._has_time = has_time
        self._has_core = has_core
        self._clock = clock
        self._ended_s = -inf
        """When the last turn has."""
        self.begin: Callable[[], None] = _nothing
        """Called before each turn."""
        self.end: Callable[[], None] = _nothing
        """And after it."""
        self._poll = _poll()
        self._wait = self._poll.poll
        self._lines: dict[int, _Line] = {}
        """By descriptor."""

    async def run(self) -> None:
        """Hear them all, until cancelled."""
        while True:
            await trio.lowlevel.wait_readable(self._poll.fileno())
            while self.turn():
                await trio.lowlevel.checkpoint()

    async def serve(self, link: NodeLink, hear: Hear) -> None:
        """Have this link heard, until its other end is gone or there is no more to come."""

        def listen() -> bool:
            messages = link.receive()
            return messages is not None and (not messages or hear(messages))

        await self.watch(link.descriptor, listen)

    async def await_end(self, descriptor: int) -> None:
        """Wait until the other end of this is gone, which is not read; for ever, where that cannot be told."""
        if hasattr(select, "epoll"):
            await self.watch(descriptor, lambda: False, ONLY_END)
        else:
            await trio.sleep_forever()

    async def watch(self, descriptor: int, hear: Callable[[], bool], what: int = select.POLLIN) -> None:
        """Have `hear` read from this descriptor whenever there is something, until it says that it wants no more."""
        line = self._lines[descriptor] = _Line(hear)
        self._poll.register(descriptor, what)
        try:
            await line.ended.wait()
        finally:
            if not line.ended.is_set():
                self._forget(descriptor)

    def _forget(self, descriptor: int) -> _Line:
        with suppress(OSError):  # it is closed already
            self._poll.unregister(descriptor)
        return self._lines.pop(descriptor)

    def turn(self) -> bool:
        """Hear what there is, and for a moment what comes next; whether it is only for the time that this ends."""
        began_s = now_s = self._clock()
        talk = began_s - self._ended_s < TALK_S
        ready: Any = True
        self.begin()
        while ready and now_s - began_s < TURN_S:
            if not (talk and self._has_time()):
                ready = self._wait(0.0)
            else:
                ready = look_out(self._wait, ANSWER_S) if self._has_core() else self._wait(ANSWER_S)
            for descriptor, _ in ready:
                if not self._lines[descriptor].hear():
                    self._forget(descriptor).ended.set()
            now_s = self._clock()
        self.end()
        self._ended_s = now_s
        return bool(ready)

    def close(self) -> None:
        """Nobody is served any more."""
        self._poll.close()
