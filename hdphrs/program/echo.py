"""What tasks say, as the program shows it (decision 22).

What lives here: prefixes, counting what many tasks say alike, holding back what is too much, and the way of records
and warnings into `logging` and `warnings`.  Time is an argument.  What does not: threads, see `listener.py`.
"""

from __future__ import annotations

import builtins
import logging
import sys
import warnings
from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import Any

from hdphrs.protocol.paths import show_path
from hdphrs.wire.said import ERR, LACK, LAST, Advice, Allowance, Held, LogRecord, Said, Text, Warned, Who

ALIKE_S = 2.0
"""How long lines of other tasks that say the same are counted instead of shown."""

ALIKE_MAX = 1024
"""Different lines that are remembered for that."""

ONCE_MAX = 4096
"""Warnings that are remembered."""

LINES_PER_S = 200
LINES_MAX = 2000
"""What is shown in a second, and at once."""

HELD_S = 1.0
"""How long what is held back is counted before a line says so."""

RAW_HINT = "--output raw (or HDPHRS_OUTPUT=raw) shows all"

Write = Callable[[int, str], None]


class _Alike:
    """The same words of several tasks."""

    def __init__(self, who: Who, until_s: float, tell: Callable[[int], None]) -> None:
        self.who = who
        self.until_s = until_s
        self.tell = tell
        """Says how many more there were."""
        self.more = 0


class Echo:
    """Shows what comes, for one program."""

    def __init__(self, write: Write, clock: Callable[[], float]) -> None:
        """
        Args:
            write: a text to the program's standard output (1) or error (2).
            clock: seconds.
        """
        self.mains: set[bytes] = set()
        """Paths of first tasks, whose words are the program's own."""
        self._write = write
        self._clock = clock
        self._alike: OrderedDict[object, _Alike] = OrderedDict()
        self._allowance = Allowance(LINES_PER_S, LINES_MAX, clock)
        self._held = 0
        self._held_until_s: float | None = None
        self._warned: OrderedDict[object, None] = OrderedDict()
        self._advised: set[str] = set()

    def hear(self, said: Said) -> None:
        """Show it, or count it."""
        match said:
            case Text(who, stream, text):
                if who.path in self.mains:
                    self._write(min(stream, ERR), text)
                else:
                    for paragraph in paragraphs(text):
                        self._hear_text(who, stream, paragraph)
            case LogRecord(who, attributes):
                self._hear_record(who, attributes)
            case Warned():
                self._hear_warning(said)
            case Advice(kind, sentence):
                if kind not in self._advised:
                    self._advised.add(kind)
                    label = "warning" if kind.startswith(LACK) else "advice"
                    self._write(ERR, f"hdphrs: {label}: {sentence}\n")
            case Held(count):
                self._hold(count)

    @property
    def due_s(self) -> float | None:
        """When `tick` should be called."""
        times_s = [alike.until_s for alike in self._alike.values() if alike.more]
        if self._held_until_s is not None:
            times_s.append(self._held_until_s)
        return min(times_s, default=None)

    def tick(self) -> None:
        """Tell what has been counted for long enough."""
        now_s = self._clock()
        while self._alike:
            key, alike = next(iter(self._alike.items()))
            if alike.until_s > now_s:
                break
            self._tell(key)
        if self._held_until_s is not None and now_s >= self._held_until_s:
            self._tell_held()

    def end(self) -> None:
        """Tell all that has been counted."""
        while self._alike:
            self._tell(next(iter(self._alike)))
        if self._held:
            self._tell_held()

    def _hear_text(self, who: Who, stream: int, paragraph: str) -> None:
        lines = paragraph.rstrip("\n").split("\n")
        shown = min(stream, ERR)
        if stream != LAST:
            first = lines[0] if len(lines) == 1 else f"{lines[0]} ({len(lines)} lines)"
            if self._is_alike((shown, paragraph), who, lambda more: self._write(shown, f"[{more} more] {first}\n")):
                return
            if not self._allowance.take(len(lines)):
                self._hold(len(lines))
                return
        label = prefix(who)
        self._write(shown, "".join(f"{label} {line}\n" for line in lines))

    def _hear_record(self, who: Who, attributes: dict[str, Any]) -> None:
        record = record_of(who, attributes)
        key = record.name, record.levelno, record.msg

        def tell(more: int) -> None:
            self._log(record_of(who, {**attributes, "msg": f"{record.msg} [{more} more]", "exc_text": None}), who)

        if self._is_alike(key, who, tell):
            return
        if self._allowance.take(1):
            self._log(record, who)
        else:
            self._hold(1)

    def _hear_warning(self, warned: Warned) -> None:
        key = warned.text, warned.category, warned.filename, warned.lineno
        if key not in self._warned:
            self._warned[key] = None
            if len(self._warned) > ONCE_MAX:
                self._warned.popitem(last=False)
            warn(warned)

    def _is_alike(self, key: object, who: Who, tell: Callable[[int], None]) -> bool:
        """Whether another task has just said the same; then it is counted."""
        alike = self._alike.get(key)
        if alike is None:
            self._alike[key] = _Alike(who, self._clock() + ALIKE_S, tell)
            if len(self._alike) > ALIKE_MAX:
                self._tell(next(iter(self._alike)))
            return False
        if (alike.who.path, alike.who.name) == (who.path, who.name):
            return False
        alike.more += 1
        return True

    def _tell(self, key: object) -> None:
        alike = self._alike.pop(key)
        if alike.more:
            alike.tell(alike.more)

    def _hold(self, lines: int) -> None:
        if not self._held:
            self._held_until_s = self._clock() + HELD_S
        self._held += lines

    def _tell_held(self) -> None:
        held, self._held, self._held_until_s = self._held, 0, None
        self._write(ERR, f"hdphrs: held back {held} line{'s' * (held != 1)} of tasks' output; {RAW_HINT}\n")

    def _log(self, record: logging.LogRecord, who: Who) -> None:
        logger = logging.getLogger(record.name)
        if not logger.isEnabledFor(record.levelno):
            return
        if logger.hasHandlers():
            logger.handle(record)
            return
        trace = f"\n{record.exc_text}" if record.exc_text else ""
        text = f"{record.levelname} {record.name}: {record.msg}{trace}"
        self._write(ERR, "".join(f"{prefix(who)} {line}\n" for line in text.split("\n")))


def prefix(who: Who) -> str:
    """Such as "[host:3 work 0.17]"."""
    words = [who.place, who.name, show_path(who.path)]
    return f"[{' '.join(word for word in words if word)}]"


def paragraphs(text: str) -> Iterator[str]:
    """Lines, each with its newline; those that are indented belong to the line above, and so does the next one below
    them, as the last line of a traceback does."""
    begun: list[str] = []
    indented = False
    for line in text.splitlines(keepends=True) if "\r" not in text else _states(text):
        if line[:1] in (" ", "\t"):
            indented = True
        elif begun and not indented:
            yield "".join(begun)
            begun = []
        begun.append(line)
        if indented and line[:1] not in (" ", "\t"):
            yield "".join(begun)
            begun, indented = [], False
    if begun:
        yield "".join(begun)


def _states(text: str) -> list[str]:
    """Lines as a terminal shows them in the end, where a carriage return begins anew."""
    lines = text.replace("\r\n", "\n").split("\n")
    if not lines[-1]:
        lines.pop()
    return [line.rstrip("\r").rpartition("\r")[2] + "\n" for line in lines]


def record_of(who: Who, attributes: dict[str, Any]) -> logging.LogRecord:
    """The record as it was made there; whose it is stands in its attributes."""
    host = who.place.rpartition(":")[0].partition("/")[0]
    return logging.makeLogRecord(
        {
            "args": None,
            "exc_info": None,
            **attributes,
            "processName": who.place,
            "hdphrs": prefix(who),
            "hdphrs_host": host,
            "hdphrs_place": who.place,
            "hdphrs_task": who.name,
            "hdphrs_path": show_path(who.path),
        }
    )


def warn(warned: Warned) -> None:
    """Warn as the program itself would, with a word about where it comes from."""
    label = prefix(warned.who)
    text = f"{warned.text} {label}"
    category = _category(warned.category)
    try:
        warnings.warn_explicit(text, category, warned.filename, warned.lineno, registry={})
    except Warning:  # the program's filter makes errors of them, but here is nobody who could catch one
        warnings.showwarning(text, category, warned.filename, warned.lineno)


def _category(name: str) -> type[Warning]:
    """The class, if this process has it."""
    module, _, attribute = name.rpartition(".")
    found = getattr(builtins if module == "builtins" else sys.modules.get(module), attribute, None)
    return found if isinstance(found, type) and issubclass(found, Warning) else UserWarning
