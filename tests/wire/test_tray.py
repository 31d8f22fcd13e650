"""What a scheduler lays down, and when its node finds it."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from io import FileIO
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hdphrs.errors import InternalError
from hdphrs.wire.local import Link
from hdphrs.wire.page import LAID_MAX, LINE_BYTES, Line
from hdphrs.wire.tray import LAID_BYTES_MAX, Taker, Tray


class Both:
    """A scheduler and its node, in one thread."""

    def __init__(self) -> None:
        self.line = Line(memoryview(bytearray(LINE_BYTES)))
        reading, writing = os.pipe()
        for end in (reading, writing):
            os.set_blocking(end, False)
        self.ends = FileIO(reading), FileIO(writing, "w")
        ours, theirs = socket.socketpair()
        self.node = Link(ours)
        self.scheduler = Link(theirs, Tray(self.ends[1], self.line))
        self.taker = Taker(self.ends[0], self.line)

    def hears(self) -> list[list[Any]]:
        """What the node does when its link wakes it, or it comes by."""
        return self.taker.among(self.node.receive(block=False) or [])

    def wakes(self) -> bool:
        """Whether the node would be woken."""
        return bool(self.node.poll(0))

    def close(self) -> None:
        for end in (self.node, self.scheduler, *self.ends):
            end.close()


@pytest.fixture
def both() -> Iterator[Both]:
    both = Both()
    yield both
    both.close()


def test_what_is_laid_down_wakes_nobody_and_is_found(both: Both) -> None:
    assert not both.taker.finds
    both.scheduler.lay([1], [2])
    both.scheduler.lay([3])
    assert both.taker.finds
    assert not both.wakes()
    assert both.hears() == [[1], [2], [3]]
    assert not both.taker.finds
    assert both.hears() == []


def test_it_outlives_the_scheduler(both: Both) -> None:
    both.scheduler.send([1])
    both.scheduler.lay([2])
    both.scheduler.close()
    both.ends[1].close()
    assert both.hears() == [[1], [2]]


def test_of_a_dead_scheduler_all_is_heard_even_what_it_did_not_come_to_count(both: Both) -> None:
    """Its main thread may have taken it down before the helper thread, which had just written, had its turn again."""
    both.scheduler.send([1])
    both.line.lay = lambda: None  # type: ignore[method-assign]
    both.scheduler.lay([2])
    assert not both.taker.finds
    both.scheduler.send([3])
    both.scheduler.close()
    both.ends[1].close()
    assert both.taker.rest(both.node.receive(block=False) or []) == [[1], [2], [3]]


def test_nor_does_it_wait_for_a_message_that_will_never_come(both: Both) -> None:
    both.scheduler.send([1])
    both.scheduler.lay([2])
    assert both.taker.rest([]) == [[2]]


def test_message_that_cannot_be_sent_is_not_counted(both: Both) -> None:
    with pytest.raises(InternalError):
        both.scheduler.offer(lambda: [[object()]])
    both.scheduler.lay([1])
    assert both.hears() == [[1]]


def test_a_copy_of_a_scheduler_lays_nothing_down(both: Both) -> None:
    """As of a link that is closed, which a copy's are, its end is said to be gone."""
    both.ends[1].close()
    with pytest.raises(OSError, match="copy of a scheduler"):
        both.scheduler.lay([1])


def test_what_was_laid_down_after_a_message_that_is_still_under_way_waits_for_it(both: Both) -> None:
    """The node has read the link, and the scheduler goes on before it has looked at the tray."""
    both.scheduler.send([1])
    read = both.node.receive(block=False)
    assert read == [[1]]
    both.scheduler.lay([2])
    both.scheduler.send([3])
    both.scheduler.lay([4])
    assert both.taker.among(read) == [[1], [2]]
    assert both.hears() == [[3], [4]]


@pytest.mark.parametrize("data", [bytes(LAID_BYTES_MAX), "not plain" * LAID_BYTES_MAX])
def test_what_is_large_goes_over_the_link(both: Both, data: object) -> None:
    both.scheduler.lay([1])
    both.scheduler.lay([2, data])
    both.scheduler.lay([3])
    assert both.wakes()
    assert both.hears() == [[1], [2, data], [3]]


def test_a_full_tray_wakes_the_node(both: Both) -> None:
    """Nothing waits in it for ever."""
    number = 0
    while not both.wakes():
        both.scheduler.lay([number, bytes(LAID_BYTES_MAX // 2)])
        number += 1
    both.scheduler.lay([number, b""])
    assert [one for one, _ in both.hears()] == list(range(number + 1))
    both.scheduler.lay([number])
    assert not both.wakes()


def test_a_scheduler_without_a_tray_sends(both: Both) -> None:
    both.node.lay([1])
    assert both.scheduler.receive(block=False) == [[1]]


def test_the_count_may_go_round(both: Both) -> None:
    for _ in range(2):
        both.line.lay()
    assert both.line.laid == 2
    both.line._laid[0] = LAID_MAX - 1
    both.line.lay()
    assert both.line.laid == 0


STEPS = st.lists(st.sampled_from(["send", "say at once", "offer", "lay", "read", "hear"]))


@given(STEPS)
def test_the_node_hears_all_in_the_order_in_which_it_was_said(steps: list[str]) -> None:
    both = Both()
    said: list[list[Any]] = []
    read: list[list[Any]] = []
    heard: list[list[Any]] = []
    for number, step in enumerate(steps):
        if step == "read":
            read += both.node.receive(block=False) or []
        elif step == "hear":
            heard += both.taker.among(read)
            read = []
        else:
            said.append([number])
            if step == "send":
                both.scheduler.send([number])
            elif step == "say at once":
                assert both.scheduler.send_at_once([number])
            elif step == "offer":
                both.scheduler.offer(lambda number=number: [[number]])  # type: ignore[misc]
            else:
                both.scheduler.lay([number])
    heard += both.taker.among(read)
    heard += both.hears()
    both.close()
    assert heard == said
