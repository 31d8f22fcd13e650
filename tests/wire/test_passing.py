"""Bulks over a socket pair, and the ends of those who send them."""

from __future__ import annotations

import errno
import gc
import os
import socket
from collections import deque
from collections.abc import Iterator
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hdphrs.errors import MessageTooLargeError
from hdphrs.wire import bulk as bulks
from hdphrs.wire import local, passing
from hdphrs.wire.bulk import BULK_BYTES_MIN, Bulk, LostBulk, bulk_of
from hdphrs.wire.framing import FrameDecoder
from hdphrs.wire.passing import Backlog
from hdphrs.wire.values import load_payload

LARGE = b"x" * BULK_BYTES_MIN


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    ends = socket.socketpair()
    with ends[0], ends[1]:
        yield ends


@pytest.fixture(autouse=True)
def descriptors() -> Iterator[None]:
    gc.collect()
    before = len(os.listdir("/proc/self/fd"))
    yield
    gc.collect()
    assert len(os.listdir("/proc/self/fd")) == before


def content(value: Any) -> Any:
    """The same with bytes in place of bulks."""
    if isinstance(value, list):
        return [content(item) for item in value]
    return bytes(value) if isinstance(value, Bulk) else value


def test_message_with_bulks_arrives_with_them(pair: tuple[socket.socket, socket.socket]) -> None:
    here, there = map(local.Link, pair)
    first, second = bulk_of(LARGE), bulk_of(b"y" * BULK_BYTES_MIN)
    here.send([1, first, "and", second], [2, b"small"])
    here.send([3, first])
    received = there.receive(block=True)
    assert received is not None
    while len(received) < 3:
        received += there.receive(block=True) or []
    assert content(received) == [[1, LARGE, "and", b"y" * BULK_BYTES_MIN], [2, b"small"], [3, LARGE]]
    assert all(bulk.descriptor is not None for bulk in (received[0][1], received[0][3], received[2][1]))


def test_bulk_on_the_heap_travels_inside_the_frame(
    pair: tuple[socket.socket, socket.socket], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bulks, "DESCRIPTORS_MAX", 0)
    here, there = map(local.Link, pair)
    here.send([1, bulk_of(LARGE)])
    assert there.receive(block=True) == [[1, LARGE]]


@given(st.lists(st.lists(st.integers(0, 2), max_size=4), min_size=1, max_size=6), st.integers(1, 50))
def test_backlog_keeps_bytes_and_bulks_in_order(frames: list[list[int]], step: int) -> None:
    """Messages with so many bulks each, through a socket that takes little, read a few bytes at a time."""
    here, there = socket.socketpair()
    with here, there:
        here.setblocking(False)
        there.setblocking(False)
        here.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1)
        backlog, decoder = Backlog(here), FrameDecoder()
        sent: list[Any] = []
        received: list[Any] = []
        for number, messages in enumerate(frames):
            posted = [[number, *[bulk_of(b"%d" % number * BULK_BYTES_MIN)] * count, bytes(500)] for count in messages]
            sent += content(posted)
            backlog.send(*local.encode_frames(posted))
        while backlog or len(received) < len(sent):
            backlog.send_more()
            try:
                data = passing.receive(there, decoder.bulks)
            except BlockingIOError:
                continue
            for start in range(0, len(data), step):
                for frame in decoder.feed(data[start : start + step]):
                    received += content(frame)
        assert received == sent
        assert not decoder.bulks


def test_receiver_without_a_descriptor_to_spare_loses_only_that_bulk(
    pair: tuple[socket.socket, socket.socket],
) -> None:
    import resource

    here, there = map(local.Link, pair)
    here.send([1, bulk_of(LARGE)])
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(map(int, os.listdir("/proc/self/fd"))), hard))
    taken = []
    try:
        while True:
            taken.append(os.dup(0))
    except OSError:
        pass
    try:
        received = there.receive(block=True)
    finally:
        for descriptor in taken:
            os.close(descriptor)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert received is not None
    assert isinstance(received[0][1], LostBulk)
    with pytest.raises(OSError, match="Too many open files"):
        load_payload(cast(bytes, received[0][1]))
    here.send([2, bulk_of(LARGE)])
    received = there.receive(block=True)
    assert content(received) == [[2, LARGE]]


def test_too_many_descriptors_on_their_way_then_the_sender_waits(
    pair: tuple[socket.socket, socket.socket], monkeypatch: pytest.MonkeyPatch
) -> None:
    refusals = [True, True, False]
    send_with = passing._send_with

    def crowded(*args: Any) -> int:
        if refusals.pop(0):
            raise OSError(errno.ETOOMANYREFS, "Too many references")
        return send_with(*args)

    monkeypatch.setattr(passing, "_send_with", crowded)
    here, there = map(local.Link, pair)
    here.send([1, bulk_of(LARGE)])
    assert content(there.receive(block=True)) == [[1, LARGE]]
    refusals[:] = [True, False]
    pair[0].setblocking(False)
    backlog = Backlog(pair[0])
    backlog.send(*local.encode_frames([[2, bulk_of(LARGE)]]))
    assert backlog
    assert backlog.send_more()
    assert content(there.receive(block=True)) == [[2, LARGE]]


def test_sender_ends_before_its_bulk_is_read_then_it_is_there_all_the_same(
    pair: tuple[socket.socket, socket.socket],
) -> None:
    local.Link(pair[0]).send([1, bulk_of(LARGE)])
    pair[0].close()
    assert content(local.Link(pair[1]).receive(block=True)) == [[1, LARGE]]


def test_message_beyond_the_limit_is_refused_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hdphrs.wire.framing.FRAME_BYTES_MAX", 1000)
    frames, _ = local.encode_frames([[b"x" * 600], [b"y" * 600]])
    assert [len(frame) for frame in FrameDecoder().feed(frames)] == [1, 1]
    with pytest.raises(MessageTooLargeError, match="cannot leave"):
        local.encode_frames([[b"x" * 600], [b"y" * 1600]])


def test_tokens_for_nothing_are_refused() -> None:
    from hdphrs.errors import ProtocolError

    frame, _ = local.encode_frames([[1, bulk_of(LARGE)]])
    with pytest.raises(ProtocolError, match="token for nothing"):
        FrameDecoder().feed(frame)


def test_unused_bulks_go_with_the_link(pair: tuple[socket.socket, socket.socket]) -> None:
    waiting: deque[Bulk] = deque()
    here = local.Link(pair[0])
    here.send([1, bulk_of(LARGE)])
    assert passing.receive(pair[1], waiting)
    assert len(waiting) == 1
