"""What the tasks of this process say: standard streams, log records, warnings (decision 22).

What lives here: their way to the node, in the order of the results that follow.  What does not: what C code and child
processes write to the descriptors, which the node reads itself (`hdphrs/node/voices.py`).

Nothing in here waits for anybody who shows these things: the node takes all that a scheduler sends, and a scheduler
sends only so much (`said.Allowance`).  A task that says nothing pays for two empty containers when its result leaves.
"""

from __future__ import annotations

import io
import logging
import os
import sys
from collections import deque
from contextlib import suppress
from types import FrameType
from typing import Any, BinaryIO, TextIO, cast

from hdphrs.api import future as fast
from hdphrs.api.future import Future, name_of
from hdphrs.scheduler import hooks
from hdphrs.scheduler.assigned import Assigned, Root, path_of
from hdphrs.scheduler.links import Links
from hdphrs.scheduler.note import plain
from hdphrs.wire import local, said
from hdphrs.wire.said import Allowance, Wanted

PARTIAL_BYTES_MAX = 8 << 10
"""A line that is longer is cut."""

PARTIALS_MAX = 256
"""Tasks that have begun a line."""

FRAMES_MAX = 100
"""That are looked at for the name of a task that runs in place."""

PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep

_PLAIN = (str, int, float, bool, type(None))
_INT_MAX = 2**63
_TAKEN = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime"}


class Voice:
    """That of one scheduler."""

    def __init__(self, link: local.Link, links: Links) -> None:
        self._link = link
        self._links = links
        self._wanted = Wanted()
        self._waiting: deque[list[Any]] = deque()
        self._held = 0
        self._allowance = Allowance(said.SAY_LINES_PER_S, said.SAY_LINES_MAX)
        self._mouths: list[Mouth] = []

    def install(self, *, out: bool, err: bool) -> None:
        """Speak for this process from now on.

        Args:
            out, err: whether for the standard output and error too; else they go where their descriptors go.
        """
        if out:
            sys.stdout = sys.__stdout__ = self._speak(said.OUT)  # type: ignore[misc,assignment]
        if err:
            sys.stderr = sys.__stderr__ = self._speak(said.ERR)  # type: ignore[misc,assignment]
        hooks.install(_Shipper(self), self._warn, is_ours=lambda: not self.forked)

    def want(self, data: bytes) -> None:
        """What the program wants to hear, as it stands on the board."""
        before, self._wanted = self._wanted, said.decode_wanted(data)
        levels = self._wanted.levels or {}
        for name in (before.levels or {}).keys() - levels.keys():
            logging.getLogger(name).setLevel(logging.NOTSET)
        for name, level in levels.items():
            logging.getLogger(name).setLevel(level)
        if self._wanted.disabled != before.disabled:
            logging.disable(self._wanted.disabled)

    def is_main(self, author: Future[Any] | None) -> bool:
        """Whether what this task prints is the program's own."""
        mains = self._wanted.mains
        return bool(mains) and isinstance(author, Assigned) and author.spark.task.path in mains

    def say_text(self, stream: int, author: Future[Any] | None, text: bytes) -> None:
        """Lines of a standard stream; of the program's first task, what comes as it comes."""
        who = _who(author)
        is_main = self.is_main(author)
        for start in range(0, len(text), said.ITEM_BYTES_MAX):
            part = text[start : start + said.ITEM_BYTES_MAX]
            if is_main or self._may(said.lines_of(part)):
                self._say([said.TEXT, who, stream, part])

    def say_record(self, attributes: dict[str, Any]) -> None:
        """A log record."""
        if self._may(1):
            self._say([said.RECORD, _who(fast.here.task), attributes])

    def say_lack(self, kind: str, sentence: str) -> None:
        """Something that the program has is not to be had on this host; one of each kind is shown."""
        self._say([said.ADVICE, said.LACK + kind, sentence])

    def finish(self) -> list[list[Any]]:
        """Results leave: whatever has begun a line has ended it.  Returns what has not been sent, as `gathered`."""
        for mouth in self._mouths:
            if mouth.begun:
                mouth.finish()
        return self.gathered()

    def __bool__(self) -> bool:
        """Whether something has not been sent, because somebody else was sending just then."""
        return bool(self._waiting)

    def gathered(self) -> list[list[Any]]:
        """What has not been sent, as a message if there is anything."""
        if not self._waiting and not self._held:
            return []
        items: list[list[Any]] = []
        with suppress(IndexError):
            while True:
                items.append(self._waiting.popleft())
        held, self._held = self._held, 0
        if held:
            items.append([said.HELD, held])
        return [[local.SAID, items]]

    def _speak(self, stream: int) -> TextIO:
        mouth = Mouth(self, stream)
        self._mouths.append(mouth)
        text = io.TextIOWrapper(cast(BinaryIO, mouth), "utf-8", "backslashreplace", write_through=True)
        text.mode = "w"  # type: ignore[misc]  # as Python's own have it
        return text

    def _may(self, lines: int) -> bool:
        allowed = self._allowance.take(lines)
        if not allowed:
            self._held += lines
        return allowed

    def _say(self, item: list[Any]) -> None:
        self._waiting.append(item)
        with suppress(OSError):  # the loop will notice that the node is gone
            self._link.offer(self.gathered)

    def _warn(self, message: Warning | str, category: type[Warning], filename: str, lineno: int) -> None:
        if self._may(1):
            kind = f"{category.__module__}.{category.__qualname__}"
            self._say([said.WARNING, _who(fast.here.task), _clean(message), _clean(kind), _clean(filename), lineno])

    @property
    def forked(self) -> bool:
        """Whether this is a child of a task, and has no link; the node reads what it writes to the descriptors."""
        return not self._links.are_ours


class Mouth(io.BufferedIOBase):
    """Below `sys.stdout` or `sys.stderr`: cuts what tasks write into lines, each of one task."""

    mode = "wb"

    def __init__(self, voice: Voice, stream: int) -> None:
        self.name = "<stdout>" if stream == said.OUT else "<stderr>"
        self._voice = voice
        self._stream = stream
        self.begun: dict[Future[Any] | None, bytes] = {}
        """By task, its line without an end."""

    def writable(self) -> bool:
        """Always."""
        return True

    def fileno(self) -> int:
        """For child processes: what they write is heard too."""
        return self._stream

    def write(self, data: Any) -> int:
        """Say the lines that are whole now."""
        data = bytes(data)
        if self._voice.forked:
            return os.write(self._stream, data)
        author = fast.here.task
        text = self.begun.pop(author, b"") + data
        lines, newline, rest = text.rpartition(b"\n")
        if len(rest) > PARTIAL_BYTES_MAX:
            rest = self._shorten(author, rest)
        if rest:
            self.begun[author] = rest
            if len(self.begun) > PARTIALS_MAX:
                self.finish()
        if newline:
            self._voice.say_text(self._stream, author, lines + newline)
        return len(data)

    def flush(self) -> None:
        """The program's first task wants to see its line as far as it goes; others mix with others."""
        author = fast.here.task
        if author in self.begun and self._voice.is_main(author):
            self._voice.say_text(self._stream, author, self.begun.pop(author))

    def finish(self) -> None:
        """Say all that has no end."""
        while self.begun:
            author, rest = self.begun.popitem()
            self._voice.say_text(self._stream, author, rest if self._voice.is_main(author) else rest + b"\n")

    def _shorten(self, author: Future[Any] | None, rest: bytes) -> bytes:
        """Of a progress bar only the last state counts; any other long line is cut here."""
        state = rest.rpartition(b"\r")[2]
        if len(state) <= PARTIAL_BYTES_MAX:
            return state
        self._voice.say_text(self._stream, author, rest + b"\n")
        return b""


class _Shipper(logging.Handler):
    """Sends log records to the program, which handles them by its own configuration."""

    def __init__(self, voice: Voice) -> None:
        super().__init__()
        self._voice = voice
        self._formatter = logging.Formatter()

    def emit(self, record: logging.LogRecord) -> None:
        try:
            self._voice.say_record(self._attributes(record))
        except Exception:
            self.handleError(record)

    def _attributes(self, record: logging.LogRecord) -> dict[str, Any]:
        trace = record.exc_text or (self._formatter.formatException(record.exc_info) if record.exc_info else None)
        extras = {_clean(key): _flat(value) for key, value in vars(record).items() if key not in _TAKEN}
        return {
            **extras,
            "name": _clean(record.name),
            "levelno": record.levelno,
            "levelname": _clean(record.levelname),
            "msg": _clean(record.getMessage()),
            "pathname": _clean(record.pathname),
            "lineno": record.lineno,
            "funcName": _flat(record.funcName),
            "created": record.created,
            "msecs": record.msecs,
            "relativeCreated": record.relativeCreated,
            "threadName": _flat(record.threadName),
            "process": record.process,
            "exc_text": _flat(trace),
            "stack_info": _flat(record.stack_info),
        }


def _clean(text: object) -> str:
    """As text that becomes UTF-8, and is not too long."""
    return str(text)[: said.ITEM_BYTES_MAX].encode("utf-8", "backslashreplace").decode()


def _flat(value: object) -> object:
    """A value that a frame can hold."""
    if type(value) in _PLAIN and not (type(value) is int and abs(value) >= _INT_MAX):
        return _clean(value) if type(value) is str else value
    return _clean(repr(value))


def _who(author: Future[Any] | None) -> list[Any]:
    """Whose words these are; the node knows the place."""
    if author is None:
        return ["", "", b""]
    name = author.assigned.spark.task.name if isinstance(author, Root) else _name_in_place(author)
    return ["", name, path_of(author)]


def _name_in_place(author: Future[Any]) -> str:
    """The function of a task that is on the stack: a future does not know it any more, but its `get` does."""
    frame: FrameType | None = sys._getframe(1)
    for _ in range(FRAMES_MAX):
        if frame is None:
            break
        if frame.f_code.co_filename.startswith(PACKAGE) and "function" in frame.f_code.co_varnames:
            variables = frame.f_locals
            if variables.get("future") is author and callable(variables.get("function")):
                return name_of(plain(variables["function"]))
        frame = frame.f_back
    return ""
