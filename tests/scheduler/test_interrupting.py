"""Where a task may be set aside in the middle of a wait: where it waits, and nowhere else."""

from __future__ import annotations

import concurrent.futures
import queue
import selectors
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

import pytest

from hdphrs.api import future as fast
from hdphrs.scheduler.clocks import ThreadClock
from hdphrs.scheduler.handlers import PACKAGE
from hdphrs.scheduler.interrupting import SLICE, Interrupter, _waits
from tests.scheduler.test_export import assigned

DEADLINE_S = 30.0


def frame_of(body: Callable[[], object], end: Callable[[], object], expected: bool) -> bool:
    """Whether a thread in this body comes to be seen as one that waits, or not, as expected."""
    thread = threading.Thread(target=body, daemon=True)
    thread.start()
    end_s = time.monotonic() + DEADLINE_S
    seen = not expected
    while seen != expected and time.monotonic() < end_s:
        seen = _waits(sys._current_frames().get(thread.ident or 0))
        time.sleep(0.001)
    end()
    thread.join()
    return seen


def test_waits_of_the_standard_library_are_known() -> None:
    event, values, lock = threading.Event(), queue.SimpleQueue[int](), threading.Lock()
    other = threading.Thread(target=event.wait)
    lock.acquire()
    assert frame_of(event.wait, event.set, expected=True)
    event.clear()
    other.start()
    assert frame_of(other.join, event.set, expected=True)
    assert frame_of(lambda: values.get(), lambda: values.put(1), expected=True)
    assert frame_of(lambda: lock.acquire(), lock.release, expected=True)


def often(wait: Callable[[], object], first: Callable[[], object]) -> Callable[[], object]:
    """A wait that Python has made often, and specialized, before it lasts."""

    def body() -> None:
        for _ in range(100):
            first()
            wait()
        wait()

    return body


@pytest.mark.parametrize(
    "kind",
    [selectors.DefaultSelector, selectors.SelectSelector, selectors.PollSelector],
    ids=lambda kind: kind.__name__,
)
def test_waits_for_descriptors_are_known_however_often_they_are_made(kind: type[selectors.BaseSelector]) -> None:
    here, there = socket.socketpair()
    with kind() as selector, here, there:
        selector.register(here, selectors.EVENT_READ)

        def wait() -> None:
            selector.select()
            here.recv(1)

        def send() -> None:
            there.send(b"x")

        assert frame_of(often(wait, send), send, expected=True)


def test_waits_for_others_are_known_however_often_they_are_made() -> None:
    event, values, simple, condition = threading.Event(), queue.Queue[int](), queue.SimpleQueue[int](), threading.Lock()

    def wait() -> None:
        event.wait()
        event.clear()

    def take() -> None:
        with condition:
            pass

    assert frame_of(often(wait, event.set), event.set, expected=True)
    assert frame_of(often(values.get, lambda: values.put(1)), lambda: values.put(1), expected=True)
    assert frame_of(often(lambda: simple.get(), lambda: simple.put(1)), lambda: simple.put(1), expected=True)
    for _ in range(100):
        take()
    condition.acquire()
    assert frame_of(take, condition.release, expected=True)


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("concurrent.futures._base", "_create_and_install_waiters"),
        ("concurrent.futures._base", "wait"),
        ("threading", "Thread.start"),
        ("queue", "Queue.put"),
    ],
)
def test_functions_that_will_wait_but_do_not_yet_are_not_left(module: str, name: str) -> None:
    """Once tasks were left anywhere in these modules, with what has been counted, or a lock that others want too."""
    seen: list[bool] = []

    def look(frame: FrameType, event: str, arg: object) -> Any:
        if event == "line" and frame.f_code.co_qualname == name and frame.f_globals["__name__"] == module:
            seen.append(_waits(frame))
        return look

    future: concurrent.futures.Future[int] = concurrent.futures.Future()
    before = sys.gettrace()
    sys.settrace(look)
    try:
        concurrent.futures.wait([future], timeout=0)
        queue.Queue[int]().put(1)
        thread = threading.Thread(target=int)
        thread.start()
    finally:
        sys.settrace(before)
    thread.join()
    assert seen
    assert not all(seen)
    assert sum(seen) <= 2  # about to take a lock, or to wait


def test_code_that_has_waited_often_waits_still() -> None:
    """The interpreter adapts code that runs often."""

    def pause(duration_s: float) -> None:
        time.sleep(duration_s)

    for _ in range(50):
        pause(0)
    assert frame_of(lambda: pause(0.3), lambda: None, expected=True)


def test_a_lock_that_is_taken_by_with_is_a_wait() -> None:
    lock = threading.Lock()

    def take() -> None:
        with lock:
            pass

    for _ in range(50):
        take()
    lock.acquire()
    assert frame_of(take, lock.release, expected=True)


def test_who_computes_does_not_wait() -> None:
    ended = False

    def compute() -> None:
        while not ended:
            pow(3, 1000)

    def end() -> None:
        nonlocal ended
        ended = True

    assert not frame_of(compute, end, expected=False)


def test_our_own_code_is_left_nowhere_in_a_function_of_the_standard_library() -> None:
    """It may hold a lock there that whoever goes on wants: once, `Event.set` in the middle of a `Completer`."""
    event = threading.Event()
    ours = compile("def body(): event.wait()", PACKAGE + "scheduler/completion.py", "exec")
    code: dict[str, Any] = {"event": event}
    exec(ours, code)
    assert not frame_of(code["body"], event.set, expected=False)
    waiting = threading.Thread(target=code["body"])
    event.clear()
    waiting.start()
    end_s = time.monotonic() + 0.05
    while time.monotonic() < end_s:
        assert not _waits(sys._current_frames().get(waiting.ident or 0)) or not waiting.is_alive()
    event.set()
    waiting.join()


class _Bell:
    def __init__(self) -> None:
        self.waited = threading.Event()

    def ring(self) -> None:
        """Never."""

    def wait(self, for_s: float | None = None) -> bool:
        self.waited.set()
        return False


@pytest.fixture
def bell(restored: None) -> _Bell:
    return _Bell()


@pytest.fixture
def restored() -> Iterator[None]:
    import signal

    before = signal.getsignal(SLICE)
    fast.here.task = assigned(0)
    yield
    fast.here.task = None
    signal.signal(SLICE, before)


def test_main_thread_that_waits_lends_itself_and_waits_on(bell: _Bell) -> None:
    interrupter = Interrupter(lambda: bell)
    interrupter.install()
    go_on = threading.Event()

    def helper() -> None:
        while not bell.waited.wait(0.005):
            interrupter.interrupt()
        go_on.set()

    thread = threading.Thread(target=helper)
    thread.start()
    assert go_on.wait(DEADLINE_S)
    thread.join()
    assert bell.waited.is_set()
    assert not interrupter.is_lent


def test_main_thread_that_computes_is_left_alone(bell: _Bell) -> None:
    interrupter = Interrupter(lambda: bell)
    interrupter.install()
    interrupter._is_asked = True
    frame: FrameType | None = sys._getframe()
    interrupter._handle(SLICE, frame)
    assert not bell.waited.is_set()


def test_clock_tells_who_rests_from_who_computes() -> None:
    clocks: list[Any] = []
    ready, ended = threading.Event(), threading.Event()

    def body() -> None:
        clocks.append(ThreadClock())
        ready.set()
        ended.wait()

    thread = threading.Thread(target=body)
    thread.start()
    ready.wait()
    end_s = time.monotonic() + DEADLINE_S
    while clocks[0].rests_s() < 0.02:
        assert time.monotonic() < end_s
        time.sleep(0.001)
    ended.set()
    thread.join()
    assert clocks[0].rests_s() > 0.0  # and it is asked of a thread that is gone
