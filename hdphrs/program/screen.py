"""The program's own standard streams, as what tasks say is written to them.

What lives here: `Screen`.  Whoever reads those streams may be slow, or not read at all; then text waits here and no
thread does, neither the one that hears tasks nor one that wants a result: it is written in pieces, each when there is
room for it.  A stream that is no file, such as that of a notebook, takes all at once.
"""

from __future__ import annotations

import io
import os
import select
import sys
from collections import deque
from contextlib import suppress
from math import inf
from time import monotonic
from typing import TextIO

from hdphrs.wire.said import ERR, OUT

CHARACTERS_MAX = 4
"""Bytes of one in UTF-8."""


class Screen:
    """That of one program.  What waits in it is what follows from one bundle and one look at the clock, at most."""

    def __init__(self) -> None:
        self._waiting: deque[tuple[int, str]] = deque()
        self._lost: set[int] = set()
        """Streams of which the user knows that they take nothing."""

    @property
    def is_empty(self) -> bool:
        """Whether nothing waits to be written."""
        return not self._waiting

    def put(self, stream: int, text: str) -> None:
        """Have this written to the standard output (1) or error (2), whatever that is when it is written."""
        self._waiting.append((stream, text))

    def flush(self, within_s: float) -> bool:
        """Write what waits, as far as there is room, or will be in this time; whether there is room for more."""
        end_s = monotonic() + within_s
        while self._waiting:
            stream, text = self._waiting[0]
            target = _target(stream)
            descriptor = _descriptor(target)
            if descriptor is not None and not _has_room(descriptor, end_s):
                return False
            piece = text if descriptor is None else _piece(text)
            self._write(stream, target, piece)
            self._waiting[0] = stream, text[len(piece) :]
            if len(piece) == len(text):
                self._waiting.popleft()
        return self.await_room(max(0.0, end_s - monotonic()))

    def await_room(self, within_s: float) -> bool:
        """Wait until both streams have room, or not any longer; any thread may."""
        end_s = monotonic() + within_s
        descriptors = [_descriptor(_target(stream)) for stream in (OUT, ERR)]
        return all(descriptor is None or _has_room(descriptor, end_s) for descriptor in descriptors)

    def _write(self, stream: int, target: TextIO | None, text: str) -> None:
        if target is None:
            return
        try:
            if _descriptor(target) is None:
                target.write(text)
                target.flush()
            else:
                _write_through(target, text)
        except OSError as error:
            self._tell_loss(stream, error)
        except (ValueError, AttributeError):  # closed, or no stream
            pass

    def _tell_loss(self, stream: int, error: OSError) -> None:
        """It is full, or broken."""
        if stream in self._lost:
            return
        self._lost.add(stream)
        if stream == OUT:
            self.put(ERR, f"hdphrs: what tasks print cannot be shown, and is lost: standard output: {error.strerror}\n")


def _target(stream: int) -> TextIO | None:
    return sys.stdout if stream == OUT else sys.stderr


def _descriptor(target: TextIO | None) -> int | None:
    """Of a file that Python has opened; other streams, such as those of notebooks, may have one too, but write
    elsewhere or otherwise."""
    if type(target) is io.TextIOWrapper:
        with suppress(OSError, ValueError, AttributeError):
            if isinstance(getattr(target.buffer, "raw", target.buffer), io.FileIO):
                return target.fileno()
    return None


def _write_through(target: TextIO, text: str) -> None:
    """Past the buffer, which would keep what cannot be written, and fail at the end of the program."""
    target.flush()  # what the program has printed comes first
    try:
        data = text.encode(target.encoding, target.errors or "strict")
    except UnicodeEncodeError:
        data = text.encode(target.encoding, "backslashreplace")
    view = memoryview(data)
    while view:
        with suppress(BlockingIOError):  # somebody has made it so, for all who share it
            view = view[os.write(target.fileno(), view) :]
        if view:
            _has_room(target.fileno(), inf)


def _has_room(descriptor: int, end_s: float) -> bool:
    """Whether it takes a piece at this time at the latest, or never again any."""
    poll = select.poll()
    poll.register(descriptor, select.POLLOUT)
    return bool(poll.poll(None if end_s == inf else max(0.0, end_s - monotonic()) * 1e3))


def _piece(text: str) -> str:
    """As much of it as a pipe with room takes without keeping us waiting."""
    return text[: select.PIPE_BUF if text.isascii() else select.PIPE_BUF // CHARACTERS_MAX]
