"""A program that was interrupted while it waited for its node goes on with the same one."""

from __future__ import annotations

import signal
import socket
import threading
from collections.abc import Iterator

import pytest

from hdphrs.errors import StartError
from hdphrs.program import attach
from hdphrs.program.port import ProgramPort
from hdphrs.wire import local
from tests.program.interruption import LateError, handler
from tests.program.test_reader import DEADLINE_S, in_thread, wait_for


@pytest.fixture
def link(monkeypatch: pytest.MonkeyPatch) -> Iterator[local.Link]:
    """The node's end of the link that the program inherits, once."""
    ours, theirs = socket.socketpair()
    theirs.settimeout(DEADLINE_S)
    port = ProgramPort(local.Link(ours), describe_loss=lambda: "it is gone")
    ports = [port]
    monkeypatch.setattr(attach, "_current", None)
    monkeypatch.setattr(attach, "_runs", [])
    monkeypatch.setattr(attach, "_inherit", lambda: attach._add(ports.pop()) if ports else None)
    monkeypatch.setattr(attach, "EmbeddedNode", lambda *_: pytest.fail("it has started a node of its own"))
    node = local.Link(theirs)
    yield node
    node.close()
    port.release()


def test_attaching_that_is_interrupted_goes_on_with_the_same_node(link: local.Link) -> None:
    def strike() -> None:
        wait_for(lambda: attach._current is not None and attach._current.port._receiver.ident is not None)
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGUSR1)

    with handler():
        thread, _ = in_thread(strike)
        with pytest.raises(LateError):
            attach.attach()
        thread.join(DEADLINE_S)
    link.send([local.READY, True, False], [local.NODES, [[0, "here", 2]]])
    port = attach.attach()
    assert attach.attach() is port
    wait_for(lambda: port.cores == 2)


def test_node_that_refuses_the_program_is_not_asked_again(link: local.Link) -> None:
    link.send([local.FAILED, "no"])
    link.close()
    with pytest.raises(StartError):
        attach.attach()
    assert attach._current is None
