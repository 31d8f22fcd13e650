"""What a review has found once: broken outputs, held-up results, wrong blame, odd but lawful programs."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from tests.e2e.harness import DEADLINE_S, MARK, Cluster, eventually, written
from tests.processes import stat


@pytest.fixture(autouse=True)
def recorded(cluster: Cluster) -> None:
    """Every run here is replayed in the end, see `Cluster.replay`."""
    cluster.recorded = True


def test_a_closed_pipe_behind_stdout_costs_no_scheduler_its_life(cluster: Cluster) -> None:
    program = cluster.write(
        """
        import hdphrs, sys
        def shout(n):
            try: sys.stdout.write("x" * 100)
            except OSError: pass
            return n
        print("sum", sum(hdphrs.get(f) for f in [hdphrs.spawn(shout, n) for n in range(500)]), file=sys.stderr)
        """
    )
    env = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"} | {MARK: cluster.mark}
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-m", "hdphrs", "run", str(program)]
    completed = subprocess.run(
        command, stdout=writer, stderr=subprocess.PIPE, text=True, timeout=DEADLINE_S, env=env, check=False
    )
    os.close(writer)
    assert "sum 124750" in completed.stderr
    assert "is replaced" not in completed.stderr


@pytest.mark.skipif(sys.platform != "linux", reason="looks for sockets in /proc")
def test_what_a_node_has_to_say_of_a_stranger_it_says_once(cluster: Cluster) -> None:
    program = cluster.write(
        """
        import hdphrs, sys
        print(len(hdphrs.all_nodes()), flush=True)
        sys.stdin.read()
        """
    )
    process = cluster.start("--local-nodes", 3, "--cores", 1, program)
    assert process.stdout is not None
    assert process.stdout.readline() == "3\n"
    for name in listening(cluster.nodes()):
        with socket.socket(socket.AF_UNIX) as stranger:
            stranger.connect("\0" + name)
            stranger.sendall(b"GET / HTTP/1.1\r\n\r\n")
            with suppress(ConnectionResetError):
                assert stranger.recv(1) == b""
    completed = cluster.finish()
    line = f"hdphrs: process {os.getpid()} of this host: not an hdphrs peer: it does not begin with our greeting"
    assert completed.stderr == f"{line}; connection closed\n" * 3


def listening(processes: list[int]) -> set[str]:
    """The abstract names of the sockets of these."""
    held = set()
    for process in processes:
        for descriptor in Path(f"/proc/{process}/fd").iterdir():
            with suppress(OSError):
                held.add(os.readlink(descriptor))
    rows = [row.split() for row in Path("/proc/net/unix").read_text().splitlines()]
    return {row[7][1:] for row in rows if len(row) == 8 and f"socket:[{row[6]}]" in held and "@hdphrs-" in row[7]}


def test_fresh_tasks_are_not_stuck_behind_a_resumed_long_one(cluster: Cluster) -> None:
    program = cluster.write(
        """
        import hdphrs, sys, time
        from pathlib import Path
        resumed, go = Path(sys.argv[1], "resumed"), Path(sys.argv[1], "go")
        def child(): time.sleep(0.2)
        def parent():
            future = hdphrs.spawn(child)
            time.sleep(0.05)
            hdphrs.get(future)
            resumed.touch()
            while not go.exists(): time.sleep(0.01)
        def quick(): time.sleep(0.01)
        long = hdphrs.spawn(parent)
        while not resumed.exists(): time.sleep(0.01)
        [f.get(timeout=60) for f in [hdphrs.spawn(quick) for _ in range(8)]]
        go.touch()
        hdphrs.get(long)
        print("not stuck")
        """
    )
    assert cluster.run("--cores", 2, program, cluster.folder).stdout == "not stuck\n"


def test_a_finished_result_does_not_wait_for_the_next_task_of_its_worker(cluster: Cluster) -> None:
    program = cluster.write(
        """
        import hdphrs, sys, time
        from pathlib import Path
        def nap(go):
            while go and not Path(go).exists(): time.sleep(0.01)
        for _ in range(3): [hdphrs.get(f) for f in [hdphrs.spawn(nap, "") for _ in range(50)]]
        futures = [hdphrs.spawn(nap, go) for go in ("", "", "", sys.argv[1])]
        [f.get(timeout=60) for f in futures[:3]]
        Path(sys.argv[1]).touch()
        hdphrs.get(futures[3])
        print("has not waited")
        """
    )
    assert cluster.run("--cores", 1, program, cluster.folder / "go").stdout == "has not waited\n"


def test_a_task_that_waits_is_not_blamed_for_the_death_of_its_scheduler(cluster: Cluster) -> None:
    program = cluster.write(
        """
        import hdphrs, os, sys, time
        def child(path):
            hdphrs.get(hdphrs.spawn_at(0, abs, -1))  # the only scheduler there has set main aside to run it
            with open(path, "a") as file: file.write(f"{os.getppid()}\\n")
            while not os.path.exists(path + ".go"): time.sleep(0.01)
        def main(path):
            hdphrs.get(hdphrs.spawn_at(1, child, path))
            return "done"
        print("begun", flush=True)
        print(hdphrs.run(main, sys.argv[1]))
        """
    )
    path = cluster.folder / "started"
    process = cluster.start("--local-nodes", 2, "--cores", 1, "--attempts", 1, program, path)
    assert process.stdout is not None
    assert process.stdout.readline() == "begun\n"
    other = int(eventually(lambda: written(path), DEADLINE_S, "the child")[0])
    [mine] = [pid for pid in cluster.schedulers() if int(stat(pid)[1]) != other]
    os.kill(mine, signal.SIGKILL)
    path.with_name("started.go").touch()
    completed = cluster.finish()
    assert completed.stdout == "done\n", completed.stderr
    assert "while it ran no task" in completed.stderr


def test_a_launcher_that_dies_while_nodes_are_missing_takes_them_along(cluster: Cluster) -> None:
    hosts = cluster.folder / "hosts.txt"
    hosts.write_text("localhost\nlocalhost\nfar.example\n")
    program = cluster.write("print('never')\n")
    silent_ssh = cluster.folder / "ssh"
    silent_ssh.write_text("#!/bin/sh\nexec sleep 60\n")
    silent_ssh.chmod(0o755)
    process = cluster.start("--nodes", hosts, "--ssh", silent_ssh, program)
    eventually(lambda: len(cluster.nodes()) >= 2, DEADLINE_S, "two nodes")
    os.kill(process.pid, signal.SIGKILL)
    eventually(lambda: not cluster.processes(), 4, "the end of nodes and schedulers, and of what stands in for ssh")


@pytest.mark.parametrize("case", ["fork", "late", "pickling"])
def test_odd_calls_end_with_an_error_or_a_value_and_never_hang(cluster: Cluster, case: str) -> None:
    program = cluster.write(
        """
        import atexit, hdphrs, os, sys
        def square(n): return n * n
        class Lazy:
            def __init__(self, future): self.future = future
            def __reduce__(self): return int, (hdphrs.get(self.future),)
        def late():
            try: hdphrs.spawn(square, 3)
            except hdphrs.HdphrsError as error: print(error)
        match sys.argv[1]:
            case "fork":
                future = hdphrs.spawn(square, 3)
                if os.fork() == 0:
                    try: hdphrs.get(future)
                    except hdphrs.HdphrsError as error: print("refused", flush=True)
                    os._exit(0)
                os.wait()
                print(hdphrs.get(future))
            case "late":
                atexit.register(late)
                print(hdphrs.get(hdphrs.spawn(square, 3)), flush=True)
            case "pickling":
                print(hdphrs.get(hdphrs.spawn(square, Lazy(hdphrs.spawn(square, 2)))))
        """
    )
    expected = {
        "fork": "refused\n9\n",
        "late": "9\nspawn: the program has ended, and its node with it\n",
        "pickling": "16\n",
    }
    assert cluster.run(program, case, python=True).stdout == expected[case]
