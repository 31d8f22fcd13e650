"""Starting the schedulers of a node: at once, after a pause, or as soon as there is room."""

from __future__ import annotations

import errno
import gc
import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import closing
from types import SimpleNamespace
from typing import Any, NoReturn, cast

import pytest
import trio
from trio.testing import MockClock

from hdphrs import room
from hdphrs.errors import StartError
from hdphrs.node import life, starts
from hdphrs.node.process import SchedulerProcess
from hdphrs.node.restart_policy import FAILURES_MAX
from hdphrs.node.starts import Starts
from hdphrs.node.tracker import tracker
from hdphrs.room import NO_ROOM_STATUS, lack_of
from hdphrs.wire.page import Page
from hdphrs.wire.settings import NodeSettings, Streams

SETTINGS = NodeSettings(root=True, host="here", slots=3, secret=b"")


@pytest.fixture
def page() -> Iterator[Page]:
    with closing(Page.create(SETTINGS.slots)) as page:
        yield page


class Starting:
    """Stands for `start_scheduler`."""

    def __init__(self, *errors: int) -> None:
        self.errors = list(errors)
        self.started: list[int] = []

    def __call__(self, page: Page, number: int, settings: NodeSettings, *, forked: bool = False) -> SchedulerProcess:
        if self.errors and (error := self.errors.pop(0)):
            raise OSError(error, os.strerror(error))
        self.started.append(number)
        return cast(SchedulerProcess, SimpleNamespace(number=number))


def ended(status: int, number: int = 0) -> Any:
    """A process that has ended so."""
    return SimpleNamespace(number=number, status=lambda: status, how_it_ended=lambda: f"ended with {status}")


def pause_s(one: Starts, status: int, *, ready: bool = False, lived_s: float = 0.2) -> float:
    return one.pause_s(ended(status), "it has ended", ready=ready, lived_s=lived_s, words="first\nlast\n")


@pytest.mark.parametrize("kind", [errno.EAGAIN, errno.ENOMEM, errno.EMFILE, errno.ENFILE])
def test_place_gets_its_scheduler_when_there_is_room_however_long_that_takes(
    page: Page, kind: int, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    starting = Starting(*[kind] * 100)
    monkeypatch.setattr(starts, "start_scheduler", starting)
    one = Starts(page, SETTINGS, print)
    assert one.start(2) is None
    process = trio.run(one.start_later, 2, 0.0, clock=MockClock(autojump_threshold=0))
    assert (process.number, starting.started) == (2, [2])
    lack = lack_of(OSError(kind, os.strerror(kind)))
    said = f"hdphrs: no room for another process on this host ({lack}); trying again\n"
    assert capfd.readouterr().err == said


def test_want_of_room_is_said_again_after_a_scheduler_was_ready(
    page: Page, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(starts, "start_scheduler", Starting(errno.EAGAIN, 0, errno.EAGAIN, errno.EAGAIN))
    one = Starts(page, SETTINGS, print)
    for _ in range(3):
        one.start(0)
    one.succeeded()
    one.start(0)
    assert capfd.readouterr().err.count("\n") == 2


def test_place_whose_process_cannot_be_started_for_another_reason_is_given_up(
    page: Page, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(starts, "start_scheduler", Starting(*[errno.ENOENT] * FAILURES_MAX))
    one = Starts(page, SETTINGS, print)
    with pytest.raises(StartError) as refused:
        trio.run(one.start_later, 1, 0.0, clock=MockClock(autojump_threshold=0))
    assert str(refused.value) == (
        f"scheduler 1 on here could not be started {FAILURES_MAX} times one after the other; "
        f"the last one {os.strerror(errno.ENOENT)}"
    )


def test_process_that_ends_by_itself_before_it_is_ready_so_often_is_the_reason_with_its_last_words(page: Page) -> None:
    one = Starts(page, SETTINGS, lambda line: None)
    for _ in range(FAILURES_MAX - 1):
        pause_s(one, 1)
    with pytest.raises(StartError, match=r"the last one ended with 1: last$"):
        pause_s(one, 1)


@pytest.mark.parametrize("status", [-signal.SIGKILL, -signal.SIGTERM, NO_ROOM_STATUS])
def test_process_that_was_killed_or_found_no_room_never_is(page: Page, status: int) -> None:
    one = Starts(page, SETTINGS, lambda line: None)
    for _ in range(100):
        pause_s(one, status)


def test_user_is_told_of_an_end_and_of_a_long_pause_but_not_of_attempts_for_want_of_room(
    page: Page, capfd: pytest.CaptureFixture[str]
) -> None:
    said: list[str] = []
    one = Starts(page, SETTINGS, said.append)
    pause_s(one, -signal.SIGKILL, ready=True, lived_s=9.0)
    pause_s(one, 1)
    for _ in range(5):
        pause_s(one, NO_ROOM_STATUS)
    assert said == ["it has ended; it is replaced", "it has ended; it is replaced in 0.1 s"]
    assert capfd.readouterr().err.count("\n") == 1


@pytest.mark.parametrize("prefixed", list(Streams))
def test_process_that_could_not_be_started_leaves_no_descriptor(
    page: Page, prefixed: Streams, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*arguments: object, **options: object) -> NoReturn:
        raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))

    monkeypatch.setattr(subprocess, "Popen", refuse)
    gc.collect()  # what other tests have left must not go meanwhile
    assert tracker.writing > 2  # of which each node process has one, from its first scheduler on
    before = len(os.listdir("/proc/self/fd"))
    with pytest.raises(BlockingIOError):
        SchedulerProcess(page, 0, "reliable", None, prefixed=prefixed)
    assert len(os.listdir("/proc/self/fd")) == before


def test_node_begins_with_the_schedulers_that_there_is_room_for(monkeypatch: pytest.MonkeyPatch) -> None:
    starting = Starting(0, errno.EAGAIN, 0)
    monkeypatch.setattr(life, "start_scheduler", starting)
    page, processes = life.start_crew(SETTINGS)
    page.close()
    assert [process.number for process in processes] == [0]


def test_node_that_cannot_start_any_scheduler_for_a_while_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []
    monkeypatch.setattr(room, "sleep", slept.append)
    monkeypatch.setattr(room, "monotonic", lambda: sum(slept))
    monkeypatch.setattr(life, "start_scheduler", Starting(*[errno.EAGAIN] * 1000))
    with pytest.raises(StartError, match=f"cannot start a scheduler process on here: {os.strerror(errno.EAGAIN)}"):
        life.start_crew(SETTINGS)
    assert slept
