"""A node that is told to leave goes in peace: nothing is lost that it had time to finish, and nobody is blamed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from typing import Any

import pytest

from tests.e2e.harness import DEADLINE_S, SOON_S, Cluster, eventually, written
from tests.processes import gone, send

FLAT = """
    import os
    import sys
    import time
    import hdphrs

    PROGRAM, COUNT = sys.argv

    def leaf(number):
        with open(PROGRAM + ".where", "a") as log:
            log.write(f"{os.getppid()}\\n")
        with open(PROGRAM + ".log", "a") as log:
            log.write(f"{number}\\n")
        while not os.path.exists(PROGRAM + ".go"):
            time.sleep(0.005)
        time.sleep(0.02)
        with open(PROGRAM + ".done", "a") as log:
            log.write(f"{number}\\n")
        return number

    if __name__ == "__main__":
        total = sum(hdphrs.get(future) for future in [hdphrs.spawn(leaf, n) for n in range(int(COUNT))])
        sys.stdin.read()
        print(total)
"""
"""Its first tasks go on when the test says so, and the run until the test waits for its end."""
REPORT = "report.json"


def start(cluster: Cluster, count: int, *options: object) -> subprocess.Popen[str]:
    """Three nodes with one scheduler each; returns when each is in the midst of a task."""
    program = cluster.write(FLAT)
    report = cluster.folder / REPORT
    process = cluster.start("--local-nodes", 3, "--cores", 1, "--report", report, *options, program, count)
    eventually(lambda: len({*lines(cluster, "where")}) == 3, DEADLINE_S, "tasks run on all nodes")
    return process


def go_on(cluster: Cluster) -> None:
    """Tasks end from now on."""
    (cluster.folder / "prog.py.go").touch()


def lines(cluster: Cluster, kind: str) -> list[str]:
    return written(cluster.folder / f"prog.py.{kind}")


def nodes(cluster: Cluster) -> list[dict[str, Any]]:
    """What the report says of each."""
    told: list[dict[str, Any]] = json.loads((cluster.folder / REPORT).read_text())["nodes"]
    return told


def check(cluster: Cluster, count: int) -> subprocess.CompletedProcess[str]:
    """The result is right, and nobody crashed."""
    completed = cluster.finish()
    assert (completed.returncode, completed.stdout) == (0, f"{sum(range(count))}\n"), completed.stderr
    assert sum(node["crashes"] for node in nodes(cluster)) == 0
    return completed


@pytest.mark.parametrize("whole_group", [False, True], ids=["node", "node and schedulers"])
def test_node_that_gets_sigterm_leaves_within_its_time_and_nothing_is_run_twice(
    cluster: Cluster, whole_group: bool
) -> None:
    """A host that goes down sends SIGTERM to all of its processes."""
    start(cluster, 300)
    leaver = cluster.nodes()[1]
    (os.killpg if whole_group else os.kill)(leaver, signal.SIGTERM)
    go_on(cluster)
    eventually(lambda: gone(leaver), 5, "the end of the node that leaves")
    completed = check(cluster, 300)
    (line,) = completed.stderr.splitlines()
    assert line.startswith("hdphrs: node ")
    assert line.endswith(f" on localhost (process {leaver}) has left")
    assert max(Counter(lines(cluster, "log")).values()) == 1
    assert [node["left"] for node in nodes(cluster)].count(True) == 1
    assert not any(node["died"] for node in nodes(cluster))
    assert sum(node["replicas"] for node in nodes(cluster)) == 0


def test_what_still_runs_when_the_time_is_over_is_run_again_elsewhere(cluster: Cluster) -> None:
    start(cluster, 6, "--grace", 0.1)
    leaver = cluster.nodes()[1]
    os.kill(leaver, signal.SIGTERM)
    eventually(lambda: gone(leaver), 5, "the end of the node that leaves")
    go_on(cluster)
    completed = check(cluster, 6)
    assert "has left; 1 task runs again from here" in completed.stderr
    assert sum(count - 1 for count in Counter(lines(cluster, "log")).values()) == 1
    assert sum(count - 1 for count in Counter(lines(cluster, "done")).values()) == 0


def test_second_sigterm_ends_a_node_at_once(cluster: Cluster) -> None:
    start(cluster, 6)
    leaver = cluster.nodes()[1]
    os.kill(leaver, signal.SIGTERM)
    eventually(lambda: _told_again(leaver), 5, "the end of the node")
    go_on(cluster)
    completed = check(cluster, 6)
    assert "ends: it was told to, by SIGTERM" in completed.stderr
    assert [bool(node["died"]) for node in nodes(cluster)].count(True) == 1


def _told_again(pid: int) -> bool:
    """Whether it is gone; another SIGTERM if not, for a busy node takes two that come at once for one."""
    return gone(pid) or not send(pid, signal.SIGTERM)


def test_one_leaves_while_another_dies(cluster: Cluster) -> None:
    cluster.recorded = True
    start(cluster, 100)
    _, leaver, victim = cluster.nodes()
    os.kill(leaver, signal.SIGTERM)
    os.kill(victim, signal.SIGKILL)
    go_on(cluster)
    completed = check(cluster, 100)
    assert f"(process {leaver}) has left" in completed.stderr
    assert f"(process {victim}) has died" in completed.stderr


def test_drain_returns_when_the_node_is_gone_and_a_root_cannot_be_drained(cluster: Cluster) -> None:
    start(cluster, 100)
    root, leaver, _ = cluster.nodes()
    go_on(cluster)

    def drain(target: str) -> tuple[int, str]:
        done = subprocess.run(
            [sys.executable, "-m", "hdphrs", "drain", target], capture_output=True, text=True, check=False
        )
        assert done.stdout == ""
        return done.returncode, done.stderr

    assert drain(f"localhost:{leaver}") == (
        0,
        f"hdphrs: told node process {leaver} to leave\nhdphrs: node process {leaver} is gone\n",
    )
    assert gone(leaver)
    assert drain(f"localhost:{leaver}") == (2, f"hdphrs: process {leaver} is no node of yours\n")
    assert drain(f"localhost:{root}") == (
        2,
        f"hdphrs: process {root} is the root node of its run, which cannot leave\n",
    )
    check(cluster, 100)


def test_root_that_gets_sigterm_ends_the_run_with_one_line(cluster: Cluster) -> None:
    start(cluster, 100)
    root = cluster.nodes()[0]
    os.kill(root, signal.SIGTERM)
    completed = cluster.finish(SOON_S)
    assert (completed.returncode, completed.stdout) == (1, "")
    said = f"hdphrs: the root node on localhost (pid {root}) was told to end; the program cannot go on\n"
    assert completed.stderr == said
