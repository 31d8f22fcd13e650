"""What tasks say: lines, log records, warnings and advice, on their way to the program (decision 22).

What lives here: the shapes, and reading them.  They are made in a scheduler, or by its node of what it reads from the
scheduler's pipes, and shown in the program (`hdphrs/program/echo.py`); no node in between looks inside.

    [TEXT, who, stream, text]            whole lines, or the part of one that the program's first task has flushed
    [RECORD, who, {attribute: value}]    a log record: its message formatted, its exception as text
    [WARNING, who, {field: value}]       a warning
    [ADVICE, kind, sentence]             once for each kind (decision 23); a warning if the kind begins with `LACK`
    [HELD, count]                        so many lines have been dropped on the way, because there were too many

`who` is `[place, name, path]`: the host and the number of the scheduler there, which its node adds, and the task.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from time import monotonic
from typing import Any, Final, NamedTuple

import msgpack

from hdphrs.errors import ProtocolError
from hdphrs.records import dataclass
from hdphrs.wire.framing import decode_object

TEXT: Final = 0
RECORD: Final = 1
WARNING: Final = 2
ADVICE: Final = 3
HELD: Final = 4

LACK: Final = "lack "
"""Begins the kind of a sentence about something that a host does not have, although the program does (decision 48)."""

OUT: Final = 1
ERR: Final = 2
LAST: Final = 3
"""As `ERR`, of a process that has died: shown in any case."""

ITEM_BYTES_MAX = 16 << 10
"""Of one item; what is longer is cut."""

BUNDLE_BYTES = 32 << 10
"""A bundle is closed when it has grown to this size."""

SAY_LINES_PER_S = 500
SAY_LINES_MAX = 2000
"""What a scheduler may say in a second, and at once."""

BYTES_PER_LINE = 2000
"""A line that is longer counts for several."""

WANTED = b"\0wanted"
"""The topic under which all boards (`hdphrs/api/board.py`) have what the program wants to hear."""


class Allowance:
    """So much at once, and so much a second."""

    def __init__(self, per_s: float, most: float, clock: Callable[[], float] = monotonic) -> None:
        self._per_s = per_s
        self._most = self._left = most
        self._clock = clock
        self._since_s = clock()

    def take(self, count: float) -> bool:
        """Whether so much more may be said."""
        now_s = self._clock()
        self._left = min(self._most, self._left + (now_s - self._since_s) * self._per_s)
        self._since_s = now_s
        if self._left < min(count, self._most):
            return False
        self._left -= count
        return True


class Who(NamedTuple):
    """Whose words these are."""

    place: str
    """Host and scheduler, for people."""
    name: str
    """The task's; empty if no task runs."""
    path: bytes


class Wanted(NamedTuple):
    """What the program wants to hear."""

    mains: tuple[bytes, ...] = ()
    """Paths of first tasks (`hdphrs.run`): what these print is the program's own."""
    levels: dict[str, int] | None = None
    """Of the loggers that have one, by name; the root's is that of ""."""
    disabled: int = 0
    """`logging.disable`."""


@dataclass(frozen=True, slots=True)
class Text:
    """Lines of a standard stream."""

    who: Who
    stream: int
    text: str


@dataclass(frozen=True, slots=True)
class LogRecord:
    """A log record."""

    who: Who
    attributes: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Warned:
    """A warning: its `text`, `category`, `filename`, `lineno`, and the `line` itself."""

    who: Who
    text: str
    category: str
    filename: str
    lineno: int


@dataclass(frozen=True, slots=True)
class Advice:
    """A hint of the runtime's."""

    kind: str
    sentence: str


@dataclass(frozen=True, slots=True)
class Held:
    """Lines that were dropped."""

    count: int


def lines_of(text: bytes) -> int:
    """How many lines it counts for."""
    return max(1, text.count(b"\n") + len(text) // BYTES_PER_LINE)


Said = Text | LogRecord | Warned | Advice | Held


def encode_wanted(wanted: Wanted) -> bytes:
    """As it stands on the boards."""
    data: bytes = msgpack.packb(list(wanted))
    return data


def decode_wanted(data: bytes) -> Wanted:
    """The program of this very run has made it."""
    mains, levels, disabled = msgpack.unpackb(data)
    return Wanted(tuple(mains), levels, disabled)


def bundles(items: Iterable[list[Any]]) -> Iterator[bytes]:
    """Items in packs of moderate size."""
    packs: list[bytes] = []
    size = 0
    for item in items:
        pack: bytes = msgpack.packb(item)
        if packs and size + len(pack) > BUNDLE_BYTES:
            yield _bundle(packs)
            packs, size = [], 0
        packs.append(pack)
        size += len(pack)
    if packs:
        yield _bundle(packs)


def _bundle(packs: list[bytes]) -> bytes:
    header: bytes = msgpack.Packer().pack_array_header(len(packs))
    return header + b"".join(packs)


def open_bundle(data: bytes) -> list[Said]:
    """What is in it; what is of no known shape is left out."""
    try:
        items = decode_object(data)
    except ProtocolError:
        return []
    opened = [_open(item) for item in items] if type(items) is list else []
    return [item for item in opened if item is not None]


def lost_with(bundle: bytes) -> int:
    """For how many lines one counts that is dropped."""
    lost = 0
    for item in open_bundle(bundle):
        match item:
            case Text(_, _, text):
                lost += max(1, text.count("\n"))
            case Held(count):
                lost += count
            case _:
                lost += 1
    return lost


def _open(item: object) -> Said | None:
    match item:
        case [0, [str(place), str(name), bytes(path)], int(stream), bytes(text)]:
            return Text(Who(place, name, path), stream, text.decode(errors="backslashreplace"))
        case [1, [str(place), str(name), bytes(path)], dict(attributes)]:
            return LogRecord(Who(place, name, path), attributes)
        case [2, [str(place), str(name), bytes(path)], str(text), str(category), str(filename), int(lineno)]:
            return Warned(Who(place, name, path), text, category, filename, lineno)
        case [3, str(kind), str(sentence)]:
            return Advice(kind, sentence)
        case [4, int(count)]:
            return Held(count)
        case _:
            return None
