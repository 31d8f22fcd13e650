"""The nodes of hosts to which the connection was lost are started again."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from hdphrs.cluster.nodes import Node, RemoteNode
from hdphrs.cluster.returns import Returns
from hdphrs.config import REJOIN_PAUSE_MAX_S
from hdphrs.errors import StartError
from tests.cluster.stand_ins import interpreter
from tests.cluster.support import Start, wait_until, write_executable, write_program


class Away(RemoteNode):
    """A node on another host, without any process."""

    def __init__(self, status: int | None = 255, *, was_killed: bool = False) -> None:
        self.host = "anna"
        self.is_back = False
        self._was_killed = was_killed
        self.status = status

    @property
    def returncode(self) -> int | None:
        return self.status

    def why_not_started(self) -> str:
        return "cannot reach anna with ssh: no route to host"


class World:
    """A clock that a test moves, one node, and what is said."""

    def __init__(self, node: Away, within_s: float = 60.0) -> None:
        self.nodes: list[Node] = [node]
        self.now_s = 1000.0
        self.begun_s: list[float] = []
        self.said: list[str] = []
        self.refuses = False
        self.returns = Returns(within_s, self.begin, self.said.append, now=lambda: self.now_s, chance=lambda: 1.0)

    def begin(self, place: int) -> RemoteNode:
        self.begun_s.append(self.now_s)
        if self.refuses:
            raise StartError("cannot start ssh to reach anna: gone")
        node = self.nodes[place] = Away(None)
        return node

    @property
    def node(self) -> Away:
        (node,) = self.nodes
        assert isinstance(node, Away)
        return node

    def fail(self) -> None:
        """The attempt under way fails, and the time for the next one comes."""
        self.node.status = 255
        self.returns.look(self.nodes)
        self.now_s += self.returns.wait_s or 0.0
        self.returns.look(self.nodes)


def test_lost_host_is_tried_with_growing_pauses_until_its_node_is_back() -> None:
    world = World(Away())
    world.returns.look(world.nodes)
    for _ in range(8):
        world.fail()
    pauses = [later - earlier for earlier, later in zip(world.begun_s, world.begun_s[1:], strict=False)]
    assert pauses == pytest.approx([0.1, 0.2, 0.4, 0.8, 1.6, 3.2, REJOIN_PAUSE_MAX_S, REJOIN_PAUSE_MAX_S])
    world.node.is_back = True
    world.returns.look(world.nodes)
    assert world.returns.wait_s is None
    assert world.said == ["the connection to anna is lost; its node is started again, for at most 60 s"]
    world.fail()
    assert len(world.said) == 2  # a new loss, with a time of its own


@pytest.mark.parametrize("refuses", [False, True])
def test_host_that_stays_away_is_given_up_and_why_is_said(refuses: bool) -> None:
    world = World(Away(), within_s=2.0)
    world.refuses = refuses
    world.returns.look(world.nodes)
    for _ in range(10):
        world.fail()
    assert world.said[1].endswith("; given up after 2 s")
    assert world.now_s == pytest.approx(1002.0)
    world.returns.look(world.nodes)
    assert len(world.said) == 2
    assert world.returns.wait_s is None


@pytest.mark.parametrize(
    ("node", "within_s"),
    [(Away(0), 60.0), (Away(1), 60.0), (Away(-9), 60.0), (Away(255, was_killed=True), 60.0), (Away(255), 0.0)],
    ids=["left", "ended", "ssh killed", "chaos", "not at all"],
)
def test_node_that_has_ended_otherwise_is_not_started_again(node: Away, within_s: float) -> None:
    world = World(node, within_s)
    world.returns.look(world.nodes)
    assert not world.begun_s
    assert not world.said
    assert world.returns.wait_s is None


SSH = """#!/bin/sh
# Runs commands here; fails as OpenSSH does when there is no way to the host, or none any more.
[ -e {folder}/down ] && {{ echo "ssh: no route to host" >&2; exit 255; }}
exec 3<&0
sh -c "$2" <&3 3<&- &
echo $! >> {folder}/remote
wait $!
status=$?
[ $status -gt 128 ] && exit 255
exit $status
"""

PROGRAM = """
import time
import hdphrs

def square(n):
    return n * n

if __name__ == "__main__":
    print(hdphrs.all_nodes(), flush=True)
    while 2 not in hdphrs.all_nodes():
        time.sleep(0.02)
    print(hdphrs.get(hdphrs.spawn_at(2, square, 3)), flush=True)
    input()
"""


@pytest.mark.slow
def test_node_whose_ssh_breaks_is_started_again_when_the_host_can_be_reached(start: Start, tmp_path: Path) -> None:
    ssh = write_executable(tmp_path / "way", SSH.format(folder=tmp_path))
    hosts = tmp_path / "hosts"
    hosts.write_text(f"localhost slots=1\n127.0.0.1 slots=1 python={interpreter(tmp_path, 'python')}\n")
    run = start("run", "--ssh", ssh, "--nodes", hosts, write_program(tmp_path, PROGRAM))
    assert run.read_line() == "[0, 1]"
    (tmp_path / "down").touch()
    os.kill(int((tmp_path / "remote").read_text()), signal.SIGKILL)
    said = iter(run.read_error, "")
    lost = next(line for line in said if "lost; its" in line)
    assert lost == ("hdphrs: the connection to 127.0.0.1 is lost; its node is started again, for at most 600 s")
    (tmp_path / "down").unlink()
    back = next(line for line in said if "joined" in line)
    assert back == "[127.0.0.1] hdphrs: this node (127.0.0.1) has joined again, as node 2"
    assert run.read_line() == "9"
    assert wait_until(lambda: len((tmp_path / "remote").read_text().split()) == 2)
    status, _, _ = run.finish(b"\n")
    assert status == 0
