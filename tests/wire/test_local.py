"""The local link: what travels together, and what does not."""

from __future__ import annotations

import os
import socket
import sys
import threading
from time import monotonic

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hdphrs.wire import framing, local


@given(sizes=st.lists(st.integers(0, 100)), limit=st.integers(1, 200))
def test_chunks_keep_the_order_and_are_small_unless_one_item_is_large(sizes: list[int], limit: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(local, "CHUNK_BYTES_MAX", limit)
        patch.setattr(local, "CHUNK_ITEMS_MAX", 5)
        chunks = list(local.chunks(sizes, lambda size: size))
    assert [size for chunk in chunks for size in chunk] == sizes
    assert all(chunk and len(chunk) <= 5 for chunk in chunks)
    assert all(sum(chunk) <= limit or len(chunk) == 1 for chunk in chunks)


def test_messages_that_exceed_a_frame_together_travel_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(framing, "FRAME_BYTES_MAX", 100)
    messages = [[local.CODE, bytes([i]), bytes(60)] for i in range(3)]
    frames = framing.FrameDecoder().feed(local.encode_frames(messages)[0])
    assert frames == [[message] for message in messages]


def test_more_messages_than_a_list_may_have_items_travel_in_several_frames() -> None:
    messages = [[local.DELIVER, slot] for slot in range(framing.ITEMS_MAX + 1)]
    frames = framing.FrameDecoder().feed(local.encode_frames(messages)[0])
    assert [message for frame in frames for message in frame] == messages
    assert len(frames) == 2


def test_a_link_delivers_what_was_sent_and_tells_its_end() -> None:
    ours, theirs = socket.socketpair()
    sender, receiver = local.Link(ours), local.Link(theirs)
    assert receiver.receive(block=False) == []
    sender.send([local.READY], [local.HUNGRY, 1, 2])
    assert receiver.receive(block=True) == [[local.READY], [local.HUNGRY, 1, 2]]
    sender.close()
    assert receiver.receive(block=True) is None
    receiver.close()


@pytest.mark.skipif(sys.platform != "linux", reason="no other system tells what has not been read")
def test_link_waits_until_all_was_read_whoever_wrote_it_and_no_longer_than_it_is_to() -> None:
    ours, theirs = socket.socketpair()
    link = local.Link(ours)
    try:
        began_s = monotonic()
        link.wait_until_read(60.0)
        os.write(ours.fileno(), b"not ours")
        link.wait_until_read(0.02)
        assert monotonic() - began_s >= 0.02
        reader = threading.Timer(0.05, theirs.recv, (8,))
        reader.start()
        link.wait_until_read(60.0)
        reader.join()
        assert monotonic() - began_s < 60.0
    finally:
        link.close()
        theirs.close()
