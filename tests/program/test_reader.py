"""Whoever waits reads, nothing is lost, and nobody waits for what is here; the test is the node."""

from __future__ import annotations

import dis
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from itertools import count
from types import FrameType
from typing import Any

import pytest

from hdphrs.api.future import AWAY, Future
from hdphrs.errors import Cancelled
from hdphrs.program import reader
from hdphrs.program.port import ProgramPort
from hdphrs.wire import local
from hdphrs.wire.items import pack_outcome
from hdphrs.wire.values import dump_result

DEADLINE_S = 20.0

LONG_S = 1.0
"""No call is so short that it goes in a bundle."""


def double(number: int) -> int:
    return 2 * number


class Node:
    """The other end of a program's link: answers when it is told to."""

    def __init__(self) -> None:
        ours, theirs = socket.socketpair()
        theirs.settimeout(DEADLINE_S)
        self.link = local.Link(theirs)
        self.port = ProgramPort(local.Link(ours), describe_loss=lambda: "it is gone")
        self.spawned: list[int] = []
        self.link.send([local.READY, True, False], [local.NODES, [[0, "here", 2]]])
        self.port.start()

    def spawn(self, number: int) -> Future[int]:
        return self.port.spawn(double, (number,), {}, None)

    def hear(self) -> None:
        """Until something that was spawned has come, or cancelled."""
        heard = False
        while not heard:
            for message in self.link.receive(block=True) or []:
                heard = heard or message[0] in (local.EXPORT, local.CANCEL)
                if message[0] == local.EXPORT:
                    self.spawned += [slot for slot, _ in message[1]]
                if message[0] == local.CANCEL:
                    self.link.send([local.HEARD])

    def answer(self, value: int) -> None:
        """What was spawned first."""
        while not self.spawned:
            self.hear()
        outcome = dump_result("double", value, LONG_S)
        self.link.send([local.DELIVER, self.spawned.pop(0), pack_outcome(outcome)])

    def trip(self, number: int) -> int:
        """A whole one, in this thread."""
        future = self.spawn(number)
        self.answer(2 * number)
        return self.port.wait(future)

    def reads_itself(self) -> None:
        """Come to where waiting threads read."""
        for number in count():
            before = self.port._reader._reads
            assert self.trip(number) == 2 * number
            if self.port._reader._reads > before:
                return

    def end(self) -> None:
        self.link.close()
        self.port.release()


@pytest.fixture
def node(monkeypatch: pytest.MonkeyPatch) -> Iterator[Node]:
    monkeypatch.setattr(reader, "REST_S", 0.05)
    node = Node()
    yield node
    node.end()


def in_thread(work: Callable[[], Any]) -> tuple[threading.Thread, list[Any]]:
    got: list[Any] = []
    thread = threading.Thread(target=lambda: got.append(work()), daemon=True)
    thread.start()
    return thread, got


def wait_for(condition: Callable[[], bool]) -> None:
    beat = threading.Event()
    for _ in range(int(DEADLINE_S / 1e-3)):
        if condition():
            return
        beat.wait(1e-3)
    raise AssertionError("it does not happen")


def test_one_trip_after_the_other_is_read_by_the_waiting_thread(node: Node) -> None:
    node.reads_itself()
    before = node.port._reader._reads
    while node.port._reader._reads < before + 20:
        assert node.trip(7) == 14


def test_what_comes_while_nobody_waits_is_heard(node: Node) -> None:
    node.reads_itself()
    node.link.send([local.NODES, [[0, "here", 2], [5, "there", 2]]])
    wait_for(lambda: node.port.cores == 4)


def test_what_comes_for_others_is_heard_while_a_thread_reads(node: Node) -> None:
    node.reads_itself()
    future = node.spawn(3)
    thread, got = in_thread(lambda: node.port.wait(future))
    wait_for(lambda: node.port._reader.is_lent or bool(node.port._waiters))
    node.link.send([local.NODES, [[0, "here", 2], [5, "there", 2]]])
    wait_for(lambda: node.port.cores == 4)
    node.answer(6)
    thread.join(DEADLINE_S)
    assert got == [6]


def test_receiver_stays_when_what_it_hears_is_not_for_a_waiting_thread(node: Node) -> None:
    """As bundles are not, of which one follows the other: to come back for each would take longer than to hear it."""
    future = node.spawn(3)
    thread, got = in_thread(lambda: node.port.wait(future))
    wait_for(lambda: node.port._reader._stood_in)
    for other in (5, 6):
        node.link.send([local.NODES, [[0, "here", 2], [other, "there", other]]])
        wait_for(lambda: node.port.cores == 2 + other)  # noqa: B023 - it is done with before the next
    assert node.port._reader._stood_in
    node.answer(6)
    thread.join(DEADLINE_S)
    assert got == [6]


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 2, 0)])
def test_threads_that_wait_side_by_side_all_get_their_values(node: Node, order: tuple[int, ...]) -> None:
    node.reads_itself()
    futures = [node.spawn(number) for number in range(3)]
    while len(node.spawned) < 3:
        node.hear()
    slots = node.spawned[:]
    threads = [in_thread(lambda future=future: node.port.wait(future)) for future in futures]  # type: ignore[misc]
    wait_for(lambda: len(node.port._waiters) + node.port._reader.is_lent == 3)
    for number in order:
        node.spawned[:] = [slots[number]]
        node.answer(2 * number)
        threads[number][0].join(DEADLINE_S)
        assert threads[number][1] == [2 * number]


def test_cancelling_wakes_the_thread_that_reads(node: Node) -> None:
    node.reads_itself()
    future = node.spawn(3)
    node.hear()

    def wait() -> str:
        try:
            return str(node.port.wait(future))
        except Cancelled:
            return "cancelled"

    thread, got = in_thread(wait)
    wait_for(lambda: node.port._reader.is_lent or bool(node.port._waiters))
    assert node.port.cancel(future)
    node.hear()
    thread.join(DEADLINE_S)
    assert got == ["cancelled"]


def test_the_end_of_the_node_wakes_the_thread_that_reads(node: Node) -> None:
    node.reads_itself()
    future = node.spawn(3)

    def wait() -> str:
        try:
            return str(node.port.wait(future))
        except Exception as error:
            return type(error).__name__

    thread, got = in_thread(wait)
    wait_for(lambda: node.port._reader.is_lent or bool(node.port._waiters))
    node.link._socket.shutdown(socket.SHUT_RDWR)
    thread.join(DEADLINE_S)
    assert got == ["RootLostError"]


def test_signal_handler_that_waits_itself_does_not_keep_the_interrupted_thread_waiting(node: Node) -> None:
    node.reads_itself()
    inner: list[int] = []

    def handle(number: int, frame: FrameType | None) -> None:
        inner.append(node.port.wait(node.spawn(5)))

    before = signal.signal(signal.SIGUSR1, handle)
    try:
        outer = node.spawn(4)
        node.hear()

        def serve() -> None:
            wait_for(lambda: node.port._reader.is_lent or bool(node.port._waiters))
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGUSR1)
            while len(node.spawned) < 2:
                node.hear()
            node.answer(8)  # what the interrupted thread waits for comes first
            node.answer(10)
            if node.port._reader.is_lent:
                node.hear()

        thread, _ = in_thread(serve)
        assert node.port.wait(outer) == 8
        assert inner == [10]
        node.link.send([local.HEARD])
        thread.join(DEADLINE_S)
    finally:
        signal.signal(signal.SIGUSR1, before)


class Interrupt(BaseException):
    """As Ctrl-C raises it, from anywhere."""


CALLS = {"CALL", "CALL_KW", "CALL_FUNCTION_EX", "RESUME", "JUMP_BACKWARD"}
"""After these the interpreter looks for signals."""


def interrupted(work: Callable[[], object], at: int) -> bool:
    """Run this, and interrupt it at the so-many-th point of the program's side where signal handlers are called;
    whether it came to that."""
    points = 0
    last: dict[FrameType, str] = {}
    files = ("program/reader.py", "program/port.py", "program/calls.py", "wire/local.py", "wire/passing.py")

    def trace(frame: FrameType, event: str, arg: object) -> Any:
        nonlocal points
        if not frame.f_code.co_filename.endswith(files):
            return None
        frame.f_trace_opcodes = True
        if event == "opcode":
            before, last[frame] = last.get(frame), dis.opname[frame.f_code.co_code[frame.f_lasti]]
            if before in CALLS:
                points += 1
            if points == at:
                sys.settrace(None)
                raise Interrupt
        return trace

    sys._getframe().f_trace_opcodes = True  # Python 3.12 looks, while it begins, whether any frame has this
    sys.settrace(trace)
    try:
        work()
    except Interrupt:
        return True
    finally:
        sys.settrace(None)
    return False


def test_thread_that_is_interrupted_anywhere_while_it_waits_loses_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "REST_S", 0.02)
    node = Node()
    for at in count(1):
        node.reads_itself()
        before = node.port._reader._reads
        future = node.spawn(at)
        node.answer(2 * at)
        again = interrupted(lambda future=future: node.port.wait(future), at)  # type: ignore[misc]
        thread, got = in_thread(lambda future=future: node.port.wait(future))  # type: ignore[misc]
        thread.join(DEADLINE_S)
        assert got == [2 * at], f"interrupted at point {at}"
        assert future._status is not AWAY
        if not again and node.port._reader._reads > before:  # to the end, and it has read itself
            break
    assert at > 20
    node.end()
