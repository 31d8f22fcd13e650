"""Nodes that the root forks (decision 35): they are to everybody what nodes of their own would be."""

from __future__ import annotations

import os
import re
import signal
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

import pytest

from hdphrs.cluster.forked import ForkedNode, can_be_forked
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

WAITING = "print('up'); input()"


def members(run: Run, count: int) -> list[int]:
    """The nodes beside the root, when so many are there; a scheduler that has just been forked still looks like one."""
    launcher = str(run.process.pid)

    def found() -> list[int]:
        lines = run.processes()
        return [
            pid for pid in run.named("hdphrs.node") if "member" in lines.get(pid, "") and launcher in stat(pid)[1:2]
        ]

    assert wait_until(lambda: len(found()) == count)
    return found()


def open_files(pid: int) -> set[str]:
    found = set()
    for entry in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(FileNotFoundError):
            found.add(os.readlink(entry))
    return found


def test_who_is_forked() -> None:
    remote = NodePlan("elsewhere", 1)
    asked = [(LOCAL, LOCAL), (OTHER_PYTHON, LOCAL), (LOCAL, OTHER_PYTHON), (remote, LOCAL)]
    assert [can_be_forked(plan, root) for plan, root in asked] == [True, False, False, False]


def test_forked_nodes_are_children_of_the_launcher_and_lead_sessions(start: Start, tmp_path: Path) -> None:
    run = start("run", "--local-nodes", 3, "--cores", 1, write_program(tmp_path, WAITING))
    assert run.read_line() == "up"
    run.assert_all_there(8)
    two = members(run, 2)
    (root,) = set(run.named("hdphrs.node")) - set(two)
    assert stat(root)[PARENT] == str(run.process.pid)
    assert [stat(pid)[SESSION] for pid in two] == [str(pid) for pid in two]
    leashes = {os.readlink(f"/proc/{pid}/fd/0") for pid in two}
    assert len(leashes) == 2
    assert not leashes & open_files(root)
    for stream in (1, 2):
        ours = os.readlink(f"/proc/{run.process.pid}/fd/{stream}")
        assert [os.readlink(f"/proc/{pid}/fd/{stream}") for pid in two] == [ours] * 2
    assert run.finish(b"\n") == (0, "", "")


def test_how_a_forked_node_died_is_said(start: Start, tmp_path: Path) -> None:
    run = start("run", "-v", "--local-nodes", 3, "--cores", 1, write_program(tmp_path, WAITING))
    assert run.read_line() == "up"
    victim = members(run, 2)[1]
    os.kill(victim, signal.SIGKILL)
    told = f"hdphrs: node on localhost (pid {victim}) died (killed by SIGKILL)"
    said: list[str] = []
    while (line := run.read_error()) != told:
        assert line, said
        said.append(line)
    assert said[1:3] == ["hdphrs: started node on localhost (forked by the root node), 1 schedulers"] * 2
    assert run.finish(b"\n")[0] == 0


def test_forked_nodes_end_with_a_launcher_that_is_killed(start: Start, tmp_path: Path) -> None:
    run = start("run", "--local-nodes", 3, "--cores", 1, write_program(tmp_path, WAITING))
    assert run.read_line() == "up"
    run.process.kill()
    run.assert_nothing_left()


def test_forked_node_that_does_not_end_is_ended(start: Start, tmp_path: Path) -> None:
    run = start("run", "--local-nodes", 2, "--cores", 1, write_program(tmp_path, WAITING))
    assert run.read_line() == "up"
    os.kill(members(run, 1)[0], signal.SIGSTOP)
    assert run.finish(b"\n")[0] == 0
    run.assert_nothing_left()


def test_launcher_that_is_told_to_end_before_the_nodes_are_forked_leaves_none(start: Start, tmp_path: Path) -> None:
    run = start("run", "--local-nodes", 3, "--cores", 1, write_program(tmp_path, WAITING))
    assert wait_until(lambda: run.named("hdphrs.node"))
    run.process.terminate()
    status, _, errors = run.finish()
    assert (status, "Traceback" in errors) == (-signal.SIGTERM, False)
    run.assert_nothing_left()


def test_root_that_dies_while_it_starts_is_what_is_told(start: Start, tmp_path: Path) -> None:
    run = start("run", "--local-nodes", 3, "--cores", 1, write_program(tmp_path, WAITING))
    assert wait_until(lambda: run.named("hdphrs.node"))
    os.kill(run.named("hdphrs.node")[0], signal.SIGKILL)
    status, output, errors = run.finish()
    assert (status, output) == (1, "")
    assert re.fullmatch(r"hdphrs: the root node on localhost \(pid [0-9]+\) ended .*\(killed by SIGKILL\)\n", errors)
    run.assert_nothing_left()


Leashed = tuple[ForkedNode, BinaryIO]


@pytest.fixture
def leashed() -> Iterator[Leashed]:
    reading, writing = os.pipe()
    with open(reading, "rb", buffering=0) as leash:
        node = ForkedNode(LOCAL, SETTINGS, writing)
        yield node, leash
        node.destroy()


def test_settings_are_on_the_leash_which_ends_with_its_release(leashed: Leashed) -> None:
    node, leash = leashed
    assert read_settings(leash) == SETTINGS
    node.release()
    assert leash.read() == b""


def test_node_that_was_never_forked_is_not_there(leashed: Leashed) -> None:
    node, _ = leashed
    assert (node.poll(), node.kill(), node.label) == (None, False, "node on localhost (forked by the root node)")
    node.destroy()
    node.destroy()
    assert node.returncode is None


@pytest.mark.parametrize("leads", [True, False])
def test_forked_node_is_killed_and_reaped(leashed: Leashed, leads: bool) -> None:
    node, _ = leashed
    pid = os.fork()
    if pid == 0:
        if leads:
            os.setsid()
        signal.pause()
    node.begin(pid)
    assert (node.poll(), node.label) == (None, f"node on localhost (pid {pid})")
    if leads:
        assert node.kill()
        assert wait_until(lambda: node.poll() is not None)
    node.destroy()
    assert (node.returncode, node.kill()) == (-signal.SIGKILL, False)
    assert node.why_not_started() == f"the node on localhost (pid {pid}) ended during start-up (killed by SIGKILL)"
    assert gone(pid)
