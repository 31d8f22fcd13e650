"""What the tasks of a node say, on its way to the program (decision 22).

What lives here: whose words they are, and the way to the root.  What comes over a scheduler's link names its task
(`hdphrs/scheduler/voice.py`); what C code and child processes write to the standard streams is cut into lines here, and
is taken for that of the task that has the scheduler's core.  What does not: showing it (`hdphrs/program/echo.py`).

Until the program listens, and as long as a scheduler is not ready, words go where the node's own go: they may tell why
a run cannot begin.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import trio

from hdphrs.console import outlet
from hdphrs.node.last_words import LastWords, for_nobody
from hdphrs.node.link import NodeLink
from hdphrs.node.process import SchedulerProcess
from hdphrs.protocol.tasks import NodeId
from hdphrs.wire import local, said
from hdphrs.wire.settings import Streams

REST_BYTES_MAX = 8 << 10
"""A line that is longer is cut."""

BACKLOG_MAX = 1024
"""Frames that may wait for a program that does not read; what is said then is dropped, and counted."""

Forward = Callable[[bytes], None]
"""Takes a bundle."""


class Voices:
    """The way from the schedulers of a node to the program."""

    def __init__(self, host: str, prefixed: Streams) -> None:
        self.label: str = host
        """This node, in prefixes: its host, with the node's number once there have been others on that host."""
        self._host = host
        self.prefixed: Streams = prefixed
        self.forward: Forward | None = None
        """None as long as nobody listens."""
        self._advised: set[str] = set()

    def meet(self, me: tuple[NodeId, str, int], *others: tuple[NodeId, str, int]) -> None:
        """These nodes are alive, as in NODES."""
        if any(host == self._host for _, host, _ in others):
            self.label = f"{self._host}/{me[0]}"

    def advise(self, kind: str, sentence: str) -> None:
        """Give a hint, one of each kind; so does the program, of what all nodes say."""
        if kind in self._advised:
            return
        self._advised.add(kind)
        self.say([[said.ADVICE, kind, sentence]])

    def say(self, items: list[list[Any]]) -> None:
        """Send these."""
        if self.forward is not None:
            for bundle in said.bundles(items):
                self.forward(bundle)


class Speaker:
    """One scheduler: its link's words, and its two streams."""

    def __init__(self, voices: Voices, process: SchedulerProcess, running: Callable[[], tuple[str, bytes]]) -> None:
        """`running` tells name and path of the task that has its core, as far as one knows."""
        self.ready: bool = False
        self._voices = voices
        self._number = process.number
        self._running = running
        self._allowance = said.Allowance(said.SAY_LINES_PER_S, said.SAY_LINES_MAX)
        self._rest = {said.OUT: b"", said.ERR: b""}
        self._dead = False
        hears_errors = voices.prefixed is not Streams.NONE
        self.errors: LastWords = LastWords(
            process.errors, for_program=partial(self._hear, said.ERR) if hears_errors else for_nobody
        )
        self._streams = [self.errors]
        if process.output is not None:
            self._streams.append(LastWords(process.output, to=1, for_program=partial(self._hear, said.OUT)))

    @property
    def _place(self) -> str:
        return f"{self._voices.label}:{self._number}"

    def said(self, items: list[list[Any]]) -> None:
        """SAID."""
        for item in items:
            if item[0] in (said.TEXT, said.RECORD, said.WARNING):
                item[1][0] = self._place
            if item[0] == said.TEXT and item[2] == said.ERR:
                self.errors.remember(item[3])
        if self._voices.forward is None:
            for item in items:
                if item[0] == said.TEXT:
                    outlet(item[2]).offer(item[3])
        self._voices.say(items)

    async def relay(self) -> None:
        """Pass on what comes until the process has ended."""
        async with trio.open_nursery() as nursery:
            for stream in self._streams:
                nursery.start_soon(stream.relay)

    def drain(self) -> None:
        """Pass on what is there."""
        for stream in self._streams:
            stream.drain()

    def close(self) -> None:
        """The process has ended: pass on what is left, and close the pipes."""
        self._dead = True
        for stream in self._streams:
            stream.close()
        for stream_number, rest in self._rest.items():
            if rest:
                self._say_lines(stream_number, rest + b"\n")

    def _hear(self, stream: int, data: bytes) -> bool:
        if not self.ready or self._voices.forward is None:
            return False
        lines, newline, rest = (self._rest[stream] + data).rpartition(b"\n")
        if len(rest) > REST_BYTES_MAX:
            lines, newline, rest = lines + newline + rest, b"\n", b""
        self._rest[stream] = rest
        if newline:
            self._say_lines(stream, lines + newline)
        return True

    def _say_lines(self, stream: int, text: bytes) -> None:
        who = [self._place, *self._running()]
        lines = said.lines_of(text)
        if self._dead and stream == said.ERR:
            self._voices.say([[said.TEXT, who, said.LAST, text]])
        elif self._allowance.take(lines):
            self._voices.say([[said.TEXT, who, stream, text]])
        else:
            self._voices.say([[said.HELD, lines]])


class ToProgram:
    """The last part of the way, from the root node to the program."""

    def __init__(self, program: NodeLink) -> None:
        self._program = program
        self._lost = 0

    def forward(self, bundle: bytes) -> None:
        """Send a bundle, unless too much waits already."""
        if self._program.backlog > BACKLOG_MAX:
            self._lost += said.lost_with(bundle)
            return
        lost, self._lost = self._lost, 0
        if lost:
            for held in said.bundles([[said.HELD, lost]]):
                self._program.post([local.SAID, held])
        self._program.post([local.SAID, bundle])
        self._program.flush()

    def hear(self, lost: int, bundle: bytes) -> None:
        """One that comes from another node, which has dropped so many lines before."""
        self._lost += lost
        self.forward(bundle)
