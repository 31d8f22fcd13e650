"""Recording what one node's core is fed and what it wants done (`--trace-protocol`).

What lives here: the writing.  The record of an event reaches the operating system after the core has handled it and
before anything is done about it; so what a killed node had not yet recorded, nobody has seen.  What does not: the form
of a record (`hdphrs.wire.trace`), and reading it again (`hdphrs.observe`).
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable
from itertools import count

from hdphrs import __version__
from hdphrs.config import CoreConfig
from hdphrs.errors import InternalError, StartError
from hdphrs.protocol import events as ev
from hdphrs.protocol.counters import COUNTERS
from hdphrs.protocol.effects import Effect, Send
from hdphrs.protocol.messages import Bye, TermAck
from hdphrs.protocol.node import Node
from hdphrs.wire.private import FILE_MODE, make_private_folder
from hdphrs.wire.settings import NodeSettings
from hdphrs.wire.trace import SUFFIX, Header, Record, encode_header, encode_record, first_line

RUN_BYTES = 8


class Recorder:
    """Writes the trace of one life of a node."""

    def __init__(self, folder: str, header: Header, say: Callable[[str], None]) -> None:
        """Make the folder, if it is missing, and a new file in it.

        Args:
            say: prints a line for the user.

        Raises:
            StartError: it cannot be written.
        """
        self.path: str
        self._say = say
        self._draws: list[int] = []
        begin = first_line(__version__) + encode_header(header)
        try:
            make_private_folder(folder)
            self.path, fd = _new_file(os.path.join(folder, f"node-{header.host}-{header.pid}"))
            _write(fd, begin)
        except OSError as error:
            raise StartError(f"{header.host}: cannot record the protocol in {folder}: {error.strerror}") from error
        self._fd: int | None = fd
        self._size_bytes = len(begin)

    def watch(self, choose: Callable[[int], int]) -> Callable[[int], int]:
        """The same source of chance, and what it answers is recorded."""

        def watched(n: int) -> int:
            drawn = choose(n)
            self._draws.append(drawn)
            return drawn

        return watched

    def handle(self, core: Node, event: ev.Event, now_s: float) -> list[Effect]:
        """`core.handle(event, now_s)`, recorded even if it raises."""
        self._draws.clear()
        try:
            effects = core.handle(event, now_s)
        except Exception:
            self._record(Record(now_s, event, tuple(self._draws), (), None))
            raise
        self._record(Record(now_s, event, tuple(self._draws), _counted_by_others(core, effects), tuple(effects)))
        return effects

    def close(self) -> None:
        """The life is over.  Idempotent."""
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None

    def _record(self, record: Record) -> None:
        """A disk that is full ends the recording, not the run; the file ends with the last whole record."""
        if self._fd is None:
            return
        try:
            frame = encode_record(record)
            _write(self._fd, frame)
            self._size_bytes += len(frame)
        except (OSError, InternalError) as error:
            os.ftruncate(self._fd, self._size_bytes)
            self.close()
            why = error.strerror if isinstance(error, OSError) else error
            self._say(f"the recording {self.path} ends here, the run goes on: {why}")


def life_of(settings: NodeSettings, config: CoreConfig, now_s: float) -> Header:
    """What tells the trace of this life from others."""
    run = hashlib.blake2b(settings.secret, digest_size=RUN_BYTES).digest()
    return Header(run, settings.root, settings.host, os.getpid(), time.time(), now_s, config)


def _counted_by_others(core: Node, effects: list[Effect]) -> tuple[tuple[str, int], ...]:
    """The last word of a node tells its counters, and the schedulers have put theirs among those of the core."""
    if not any(isinstance(effect, Send) and isinstance(effect.message, TermAck | Bye) for effect in effects):
        return ()
    return tuple((name, number) for name, number in core.counters.items() if name not in COUNTERS)


def _new_file(stem: str) -> tuple[str, int]:
    """One that nobody has written: a node that joins again is a new one in the same process.  It has the arguments of
    tasks, and only its user may read it."""
    for life in count(1):
        path = f"{stem}-{life}{SUFFIX}"
        try:
            return path, os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND, FILE_MODE)
        except FileExistsError:
            continue
    raise AssertionError("unreachable")


def _write(fd: int, data: bytes) -> None:
    """In one call, if the system takes it."""
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(fd, rest) :]
