"""The target that reads traces: files that another machine may have written, and a crash may have damaged.

What lives here: two situations, chosen by the first byte.  Even: the input is the body of a record, in a file that is
else in order.  Odd: it is all that follows the first line.
"""

from __future__ import annotations

import zlib
from random import Random
from typing import Any, Final

from hdphrs.config import CoreConfig
from hdphrs.errors import ProtocolError
from hdphrs.protocol import effects as fx
from hdphrs.protocol import events as ev
from hdphrs.protocol import messages as msg
from hdphrs.protocol.tasks import NodeId, Origin
from hdphrs.wire import trace
from hdphrs.wire.framing import decode_object
from tests.fuzz import seeds
from tests.fuzz.core_target import member, task
from tests.fuzz.mutate import mutate_bytes, mutate_object, write
from tests.fuzz.target import Outcome, Target, refused

_FIRST: Final = trace.first_line("1")
_HEADER: Final = trace.encode_header(trace.Header(b"run", True, "host", 4711, 1e9, 12.5, CoreConfig()))
_FRAME_BYTES: Final = 12


def _frame(body: bytes) -> bytes:
    both = len(body).to_bytes(4, "big") + zlib.crc32(body).to_bytes(4, "big")
    return both + zlib.crc32(both).to_bytes(4, "big") + body


def _run(data: bytes) -> Outcome:
    rest = data[1:] if data and data[0] & 1 else _HEADER + _frame(data[1:])
    try:
        file = trace.TraceFile("x", _FIRST + rest, "1")
        records = list(file.records())
    except ProtocolError as error:
        return refused(error)
    for record in records:
        trace.encode_record(record)
    return Outcome(True, " ".join(sorted({type(record.event).__name__ for record in records}))[:80])


def _records() -> list[trace.Record]:
    rng = seeds.seed_number("trace")
    events: list[ev.Event] = [ev.Received(NodeId(1), message) for message in seeds.every_message(rng)]
    events += [
        ev.Learned(b"digest", b"data"),
        ev.Exported(Origin(1), ((0, task(0)), (1, task(1)))),
        ev.Placed(Origin(0), 3, task(2), NodeId(2)),
        ev.Hungry(Origin(1), 4),
        ev.Arrived(7, "host", 2, ("127.0.0.1", 4000), 99),
        ev.Suspected(NodeId(2)),
        ev.Tick(),
        ev.Terminate(),
    ]
    spark = seeds.message_of(rng, msg.Push)
    assert isinstance(spark, msg.Push)
    effects: tuple[fx.Effect, ...] = (
        fx.Send(NodeId(1), spark),
        fx.Start(Origin(1), (spark.spark,)),
        fx.Demand(True),
        fx.Connect(member(2)),
        fx.Fence(NodeId(2), 3),
        fx.Halt("it has lost the root node"),
    )
    return [
        trace.Record(float(number), event, (1, 2), (("stolen", 3),), effects[number % 6 :] if number % 7 else None)
        for number, event in enumerate(events)
    ]


_ENCODED: Final = [trace.encode_record(record) for record in _records()]
_BODIES: Final[list[Any]] = [decode_object(encoded[_FRAME_BYTES:]) for encoded in _ENCODED]


def _seeds() -> list[bytes]:
    return [b"\0" + encoded[_FRAME_BYTES:] for encoded in _ENCODED] + [b"\1" + _HEADER + b"".join(_ENCODED[:6])]


def _draw(rng: Random) -> bytes:
    if rng.random() < 0.2:
        return b"\1" + mutate_bytes(rng, _HEADER + b"".join(rng.sample(_ENCODED, 3)))
    return b"\0" + write(mutate_object(rng, rng.choice(_BODIES), _BODIES))


TRACE = Target("trace", _run, _seeds, _draw)
