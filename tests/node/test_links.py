"""What a node makes of what comes over the links of a scheduler, if a task has written it."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from io import FileIO
from types import SimpleNamespace
from typing import Any, cast

import pytest
import trio
import trio.testing

from hdphrs.errors import ProtocolError
from hdphrs.node import links
from hdphrs.node.crew import Crew
from hdphrs.node.kernel import Stat
from hdphrs.node.link import NodeLink
from hdphrs.node.links import ENDING_S, FROM_PROGRAM, FROM_SCHEDULER, LOST, SPOILT, check, end_without_link
from hdphrs.node.scheduler import Fault, Scheduler
from hdphrs.protocol.events import Event, Hungry
from hdphrs.wire import local
from hdphrs.wire.framing import encode_frame
from hdphrs.wire.page import LINE_BYTES, Line, Page
from hdphrs.wire.settings import NodeSettings
from hdphrs.wire.tray import LAID_BYTES_MAX, Taker
from tests.node.processless import processless

GARBAGE = {
    "text": b"hello, world",
    "nulls": bytes(8),
    "a number": encode_frame(5),
    "a map": encode_frame({"a": 1}),
    "an extension": b"\0\0\0\3\xd4\5\0",
    "half an object, and more": b"\0\0\0\2\x92\1\0\0\0\2\x92\1",
}


@pytest.fixture
def scheduler() -> Iterator[Scheduler]:
    with processless() as one:
        yield one


@pytest.mark.parametrize("kind", GARBAGE)
def test_link_into_which_something_is_written_is_spoilt_and_receives_nothing_more(kind: str) -> None:
    ours, theirs = socket.socketpair()
    link = NodeLink(ours)
    with theirs:
        theirs.sendall(encode_frame([[local.READY]]))
        assert link.receive() == [[local.READY]]
        theirs.sendall(GARBAGE[kind])
        assert link.receive() is None
        assert link.is_spoilt
        theirs.sendall(encode_frame([[local.READY]]))
        assert (link.receive(), link.drain()) == (None, [])
    link.close()


def test_link_of_a_dead_scheduler_says_what_came_before_the_garbage() -> None:
    ours, theirs = socket.socketpair()
    link = NodeLink(ours)
    with theirs:
        theirs.sendall(encode_frame([[local.READY]]))
        assert link.drain() == [[local.READY]]
        theirs.sendall(GARBAGE["text"])
        assert link.drain() == []
    link.close()


@pytest.mark.parametrize(
    "laid",
    [
        *GARBAGE.values(),
        encode_frame([1, 2, 3]),
        encode_frame(["after", []]),
        encode_frame([1, "messages"]),
        (LAID_BYTES_MAX + 1).to_bytes(4, "big"),
    ],
)
def test_tray_into_which_something_is_written_is_spoilt_and_no_more_is_taken(laid: bytes) -> None:
    reading, writing = os.pipe()
    os.set_blocking(reading, False)
    line = Line(memoryview(bytearray(LINE_BYTES)))
    with FileIO(reading) as pipe:
        taker = Taker(pipe, line)
        os.write(writing, encode_frame([0, [["first"]]]) + laid)
        line.lay()
        assert taker.among([]) in ([["first"]], [])  # what stands before it in one write may be lost with it
        assert taker.is_spoilt
        os.write(writing, encode_frame([0, [["later"]]]))
        os.close(writing)
        line.lay()
        assert taker.rest([]) == []


@pytest.mark.parametrize(
    "messages",
    [[5], [[]], [["READY"]], [[99]], [[local.READY, 1]], [[local.RESULTS]], [[[local.READY]]], [None], [[local.QUIT]]],
)
def test_what_has_not_the_shape_of_a_message_is_none(messages: list[Any]) -> None:
    with pytest.raises((ProtocolError, TypeError)):
        check(messages, FROM_SCHEDULER)
    check([[local.READY], [local.RESULTS, []], [local.HUNGRY, 1, 0, local.NOW]], FROM_SCHEDULER)


def test_program_and_scheduler_are_not_taken_for_each_other() -> None:
    check([[local.BYE], [local.CANCEL, []], [local.EXPORT, []]], FROM_PROGRAM)
    with pytest.raises(ProtocolError):
        check([[local.READY]], FROM_PROGRAM)
    with pytest.raises(ProtocolError):
        check([[local.BYE]], FROM_SCHEDULER)


class Heard:
    """A crew that hears, and the core of its node."""

    def __init__(self, scheduler: Scheduler) -> None:
        self.page = Page.create(1)
        self.crew = Crew(
            self.page, [], settings=NodeSettings(root=True, host="here", slots=1, secret=b""), say=lambda line: None
        )
        self.scheduler = scheduler
        self.crew._handle = self._handle
        self.crew._counters.update(sparks_made=0, tasks_run=0)
        self.events: list[Event] = []

    def _handle(self, events: Any) -> None:
        self.events += events

    def close(self) -> None:
        self.crew.exchange.close()
        self.page.close()


@pytest.mark.parametrize(
    "message",
    [
        5,
        [local.RESULTS, 7],
        [local.RESULTS, [[[0, 1, 5], 0, [0, b"", [], 0.0, 0.0], 0.0, 0.0]]],
        [local.RETURN, [[[0, 1, 5], 0]]],
        [local.EXPORT, [[1]]],
        [local.SAID, [5]],
        [local.KEEP, [1], 0.0, 0.0],
        [local.PARTS, [0], []],
    ],
)
def test_scheduler_that_says_what_cannot_be_understood_is_ended_and_what_it_said_before_counts(
    scheduler: Scheduler, message: Any
) -> None:
    heard = Heard(scheduler)
    scheduler.process.line.run(3, careful=False, again=False)
    before = [local.HUNGRY, 1, 0, local.NOW]
    try:
        assert heard.crew._listen(scheduler, [before])
        assert not heard.crew._listen(scheduler, [message])
        assert heard.events == [Hungry(scheduler.origin, 1)]
        assert scheduler.fault == Fault(SPOILT, 3)
    finally:
        heard.close()


def test_first_fault_of_a_scheduler_is_the_one_that_counts(scheduler: Scheduler) -> None:
    killed: list[None] = []
    process = cast(Any, scheduler.process)
    process.process.kill = lambda: killed.append(None)
    for how in ("first", "second"):
        scheduler.condemn(Fault(how, 1))
    assert (scheduler.fault, len(killed)) == (Fault("first", 1), 1)


@pytest.mark.parametrize("ending_for_s", [0.0, 3.0])
def test_scheduler_without_link_is_ended_unless_it_ends_by_itself(
    scheduler: Scheduler, monkeypatch: pytest.MonkeyPatch, ending_for_s: float
) -> None:
    """It is charged to what ran when the link ended."""

    began_s = 0.0

    def stat_of(pid: int) -> Stat:
        return Stat("R", 0, is_ending=trio.current_time() - began_s < ending_for_s)

    async def main() -> None:
        nonlocal began_s
        began_s = trio.current_time()
        scheduler.process.line.run(3, careful=False, again=False)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(end_without_link, scheduler)
            await trio.testing.wait_all_tasks_blocked()
            scheduler.process.line.run(4, careful=False, again=False)
        took_s = trio.current_time() - began_s
        assert ending_for_s < took_s <= ending_for_s + 2 * ENDING_S

    monkeypatch.setattr(links, "stat_of", stat_of)
    trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0))
    assert scheduler.fault == Fault(LOST, 3)


def test_end_of_a_pipe_that_nobody_reads_is_told(scheduler: Scheduler) -> None:
    from hdphrs.node.exchange import Exchange

    async def main() -> None:
        exchange = Exchange(lambda: False)
        reading, writing = os.pipe()
        told = SimpleNamespace(end=False)

        async def wait() -> None:
            await exchange.await_end(reading)
            told.end = True
            nursery.cancel_scope.cancel()

        with trio.fail_after(20.0):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(exchange.run)
                nursery.start_soon(wait)
                os.write(writing, b"not for us")
                await trio.testing.wait_all_tasks_blocked(0.01)
                assert not told.end
                os.close(writing)
        assert told.end
        os.close(reading)
        exchange.close()

    trio.run(main)
