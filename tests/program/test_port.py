"""A program that finds no room for its threads."""

from __future__ import annotations

import socket
from typing import NoReturn

import pytest

from hdphrs import room
from hdphrs.errors import StartError
from hdphrs.program.port import ProgramPort
from hdphrs.wire import local


def test_program_that_cannot_start_its_first_thread_for_a_while_says_so_in_one_line(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def refuse(thread: room.OwnThread) -> NoReturn:
        raise RuntimeError("can't start new thread")

    slept: list[float] = []
    monkeypatch.setattr(room, "sleep", slept.append)
    monkeypatch.setattr(room, "monotonic", lambda: sum(slept))
    monkeypatch.setattr(room.OwnThread, "start", refuse)
    ours, theirs = socket.socketpair()
    with ours, theirs:
        port = ProgramPort(local.Link(ours), describe_loss=lambda: "it is gone")
        with pytest.raises(StartError, match="the program cannot start the threads that it needs: can't"):
            port.start()
    assert len(slept) > 1
    said = "hdphrs: no room for another thread on this host (can't start new thread); trying again\n"
    assert capfd.readouterr().err == said
