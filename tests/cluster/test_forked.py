"""Nodes that the root forks (decision 35): they are to everybody what nodes of their own would be."""

from __future__ import annotations

import os
import re
import signal
import socket
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from hdphrs.cluster.forked import ForkedNode, is_forked
from hdphrs.cluster.plan import NodePlan
from hdphrs.wire.settings import NodeSettings, read_settings
from tests.cluster.support import Run, Start, wait_until, write_program
from tests.processes import gone, stat

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="nodes are forked on Linux only")

LOCAL = NodePlan("localhost", 1)
OTHER_PYTHON = NodePlan("localhost", 1, python="/usr/bin/python3")
SETTINGS = NodeSettings(root=False, host="localhost", slots=1, secret=bytes(32))

PARENT, SESSION = 1, 3
"""Fields behind the name."""


def members(run: Run) -> list[int]:
    return [pid for pid in run.named("hdphrs.node") if "member" in run.processes()[pid]]


def test_who_is_forked() -> None:
    remote = NodePlan("elsewhere", 1)
    asked = [(LOCAL, LOCAL), (OTHER_PYTHON, LOCAL), (LOCAL, OTHER_PYTHON), (remote, LOCAL)]
    assert [is_forked(plan, root) for plan, root in asked] == [True, False, False, False]


def test_forked_nodes_are_children_of_the_launcher_and_lead_sessions(start: Start, tmp_path: Path) -> None:
    run = start("run", "-v", "--local-nodes", 3, "--cores", 1, write_program(tmp_path, "print('up'); input()"))
    assert run.read_line() == "up"
    run.assert_all_there(8)
    two = members(run)
    assert [stat(pid)[PARENT] for pid in two] == [str(run.process.pid)] * 2
    assert [stat(pid)[SESSION] for pid in two] == [str(pid) for pid in two]
    (root,) = set(run.named("hdphrs.node")) - set(two)
    sockets = {os.readlink(f"/proc/{pid}/fd/0") for pid in two}
    assert not sockets & {os.readlink(entry) for entry in Path(f"/proc/{root}/fd").iterdir()}, (
        "the root has let go of their leashes"
    )
    assert [os.readlink(f"/proc/{pid}/fd/1") for pid in two] == [os.readlink(f"/proc/{run.process.pid}/fd/1")] * 2
    os.kill(two[1], signal.SIGKILL)
    said = [run.read_error() for _ in range(5)]
    assert said[1:3] == ["hdphrs: started node on localhost (forked by the root node), 1 schedulers"] * 2
    assert said[4] == f"hdphrs: node on localhost (pid {two[1]}) died (killed by SIGKILL)"
    assert run.finish(b"\n")[0] == 0


def test_forked_nodes_end_with_a_launcher_that_is_killed(start: Start, tmp_path: Path) -> None:
    run = start("run", "--local-nodes", 3, "--cores", 1, write_program(tmp_path, "print('up'); input()"))
    assert run.read_line() == "up"
    run.process.kill()
    run.assert_nothing_left()


def test_forked_node_that_does_not_end_is_ended(start: Start, tmp_path: Path) -> None:
    run = start("run", "--local-nodes", 2, "--cores", 1, write_program(tmp_path, "print('up'); input()"))
    assert run.read_line() == "up"
    (member,) = members(run)
    os.kill(member, signal.SIGSTOP)
    assert run.finish(b"\n")[0] == 0
    run.assert_nothing_left()


def test_root_that_dies_before_it_forks_is_what_is_told(start: Start, tmp_path: Path) -> None:
    run = start("run", "--local-nodes", 3, "--cores", 1, write_program(tmp_path, "print('up')"))
    assert wait_until(lambda: run.named("hdphrs.node"))
    os.kill(run.named("hdphrs.node")[0], signal.SIGKILL)
    status, output, errors = run.finish()
    assert (status, output) == (1, "")
    assert re.fullmatch(r"hdphrs: the root node on localhost \(pid [0-9]+\) ended .*\(killed by SIGKILL\)\n", errors)


@pytest.fixture
def leash() -> Iterator[tuple[ForkedNode, socket.socket]]:
    ours, theirs = socket.socketpair()
    with theirs:
        node = ForkedNode(LOCAL, SETTINGS, ours)
        yield node, theirs
        node.destroy()


def test_settings_are_on_the_leash(leash: tuple[ForkedNode, socket.socket]) -> None:
    with open(leash[1].fileno(), "rb", buffering=0, closefd=False) as stream:
        assert read_settings(stream) == SETTINGS


def test_node_that_was_never_forked_is_not_there(leash: tuple[ForkedNode, socket.socket]) -> None:
    node, theirs = leash
    assert (node.poll(), node.kill()) == (None, False)
    theirs.close()  # with settings unread
    assert (node.poll(), node.kill(), node.label) == (None, False, "node on localhost (forked by the root node)")
    node.destroy()
    node.destroy()
    assert node.returncode is None


def test_node_says_who_it_is_and_is_reaped(leash: tuple[ForkedNode, socket.socket]) -> None:
    node, theirs = leash
    pid = os.fork()
    if pid == 0:
        signal.pause()
    theirs.send(str(pid).encode())
    assert (node.poll(), node.label) == (None, f"node on localhost (pid {pid})")
    assert node.kill()
    assert wait_until(lambda: node.poll() is not None)
    assert (node.returncode, node.kill()) == (-signal.SIGKILL, False)
    assert node.why_not_started() == f"the node on localhost (pid {pid}) ended during start-up (killed by SIGKILL)"
    assert gone(pid)


def test_node_that_is_not_ours_yet_lives(leash: tuple[ForkedNode, socket.socket]) -> None:
    node, theirs = leash
    theirs.send(str(os.getppid()).encode())
    assert (node.poll(), node.returncode) == (None, None)
    node._pid = None  # so that nobody is killed for it
