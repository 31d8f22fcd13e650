"""When the loop of a scheduler may wait without looking: never before other threads have left what they have for it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

from hdphrs.api import future as fast
from hdphrs.api.future import AWAY, DONE, Future
from hdphrs.scheduler.completion import Completer
from hdphrs.scheduler.threads import Threads

DEADLINE_S = 30.0


class _Idle:
    """Stands for what has nothing to do here."""

    def __getattr__(self, name: str) -> Callable[..., Any]:
        return lambda *_: None


class _Waiting(_Idle):
    def __init__(self, on_wake: Callable[[], object]) -> None:
        self.wake = lambda future: on_wake()
        self.calls: list[Callable[[], object]] = []

    def watch(self, future: Future[Any], call: Callable[[], object]) -> None:
        self.calls.append(call)


@pytest.fixture
def threads() -> Threads:
    return Threads(lambda task: False)


def completer(threads: Threads, on_wake: Callable[[], object] = lambda: None) -> tuple[Completer, _Waiting]:
    waiting = _Waiting(on_wake)
    idle: Any = _Idle()
    return Completer(idle, waiting, threads, idle, idle, idle), waiting  # type: ignore[arg-type]


def away() -> Future[int]:
    future: Future[int] = Future()
    future._function, future._status, future._parent = None, AWAY, None
    return future


def test_a_wanted_future_is_wanted_until_who_waits_for_it_has_been_woken(threads: Threads) -> None:
    woken, active = threading.Event(), list[bool]()

    def on_wake() -> None:
        active.append(one.is_active)
        woken.set()

    one, _ = completer(threads, on_wake)
    future = away()
    one.want(future)
    assert one.is_active
    future._content, future._status = 1, DONE
    assert woken.wait(DEADLINE_S)
    assert active == [True]


def test_a_worker_is_active_from_when_it_has_taken_a_call_until_it_has_made_it(
    threads: Threads, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken, go_on, made = threading.Event(), threading.Event(), threading.Event()
    joined = threads.joined

    def late(task: Future[Any] | None) -> Any:
        taken.set()
        assert go_on.wait(DEADLINE_S)
        return joined(task)

    monkeypatch.setattr(threads, "joined", late)
    one, waiting = completer(threads)
    future = away()
    one.attend(future, made.set)
    future._content, future._status = 1, DONE
    waiting.calls[0]()  # as whoever fills it does
    assert taken.wait(DEADLINE_S)
    assert one.is_active
    go_on.set()
    assert made.wait(DEADLINE_S)
    end = threading.Event()
    while one.is_active:
        assert not end.wait(0.001)
    assert type(fast.here) is fast.Here


def test_a_thread_that_comes_and_goes_while_it_is_asked_counts(
    threads: Threads, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, _ = completer(threads)

    class Lock:
        def __enter__(self) -> None:
            with threads.joined(None):
                pass

        def __exit__(self, *_: object) -> None:
            """It is free."""

    assert not one.is_active
    monkeypatch.setattr(one, "_change", Lock())
    assert one.is_active
