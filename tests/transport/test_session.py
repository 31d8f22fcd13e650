"""Two real sessions and a connection that breaks wherever it likes."""

from __future__ import annotations

from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hdphrs.api.board import FIND_BYTES_MAX, TOPIC_BYTES_MAX, TOPICS_MAX
from hdphrs.errors import MessageTooLargeError, ProtocolError
from hdphrs.transport.greeting import NOTHING, Progress
from hdphrs.transport.session import ACK_AFTER_BYTES, BATCH_BYTES, SAID_BYTES_MAX, Session
from hdphrs.wire import said
from hdphrs.wire.bulk import BULK_BYTES_MIN, Bulk, bulk_of
from hdphrs.wire.framing import PIECE_BYTES, FrameDecoder, encode_frame


class End:
    """A session, what has been delivered from it, and the bytes on their way to it."""

    def __init__(self) -> None:
        self.session = Session()
        self.delivered: list[object] = []
        self.connect()

    def connect(self) -> None:
        self.under_way = b""
        self.decoder = FrameDecoder(pieces=True)
        self.decoder.go_on_with(self.session.unfinished)

    def take(self, count: int) -> None:
        data, self.under_way = self.under_way[:count], self.under_way[count:]
        frames = self.decoder.feed(data)
        self.session.on_bytes(len(data), amid=self.decoder.amid)
        for frame in frames:
            message = self.session.on_frame(frame)
            if message is not None:
                self.delivered.append(message)


def reconnect(a: End, b: End) -> None:
    a.connect()
    b.connect()
    a.session.resume(b.session.progress)
    b.session.resume(a.session.progress)


def write(source: End, sink: End) -> None:
    sink.under_way += source.session.batch()


def exchange(a: End, b: End) -> None:
    """Until nothing is left to say."""
    for _ in range(3):
        for source, sink in ((a, b), (b, a)):
            while batch := source.session.batch():
                sink.under_way += batch
            sink.take(1 << 40)


steps = st.lists(
    st.tuples(st.sampled_from(["push", "write", "take", "break", "beat", "ask"]), st.booleans(), st.integers(1, 60)),
    max_size=80,
)


@given(steps)
def test_connection_breaks_anywhere_then_every_message_arrives_once_and_in_order(
    script: list[tuple[str, bool, int]],
) -> None:
    ends = (End(), End())
    pushed: tuple[list[object], list[object]] = ([], [])
    for action, side, count in script:
        here, there = ends[side], ends[not side]
        match action:
            case "push":
                message: list[object] = [len(pushed[side])]
                pushed[side].append(message)
                here.session.push(message)
            case "write":
                write(here, there)
            case "take":
                here.take(count)
            case "break":
                reconnect(*ends)
            case "beat":
                here.session.beat()
            case "ask":
                here.session.ask()
    reconnect(*ends)
    ends[0].session.ask()
    ends[1].session.ask()
    exchange(*ends)
    for side in (False, True):
        assert ends[side].delivered == pushed[not side]
        assert ends[side].session.settled


def test_message_that_arrives_twice_is_delivered_once() -> None:
    a, b = End(), End()
    a.session.push(["x"])
    write(a, b)
    word = b.session.progress
    b.take(1000)  # what the old connection still brought, after the new one had been greeted
    a.session.resume(word)
    write(a, b)
    b.take(1000)
    assert b.delivered == [["x"]]


def test_session_with_nothing_to_say_writes_nothing() -> None:
    a, b = End(), End()
    a.session.push(["x"])
    exchange(a, b)
    assert a.session.batch() == b.session.batch() == b""


def test_acknowledgement_rides_on_whatever_is_sent() -> None:
    a, b = End(), End()
    a.session.push(["x"])
    write(a, b)
    b.take(1000)
    assert not a.session.settled
    b.session.push(["y"])
    write(b, a)
    a.take(1000)
    assert a.session.settled


def test_heartbeat_acknowledges() -> None:
    a, b = End(), End()
    a.session.push(["x"])
    write(a, b)
    b.take(1000)
    b.session.beat()
    write(b, a)
    a.take(1000)
    assert a.session.settled


def test_message_or_part_of_one_is_news_until_it_is_acknowledged_and_a_heartbeat_is_none() -> None:
    a, b = End(), End()
    a.session.beat()
    exchange(a, b)
    assert not b.session.has_news
    messages: list[list[object]] = [["x"], [bulk_of(bytes(2 * PIECE_BYTES))]]
    for message in messages:
        a.session.push(message)
        write(a, b)
        b.take(1 << 30)
        assert b.session.has_news
        b.session.beat()
        exchange(a, b)
    assert a.session.settled
    assert not a.session.has_news
    b.session.beat()
    exchange(a, b)
    assert not b.session.has_news


def test_much_is_received_and_nothing_sent_then_the_session_acknowledges_unasked() -> None:
    a, b = End(), End()
    a.session.push([b"x" * (ACK_AFTER_BYTES // 2)])
    write(a, b)
    b.take(1 << 30)
    assert not b.session.must_write
    a.session.push([b"x" * (ACK_AFTER_BYTES // 2)])
    write(a, b)
    b.take(1 << 30)
    assert b.session.must_write
    write(b, a)
    a.take(1000)
    assert a.session.settled
    assert not b.session.must_write


def test_batches_are_bounded() -> None:
    a = End()
    for _ in range(10):
        a.session.push([b"x" * (BATCH_BYTES // 2)])
    assert len(a.session.batch()) < 2 * BATCH_BYTES


@pytest.mark.parametrize(
    ("frame", "complaint"),
    [
        ([0, 2, ["x"]], "message 2 follows message 0"),
        ([1, 1], "acknowledges message 1, and 0 were sent"),
        ([0, -1, ["x"]], "not a number"),
        ([1, None], "not a number"),
        ([0, 1, None], "not a frame"),
        ([0, 1, "x"], "not a frame"),
        ([4], "not a frame"),
        ([5], "not a frame"),
        ([4, b"topic", 1, b"find"], "not a find"),
        ([4, b"topic", float("nan"), b"find"], "not a find"),
        ([4, bytes(TOPIC_BYTES_MAX + 1), 1.0, b"find"], "not a find"),
        ([4, b"topic", 1.0, bytes(FIND_BYTES_MAX + 1)], "not a find"),
        ([4, "topic", 1.0, b"find"], "bytes"),
        ([3, [0.0, 1.0]], "not a frame"),
        ([3, [0.0, 1.0, -1.0]], "duration"),
        ([], "not a frame"),
        (["x"], "not a frame"),
        ({}, "not a frame"),
    ],
)
def test_nonsense_is_a_protocol_error(frame: object, complaint: str) -> None:
    with pytest.raises(ProtocolError, match=complaint):
        Session().on_frame(frame)


def test_latest_note_arrives_before_what_is_sent_after_it() -> None:
    a, b = Session(), End()
    noted: list[tuple[float, ...]] = []
    b.session = Session(noted.append)
    a.note((1.0, 2.0, 3.0))
    a.note((4.0, 5.0, 6.0))
    assert not a.settled
    a.push(["x"])
    b.under_way = a.batch()
    b.take(len(b.under_way))
    assert noted == [(4.0, 5.0, 6.0)]
    assert b.delivered == [["x"]]


def test_latest_find_of_each_search_arrives() -> None:
    a, b = Session(), End()
    told: list[tuple[bytes, float, bytes]] = []
    b.session = Session(on_told=lambda *find: told.append(find))
    for rank in (1.0, 2.0):
        for topic in (b"one", b"two"):
            a.tell(topic, rank, b"find")
    b.under_way = a.batch()
    b.take(len(b.under_way))
    assert told == [(b"one", 2.0, b"find"), (b"two", 2.0, b"find")]
    assert a.batch() == b""


def test_finds_of_many_searches_do_not_pile_up() -> None:
    a = Session()
    for number in range(2 * TOPICS_MAX):
        a.tell(b"%d" % number, 1.0, b"")
    assert a.batch().count(b"\xcb") == TOPICS_MAX  # how msgpack begins a float


def test_peer_that_has_forgotten_is_a_protocol_error() -> None:
    a, b = End(), End()
    a.session.push(["x"])
    exchange(a, b)
    b.session.beat()
    exchange(a, b)
    with pytest.raises(ProtocolError, match="forgotten"):
        a.session.resume(NOTHING)


def test_peer_that_claims_what_was_never_sent_is_a_protocol_error() -> None:
    with pytest.raises(ProtocolError, match="0 were sent"):
        Session().resume(Progress(1, 0, 0))


def test_what_tasks_say_waits_up_to_a_bound_and_what_is_dropped_is_counted() -> None:
    heard: list[tuple[int, int]] = []
    speaker, listener = Session(), Session(on_said=lambda lost, bundle: heard.append((lost, len(bundle))))
    (bundle,) = said.bundles([[said.TEXT, ["", "", b""], said.OUT, bytes(1000)]])
    for _ in range(SAID_BYTES_MAX // 1000 + 3):
        speaker.say(bundle)
    assert not speaker.settled
    speaker.push([1])
    decoder = FrameDecoder()
    said_before: int | None = None
    while batch := speaker.batch():
        assert len(batch) < BATCH_BYTES + 2000
        for frame in decoder.feed(batch):
            if listener.on_frame(frame) is not None:
                said_before = len(heard)
    assert said_before is not None
    speaker.say(b"")
    for frame in decoder.feed(speaker.batch()):
        listener.on_frame(frame)
    lost = heard.pop()[0]
    assert heard == [(0, len(bundle))] * len(heard)
    assert len(heard) + lost == SAID_BYTES_MAX // 1000 + 3
    assert lost > 3


@given(
    st.lists(
        st.sampled_from(["small", "large", "two", "write", "write", "take", "take all", "break", "beat"]), max_size=50
    ),
    st.integers(1, PIECE_BYTES),
)
def test_large_payloads_arrive_whole_once_and_in_order_wherever_the_connection_breaks(
    script: list[str], count: int
) -> None:
    a, b = End(), End()
    pushed: list[object] = []
    for number, action in enumerate(script):
        data = bytes([number]) * (BULK_BYTES_MIN + number * 3000)
        match action:
            case "small":
                pushed.append([0, number])
                a.session.push([0, number])
            case "large":
                pushed.append([0, number, data])
                a.session.push([0, number, bulk_of(data)])
            case "two":
                pushed.append([data, number, data[:BULK_BYTES_MIN]])
                a.session.push([bulk_of(data), number, bulk_of(data[:BULK_BYTES_MIN])])
            case "write":
                write(a, b)
            case "take":
                b.take(count)
            case "take all":
                b.take(len(b.under_way))
            case "break":
                reconnect(a, b)
            case "beat":
                b.session.beat()
                write(b, a)
                a.take(1000)
    reconnect(a, b)
    a.session.ask()
    exchange(a, b)
    received = [
        [bytes(part) if isinstance(part, Bulk) else part for part in cast(list[Any], one)] for one in b.delivered
    ]
    assert received == pushed
    assert a.session.settled


class Copper:
    """A connection that says how much was written to it."""

    def __init__(self, source: End, sink: End) -> None:
        self.source, self.sink = source, sink
        self.written = 0
        self.lost = 0

    def write(self) -> bool:
        batch = self.source.session.batch()
        self.sink.under_way += batch
        self.written += len(batch)
        return bool(batch)

    def break_off(self) -> None:
        self.lost += len(self.sink.under_way)
        reconnect(self.source, self.sink)


@given(
    st.lists(st.lists(st.integers(BULK_BYTES_MIN, 5 * PIECE_BYTES), min_size=1, max_size=3), min_size=1, max_size=4),
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3 * PIECE_BYTES)), max_size=30),
)
def test_large_payloads_go_on_where_a_connection_broke_off_and_nothing_that_has_arrived_is_written_again(
    messages: list[list[int]], breaks: list[tuple[int, int]]
) -> None:
    """Each break comes after some batches and some bytes, which may end anywhere."""
    a, b = End(), End()
    line = Copper(a, b)
    pushed = [[bytes([place]) * size for place, size in enumerate(sizes)] for sizes in messages]
    for number, parts in enumerate(pushed):
        a.session.push([number, *map(bulk_of, parts)])
    for batches, count in breaks:
        for _ in range(batches):
            line.write()
        b.take(count)
        line.break_off()
    while line.write():
        b.take(len(b.under_way))
    b.session.beat()
    exchange(a, b)
    assert [[bytes(part) for part in cast(list[Any], one)[1:]] for one in b.delivered] == pushed
    assert a.session.settled
    assert not b.session.unfinished
    small = 100 * (line.written // PIECE_BYTES + len(breaks) + len(pushed) + 5)  # heads, frames and what breaks in them
    assert line.written <= sum(map(sum, messages)) + line.lost + small


def test_payload_arrives_over_connections_each_of_which_carries_less_than_that() -> None:
    a, b = End(), End()
    data = bytes(range(256)) * (20 * PIECE_BYTES // 256)
    a.session.push([1, bulk_of(data)])
    for _ in range(25):
        for _ in range(3):
            write(a, b)
        b.take(PIECE_BYTES + 1000)
        reconnect(a, b)
    (message,) = b.delivered
    assert bytes(cast(list[Any], message)[1]) == data


def test_frame_of_large_payloads_is_lost_alone_then_it_alone_is_written_again() -> None:
    a, b = End(), End()
    a.session.push([1, bulk_of(bytes(2 * PIECE_BYTES)), bulk_of(bytes(PIECE_BYTES))])
    for again in range(3):
        while batch := a.session.batch():
            b.under_way += batch
        b.take(3 * (PIECE_BYTES + 8) if not again else 0)
        assert len(b.session.unfinished.bulks) == 2
        assert len(b.under_way) < 100
        reconnect(a, b)
    a.session.push([2, bulk_of(bytes(PIECE_BYTES))])
    exchange(a, b)
    assert [cast(list[Any], message)[0] for message in b.delivered] == [1, 2]
    assert not b.session.unfinished


@pytest.mark.parametrize("claim", [(0, 2, 0), (0, 1, 1), (0, 0, PIECE_BYTES), (0, 0, PIECE_BYTES + 1)])
def test_peer_that_claims_a_part_which_it_cannot_have_is_a_protocol_error(claim: tuple[int, int, int]) -> None:
    session = Session()
    session.push([1, bulk_of(bytes(PIECE_BYTES))])
    with pytest.raises(ProtocolError, match="never sent"):
        session.resume(Progress(*claim))


def test_peer_that_claims_a_part_of_nothing_is_a_protocol_error() -> None:
    with pytest.raises(ProtocolError, match="never sent"):
        Session().resume(Progress(0, 0, 1))


def test_heartbeat_waits_for_one_piece_of_a_large_payload_at_most() -> None:
    a, b = End(), End()
    a.session.push([1, bulk_of(bytes(20 * PIECE_BYTES))])
    pieces = 0
    while True:
        a.session.beat()
        batch = a.session.batch()
        assert len(batch) <= PIECE_BYTES + 100
        assert batch.startswith(encode_frame([1, 0]))
        if not b.decoder.feed(batch)[1:]:
            pieces += 1
            continue
        break
    assert pieces == 20


def test_payload_on_the_heap_travels_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hdphrs.wire.bulk.DESCRIPTORS_MAX", 0)
    a, b = End(), End()
    data = b"x" * (2 * PIECE_BYTES + 5)
    a.session.push([1, bulk_of(data)])
    exchange(a, b)
    (message,) = b.delivered
    assert bytes(cast(list[Any], message)[1]) == data


def test_message_with_its_payloads_beyond_the_limit_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hdphrs.wire.framing.FRAME_BYTES_MAX", 3 * BULK_BYTES_MIN)
    a, b = End(), End()
    with pytest.raises(MessageTooLargeError, match="the limit is"):
        a.session.push([bulk_of(bytes(2 * BULK_BYTES_MIN)), bulk_of(bytes(BULK_BYTES_MIN))])
    a.session.push([2])
    exchange(a, b)
    assert b.delivered == [[2]]


def test_acknowledgement_of_what_is_being_written_is_a_protocol_error() -> None:
    a = End()
    a.session.push([0, bulk_of(bytes(3 * PIECE_BYTES))])
    a.session.batch()
    with pytest.raises(ProtocolError, match="it acknowledges message 1"):
        a.session.on_frame([1, 1])


def test_acknowledgement_of_what_is_being_written_again_confuses_nobody() -> None:
    a, b = End(), End()
    large = [[0, number, bulk_of(bytes(3 * PIECE_BYTES))] for number in range(2)]
    for message in large:
        a.session.push(message)
    while batch := a.session.batch():
        b.under_way += batch
    a.session.resume(NOTHING)
    a.session.batch()
    a.session.on_frame([1, 1])  # of the connection that broke
    assert not a.session.settled
    a.connect()
    b.connect()
    b.session.received = 1
    exchange(a, b)
    assert [cast(list[Any], message)[1] for message in b.delivered] == [1]


FISH, SCHEDULE, CODE, RESULT = 1, 7, 11, 10
"""Kinds of packed messages, see `hdphrs/wire/codec.py`."""


@given(
    st.lists(
        st.one_of(
            st.sampled_from(["write", "write", "take", "take all", "break"]),
            st.tuples(st.sampled_from([FISH, SCHEDULE, CODE, RESULT]), st.booleans()),
        ),
        max_size=60,
    ),
    st.integers(1, PIECE_BYTES),
)
def test_what_a_steal_consists_of_overtakes_large_messages_and_nothing_else_does(
    script: list[str | tuple[int, bool]], count: int
) -> None:
    a, b = End(), End()
    pushed: list[tuple[int, bool]] = []
    for action in script:
        match action:
            case (kind, is_large):
                number = len(pushed)
                pushed.append((kind, is_large and kind != FISH))
                data = bytes(BULK_BYTES_MIN + number * 3000)
                a.session.push([kind, number, bulk_of(data)] if pushed[-1][1] else [kind, number])
            case "write":
                write(a, b)
            case "take":
                b.take(count)
            case "take all":
                b.take(len(b.under_way))
            case "break":
                reconnect(a, b)
    reconnect(a, b)
    a.session.ask()
    exchange(a, b)
    arrived = [cast(list[Any], message)[1] for message in b.delivered]
    assert sorted(arrived) == list(range(len(pushed)))
    for place, late in enumerate(arrived):
        for early in arrived[:place]:
            if early > late:  # it has overtaken the other
                kind, is_large = pushed[early]
                assert kind != RESULT
                assert not is_large
                assert any(is_large for _, is_large in pushed[: late + 1])
                assert (kind, pushed[late][0]) != (SCHEDULE, CODE)
    assert a.session.settled


def test_fish_waits_for_one_piece_of_a_large_message_at_most_and_delays_none() -> None:
    a, b = End(), End()
    a.session.push([RESULT, bulk_of(bytes(20 * PIECE_BYTES))])
    a.session.push([RESULT, 2])
    for number in range(20):
        a.session.push([FISH, number])
        write(a, b)
        b.take(len(b.under_way))
        assert b.delivered[number:] == [[FISH, number]]
    exchange(a, b)
    assert [cast(list[Any], message)[0] for message in b.delivered[20:]] == [RESULT, RESULT]


def test_more_quick_messages_than_a_connection_takes_do_not_stop_a_large_one() -> None:
    a, b = End(), End()
    a.session.push([RESULT, bulk_of(bytes(20 * PIECE_BYTES))])
    written = 0
    while not any(cast(list[Any], message)[0] == RESULT for message in b.delivered):
        for _ in range(2 * BATCH_BYTES // (BULK_BYTES_MIN // 2)):
            a.session.push([SCHEDULE, bytes(BULK_BYTES_MIN // 2)])
        write(a, b)
        b.take(len(b.under_way))
        written += 1
        assert written < 50  # 20 pieces, and as many batches of what went ahead meanwhile


def test_what_is_ahead_of_a_large_message_is_not_overtaken_with_it() -> None:
    a, b = End(), End()
    a.session.push([RESULT, 1])
    a.session.push([RESULT, 2, bulk_of(bytes(BULK_BYTES_MIN))])
    a.session.push([FISH, 3])
    exchange(a, b)
    assert [cast(list[Any], message)[1] for message in b.delivered] == [1, 3, 2]


def test_message_behind_a_large_one_that_is_itself_too_large_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hdphrs.wire.framing.FRAME_BYTES_MAX", 2 * BULK_BYTES_MIN)
    a, b = End(), End()
    a.session.push([RESULT, bulk_of(bytes(BULK_BYTES_MIN))])
    with pytest.raises(MessageTooLargeError, match="the limit is"):
        a.session.push([RESULT, bytes(2 * BULK_BYTES_MIN)])
    a.session.push([RESULT, 2])
    exchange(a, b)
    assert len(b.delivered) == 2
