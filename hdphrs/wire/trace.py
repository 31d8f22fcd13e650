"""Traces: what one node's core was fed, and what it wanted done, as a file.

What lives here: the form of such a file, to and from bytes.  What does not: who writes it (`hdphrs.node.recorder`) and
who reads it (`hdphrs.observe`).

    a line of text: the versions of the form, of the messages in it, and of the hdphrs that wrote it
    a frame: the header, that is whose life this is
    a frame for each event, in order

A frame is its length, the checksum of its body and the checksum of these two, four bytes each, big-endian; then the
body, msgpack.  A writer that is killed leaves an incomplete last frame, which counts as none; everything else that is
not as it was written is a `ProtocolError`.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterator
from itertools import islice
from struct import Struct
from typing import Any, Final, TypeVar

from hdphrs.config import WIRE_VERSION, CoreConfig
from hdphrs.errors import InternalError, ProtocolError
from hdphrs.protocol import effects as fx
from hdphrs.protocol import events as ev
from hdphrs.protocol import messages as msg
from hdphrs.protocol.tasks import Crash, Origin, Outcome, Task, TaskRef
from hdphrs.records import dataclass
from hdphrs.wire import codec as c
from hdphrs.wire import items as i
from hdphrs.wire.framing import decode_object, encode_object
from hdphrs.wire.rows import Pack, Rows, Unpack, itself, wrong

T = TypeVar("T")

SUFFIX: Final = ".trace"
"""How the files are called."""

FORM: Final = 13
"""Raised with every change of what a trace's bytes mean."""

EVENTS: Final[dict[int, type[ev.Event]]] = {
    1: ev.Received,
    2: ev.Learned,
    3: ev.Exported,
    4: ev.Placed,
    5: ev.Hungry,
    6: ev.Finished,
    7: ev.GivenBack,
    8: ev.SchedulerUp,
    9: ev.SchedulerDied,
    10: ev.Arrived,
    11: ev.Suspected,
    12: ev.Tick,
    13: ev.Terminate,
    14: ev.Kept,
    15: ev.Leave,
    16: ev.Cancelled,
    17: ev.Begun,
    18: ev.Released,
    19: ev.Crowded,
}

EFFECTS: Final[dict[int, type[fx.Effect]]] = {
    1: fx.Send,
    2: fx.Teach,
    3: fx.Start,
    4: fx.Deliver,
    5: fx.Demand,
    6: fx.Admit,
    7: fx.Connect,
    8: fx.Fence,
    9: fx.StopSchedulers,
    10: fx.Halt,
    11: fx.Double,
    12: fx.Cancel,
    13: fx.Replace,
    14: fx.Unlearn,
}

_MAGIC: Final = b"hdphrs trace, "
_FRAME: Final = Struct(">III")


@dataclass(frozen=True, slots=True)
class Header:
    """Whose life a trace tells."""

    run: bytes
    """Equal for all nodes of one run, and for no others."""
    root: bool
    host: str
    pid: int
    wall_s: float
    """The time of day when recording began, since 1970."""
    now_s: float
    """The same moment as `Record.now_s` counts it."""
    config: CoreConfig


@dataclass(frozen=True, slots=True)
class Record:
    """One call of `Node.handle`."""

    now_s: float
    event: ev.Event
    draws: tuple[int, ...]
    """What `choose` answered during the call."""
    counted: tuple[tuple[str, int], ...]
    """Counters that others have put among the core's, when it was about to report them."""
    effects: tuple[fx.Effect, ...] | None
    """None: it raised."""


def first_line(version: str) -> bytes:
    """How a trace begins that this `version` of hdphrs writes."""
    return f"hdphrs trace, form {FORM}, wire {WIRE_VERSION}, version {version}\n".encode()


def encode_header(header: Header) -> bytes:
    """The frame of the header."""
    return _frame(_HEADERS.pack(header))


def encode_record(record: Record) -> bytes:
    """The frame of one event.

    Raises:
        InternalError: it holds something that no trace can hold.
    """
    return _frame(_RECORDS.pack(record))


class TraceFile:
    """The bytes of one trace."""

    def __init__(self, name: str, data: bytes, version: str) -> None:
        """
        Args:
            name: of the file, for errors.
            version: that of this hdphrs; another one's core need not act alike.

        Raises:
            ProtocolError: it is no trace, or damaged, or that of another version.
        """
        self._name = name
        self._data = data
        self._start = len(first_line(version))
        self._check_first_line(first_line(version))
        begin = next(self._frames(), None)
        self.header: Header | None = None if begin is None else self._unpack(_HEADERS, *begin)
        """None if the writer was killed before it had written it."""

    def records(self) -> Iterator[Record]:
        """The events in order, decoded one by one.

        Raises:
            ProtocolError: the file is damaged; tells where.
        """
        for offset, packed in islice(self._frames(), 1, None):
            yield self._unpack(_RECORDS, offset, packed)

    def _check_first_line(self, line: bytes) -> None:
        if self._data.startswith(line) or line.startswith(self._data):
            return
        wrote = self._data[: self._data.find(b"\n") + 1]
        if not wrote.startswith(_MAGIC):
            raise ProtocolError(f"{self._name}: it is no trace of a node")
        told, ours = wrote.decode(errors="replace").strip(), line.decode().strip()
        raise ProtocolError(f"{self._name}: this hdphrs reads a {ours}; it is a {told}")

    def _frames(self) -> Iterator[tuple[int, object]]:
        """Each body, and where it begins."""
        offset = self._start
        while offset + _FRAME.size <= len(self._data):
            size, checksum, of_both = _FRAME.unpack_from(self._data, offset)
            if zlib.crc32(self._data[offset : offset + 8]) != of_both:
                raise self._damaged(offset, "no frame begins there")
            body = self._data[offset + _FRAME.size : offset + _FRAME.size + size]
            if len(body) < size:
                return
            if zlib.crc32(body) != checksum:
                raise self._damaged(offset, "its checksum is another")
            try:
                packed = decode_object(body)
            except ProtocolError as error:
                raise self._damaged(offset, str(error)) from error
            yield offset, packed
            offset += _FRAME.size + size

    def _unpack(self, rows: Rows[T], offset: int, packed: object) -> T:
        try:
            return rows.unpack(packed)
        except ProtocolError as error:
            raise self._damaged(offset, str(error)) from error

    def _damaged(self, offset: int, why: str) -> ProtocolError:
        return ProtocolError(f"{self._name} is damaged at byte {offset}: {why}")


def _frame(packed: list[object]) -> bytes:
    try:
        body = encode_object(packed)
    except (TypeError, ValueError, OverflowError) as error:
        raise InternalError(f"no trace can hold this: {error}") from error
    both = len(body).to_bytes(4, "big") + zlib.crc32(body).to_bytes(4, "big")
    return both + zlib.crc32(both).to_bytes(4, "big") + body


# How a field is packed, by its annotation.


def _unpack_seconds(value: object) -> float:
    if type(value) is not float or not math.isfinite(value):
        raise wrong("time", value)
    return value


def _optional(pack: Pack, unpack: Unpack) -> tuple[Pack, Unpack]:
    return (
        lambda value: None if value is None else pack(value),
        lambda value: None if value is None else unpack(value),
    )


def _unpack_numbered_task(value: object) -> tuple[int, Task]:
    slot, task = i.unpack_fields(value, 2, "numbered task")
    return i.unpack_natural(slot), i.unpack_task(task)


def _unpack_copy(value: object) -> tuple[TaskRef, int]:
    ref, replica = i.unpack_fields(value, 2, "copy")
    return i.unpack_ref(ref), i.unpack_natural(replica)


def _unpack_result(value: object) -> tuple[TaskRef, int, Outcome]:
    ref, replica, outcome = i.unpack_fields(value, 3, "result")
    return i.unpack_ref(ref), i.unpack_natural(replica), i.unpack_outcome(outcome)


_OF_EVENTS: Final[dict[Any, tuple[Pack, Unpack]]] = c.BY_ANNOTATION | {
    bool: (itself, i.unpack_bool),
    str: (itself, i.unpack_str),
    float: (itself, _unpack_seconds),
    str | None: _optional(itself, i.unpack_str),
    tuple[str, int]: (i.pack_address, i.unpack_address),
    Origin: (itself, i.unpack_natural),
    msg.Message: (c.pack_message, c.unpack_message),
    Task: (i.pack_task, i.unpack_task),
    Crash: (i.pack_crash, i.unpack_crash),
    tuple[TaskRef, int] | None: _optional(list, _unpack_copy),
    tuple[tuple[int, Task], ...]: c.many(
        lambda item: [item[0], i.pack_task(item[1])], _unpack_numbered_task, "list of tasks"
    ),
    tuple[tuple[TaskRef, int], ...]: c.many(list, _unpack_copy, "list of copies"),
    tuple[tuple[TaskRef, int, Outcome], ...]: c.many(
        lambda item: [item[0], item[1], i.pack_outcome(item[2])], _unpack_result, "list of results"
    ),
    tuple[int, ...]: c.many(itself, i.unpack_natural, "list of numbers"),
}

_EVENT_ROWS: Final = Rows[ev.Event]("event", EVENTS, _OF_EVENTS, c.EVIDENT)
_EFFECT_ROWS: Final = Rows[fx.Effect]("effect", EFFECTS, _OF_EVENTS, c.EVIDENT)
_CONFIGS: Final = Rows("configuration", {1: CoreConfig}, _OF_EVENTS, c.EVIDENT)
_HEADERS: Final = Rows("header", {1: Header}, _OF_EVENTS | {CoreConfig: (_CONFIGS.pack, _CONFIGS.unpack)}, c.EVIDENT)
_RECORDS: Final = Rows(
    "record",
    {1: Record},
    _OF_EVENTS
    | {
        ev.Event: (_EVENT_ROWS.pack, _EVENT_ROWS.unpack),
        tuple[fx.Effect, ...] | None: _optional(*c.many(_EFFECT_ROWS.pack, _EFFECT_ROWS.unpack, "list of effects")),
    },
    c.EVIDENT,
)
