"""What a scheduler notices of what a task has done to the descriptors of its links."""

from __future__ import annotations

import errno
import os
import signal
import socket
from collections.abc import Iterator

import pytest

from hdphrs.room import NO_ROOM_STATUS
from hdphrs.scheduler import end
from hdphrs.scheduler.links import Links
from hdphrs.wire.page import LINE_BYTES, Line
from hdphrs.wire.settings import LINKS_LOST_STATUS


class Ended(BaseException):
    """The process has, with this status."""


@pytest.fixture(autouse=True)
def ends(monkeypatch: pytest.MonkeyPatch) -> None:
    def leave(status: int) -> None:
        raise Ended(status)

    monkeypatch.setattr(os, "_exit", leave)


@pytest.fixture
def line() -> Line:
    return Line(memoryview(bytearray(LINE_BYTES)))


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        yield ours, theirs


def test_open_links_are_no_reason_to_end_even_if_the_node_is_gone(
    line: Line, pair: tuple[socket.socket, socket.socket]
) -> None:
    links = Links(line)
    links.guard(*(end.fileno() for end in pair))
    links.check()
    pair[1].close()
    links = Links(line)
    links.guard(pair[0].fileno())
    links.check()  # that is noticed where it is read


@pytest.mark.parametrize(("running", "charged"), [(7, 7), (0, 5)])
def test_closed_link_ends_the_process_and_charges_what_runs_or_ran_last(line: Line, running: int, charged: int) -> None:
    links = Links(line)
    links.last = 5
    line.run(running, careful=False, again=False)
    descriptor = os.open(os.devnull, os.O_RDONLY)
    links.guard(descriptor)
    os.close(descriptor)
    with pytest.raises(Ended) as ended:
        links.check()
    assert (ended.value.args, line.running) == ((LINKS_LOST_STATUS,), charged)


def test_copy_of_the_process_ends_quietly_and_leaves_the_line_alone(
    line: Line, monkeypatch: pytest.MonkeyPatch
) -> None:
    links = Links(line)
    links.last = 5
    monkeypatch.setattr(os, "getpid", lambda: 1)
    assert not links.are_ours
    for leave in (links.check, links.lost):
        with pytest.raises(Ended) as ended:
            leave()
        assert (ended.value.args, line.running) == ((0,), 0)


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (ConnectionResetError(), 0),
        (OSError(errno.EBADF, "closed"), LINKS_LOST_STATUS),
        (OSError(errno.ENOTSOCK, "a file"), LINKS_LOST_STATUS),
        (OSError(errno.EMFILE, "too many"), NO_ROOM_STATUS),
        (MemoryError(), NO_ROOM_STATUS),
        (AssertionError("a mistake"), end.INTERNAL_ERROR_STATUS),
    ],
)
def test_error_of_a_loop_ends_the_process_with_a_status_that_says_why(
    line: Line, error: BaseException, status: int, capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(Ended) as ended:
        Links(line).fail(error)
    assert ended.value.args == (status,)
    said = capfd.readouterr().err
    assert said.endswith("by a mistake of hdphrs (AssertionError); please report it, with the lines above\n") is (
        status == end.INTERNAL_ERROR_STATUS
    )


def test_ctrl_c_in_a_loop_of_ours_is_a_death_by_that_signal(line: Line, monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[object] = []
    monkeypatch.setattr(os, "kill", lambda *what: sent.append(what))
    before = signal.getsignal(signal.SIGINT)
    try:
        with pytest.raises(Ended):
            Links(line).fail(KeyboardInterrupt())
    finally:
        signal.signal(signal.SIGINT, before)
    assert sent == [(os.getpid(), signal.SIGINT)]
