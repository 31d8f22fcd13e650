"""Every event and effect survives a trace; a trace that is damaged or foreign is told from a run that was cut short."""

from __future__ import annotations

from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hdphrs.config import CoreConfig
from hdphrs.errors import InternalError, ProtocolError
from hdphrs.protocol import effects as fx
from hdphrs.protocol import events as ev
from hdphrs.wire import trace as t
from tests.wire.test_codec import naturals, texts

VERSION = "1.2.3"
HEADER = t.Header(b"run", True, "host", 4711, 1e9, 12.5, CoreConfig())
TICK = t.Record(13.0, ev.Tick(), (), (), ())

addresses = st.tuples(texts, st.integers(0, 65535))
st.register_type_strategy(ev.Arrived, st.builds(ev.Arrived, naturals, texts, naturals, addresses, naturals))
seconds = st.floats(allow_nan=False, allow_infinity=False)
st.register_type_strategy(ev.Leave, st.builds(ev.Leave, seconds))
events: st.SearchStrategy[Any] = st.from_type(ev.Event)  # type: ignore[arg-type]  # a union is no type to mypy
effects: st.SearchStrategy[Any] = st.from_type(fx.Effect)  # type: ignore[arg-type]
records = st.builds(
    t.Record,
    seconds,
    events,
    st.lists(naturals, max_size=3).map(tuple),
    st.lists(st.tuples(texts, naturals), max_size=2).map(tuple),
    st.none() | st.lists(effects, max_size=3).map(tuple),
)


def written(*records: t.Record, header: t.Header = HEADER) -> bytes:
    """The bytes of a trace."""
    return t.first_line(VERSION) + t.encode_header(header) + b"".join(map(t.encode_record, records))


def read(data: bytes) -> list[t.Record]:
    """The records of a trace."""
    return list(t.TraceFile("some.trace", data, VERSION).records())


@pytest.mark.parametrize(("rows", "union"), [(t.EVENTS, ev.Event), (t.EFFECTS, fx.Effect)], ids=["events", "effects"])
def test_rows_equal_the_union(rows: dict[int, type], union: Any) -> None:
    assert list(rows.values()) == list(get_args(union))
    assert list(rows) == [*range(1, len(rows) + 1)]


@pytest.mark.parametrize("kind", [*get_args(ev.Event), *get_args(fx.Effect)], ids=lambda kind: kind.__name__)
def test_every_event_and_every_effect_survives_a_trace(kind: Any) -> None:
    @given(st.from_type(kind))
    def check(value: Any) -> None:
        is_event = kind in get_args(ev.Event)
        record = t.Record(1.0, value, (), (), ()) if is_event else t.Record(1.0, ev.Tick(), (), (), (value,))
        (received,) = read(written(record))
        assert received == record
        assert type(received.event if is_event else (received.effects or ())[0]) is kind

    check()


@given(st.lists(records, max_size=3), st.builds(CoreConfig), naturals, texts, seconds)
def test_records_and_header_survive(
    told: list[t.Record], config: CoreConfig, pid: int, host: str, wall_s: float
) -> None:
    header = t.Header(b"run", False, host, pid, wall_s, 0.0, config)
    data = written(*told, header=header)
    assert t.TraceFile("some.trace", data, VERSION).header == header
    assert read(data) == told


def test_trace_that_is_cut_anywhere_has_the_records_that_are_whole() -> None:
    begin = len(written())
    frame = len(written(TICK)) - begin
    data = written(TICK, TICK, TICK)
    for size in range(len(data) + 1):
        file = t.TraceFile("some.trace", data[:size], VERSION)
        assert file.header == (HEADER if size >= begin else None)
        assert len(list(file.records())) == max(0, (size - begin) // frame)


@given(st.data())
def test_trace_with_a_changed_byte_is_refused(draw: st.DataObject) -> None:
    data = bytearray(written(TICK, TICK))
    index = draw.draw(st.integers(0, len(data) - 1))
    data[index] ^= draw.draw(st.integers(1, 255))
    with pytest.raises(ProtocolError, match=r"^some\.trace"):
        read(bytes(data))


def test_damage_is_told_with_its_place() -> None:
    data = bytearray(written(TICK, TICK))
    second = len(written(TICK))
    data[second + 20] ^= 1
    with pytest.raises(ProtocolError, match=f"^some.trace is damaged at byte {second}: its checksum is another$"):
        read(bytes(data))


@pytest.mark.parametrize(
    ("record", "complaint"),
    [
        (t.Record(float("nan"), ev.Tick(), (), (), ()), "not a time: a float"),
        (t.Record(1.0, ev.Tick(), (-1,), (), ()), "not a number: -1"),
        (t.Record(1.0, ev.Hungry("one", 1), (), (), ()), "not a number: a str"),  # type: ignore[arg-type]
        (t.Record(1.0, ev.Tick(), (), (), (fx.Demand(1),)), "not a truth value: 1"),  # type: ignore[arg-type]
    ],
)
def test_record_that_no_recorder_writes_is_refused(record: t.Record, complaint: str) -> None:
    with pytest.raises(ProtocolError, match=f"^some.trace is damaged at byte {len(written())}: {complaint}$"):
        read(written(record))


def test_what_no_trace_can_hold_is_an_error_of_ours() -> None:
    with pytest.raises(InternalError, match="no trace can hold this"):
        t.encode_record(t.Record(1.0, ev.Tick(), (1 << 64,), (), ()))


def test_file_of_another_kind_is_refused() -> None:
    with pytest.raises(ProtocolError, match=r"^some\.trace: it is no trace of a node$"):
        read(b"#!/bin/sh\n")


def test_trace_of_another_version_is_refused_and_both_are_named() -> None:
    with pytest.raises(ProtocolError, match=r"this hdphrs reads .* version 1\.2\.4; it is a .* version 1\.2\.3$"):
        t.TraceFile("some.trace", written(TICK), "1.2.4")
