"""No room for another process or thread: told from other errors, and waited for."""

from __future__ import annotations

import errno
import os
import sys
import threading
from collections.abc import Callable

import pytest

from hdphrs import room
from hdphrs.room import PAUSE_MAX_S, PAUSE_MIN_S, lacks_room, start_thread, try_to_start, wait_for_room

NO_THREAD = "can't start new thread"


@pytest.fixture
def slept(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """How long it has waited; no time goes by but this."""
    pauses: list[float] = []
    monkeypatch.setattr(room, "sleep", pauses.append)
    monkeypatch.setattr(room, "monotonic", lambda: sum(pauses))
    return pauses


def failing(times: int, error: BaseException) -> Callable[[], str]:
    """Starts something after so many failures."""
    left = [error] * times

    def start() -> str:
        if left:
            raise left.pop()
        return "started"

    return start


def of_system(number: int) -> OSError:
    return OSError(number, os.strerror(number))


@pytest.mark.parametrize("number", [errno.EAGAIN, errno.ENOMEM, errno.EMFILE, errno.ENFILE])
def test_bounds_on_processes_memory_and_files_are_want_of_room(number: int) -> None:
    assert lacks_room(of_system(number))


@pytest.mark.parametrize("error", [of_system(errno.ENOENT), of_system(errno.EPERM), RuntimeError("no"), ValueError()])
def test_other_errors_are_not(error: Exception) -> None:
    assert not lacks_room(error)


@pytest.mark.parametrize("error", [of_system(errno.EAGAIN), RuntimeError(NO_THREAD), MemoryError()])
def test_it_is_tried_again_with_growing_pauses_and_said_once(
    slept: list[float], error: Exception, capfd: pytest.CaptureFixture[str]
) -> None:
    assert wait_for_room(failing(3, error), "another process") == "started"
    assert slept == [PAUSE_MIN_S, 2 * PAUSE_MIN_S, 4 * PAUSE_MIN_S]
    said = capfd.readouterr().err
    assert said.startswith("hdphrs: no room for another process on this host (")
    assert said.endswith("); trying again\n")
    assert said.count("\n") == 1


def test_it_is_given_up_after_a_while(slept: list[float]) -> None:
    with pytest.raises(OSError, match=os.strerror(errno.EAGAIN)):
        wait_for_room(failing(1000, of_system(errno.EAGAIN)), "another process", 10.0)
    assert sum(slept) <= 10.0
    assert max(slept) == PAUSE_MAX_S


@pytest.mark.parametrize("number", [errno.ENOENT, errno.EMFILE])
def test_what_does_not_pass_by_itself_is_raised_at_once(slept: list[float], number: int) -> None:
    with pytest.raises(OSError, match=os.strerror(number)):
        wait_for_room(failing(1, of_system(number)), "another process")
    assert slept == []


def test_thread_that_could_not_be_started_is_when_there_is_room(
    slept: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    ran = threading.Event()
    thread = threading.Thread(target=ran.set)
    starts = [NO_THREAD, NO_THREAD]
    name = "_start_joinable_thread" if sys.version_info >= (3, 13) else "_start_new_thread"
    start = getattr(threading, name)

    def start_new(*arguments: object, **more: object) -> object:
        if starts:
            raise RuntimeError(starts.pop())
        return start(*arguments, **more)

    monkeypatch.setattr(threading, name, start_new)
    assert not try_to_start(thread)
    start_thread(thread)
    assert ran.wait(10.0)
    thread.join()
