"""Schedulers are killed from outside, all of them, again and again: that costs the lost work and nothing else."""

from __future__ import annotations

import os
import signal
from functools import partial
from pathlib import Path
from time import sleep

import pytest

from hdphrs.config import CoreConfig
from tests.e2e.all_killed import run
from tests.e2e.harness import SOON_S, Cluster, eventually
from tests.processes import send

LARGE_BYTES = 300_000
ANSWER_BYTES = 200_000


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1])
def test_run_whose_schedulers_are_all_killed_once_a_second_gives_the_right_answer(cluster: Cluster, seed: int) -> None:
    """`python -m tests.e2e.all_killed` does the same for longer."""
    told = run(cluster, seed, 10.0)
    assert told.is_good, told.errors
    assert told.kills >= 10
    assert "Traceback" not in told.errors


@pytest.mark.slow
def test_kills_as_fast_as_they_can_come_make_a_run_slow_and_do_not_end_it(cluster: Cluster) -> None:
    """Two within 0.15 s, before the second schedulers were ready, ended a node of three cores."""
    program = cluster.write(
        """
        import sys
        import hdphrs

        def add(n):
            return n + 1

        if __name__ == "__main__":
            print("begun", flush=True)
            input()
            print(sum(hdphrs.get(one) for one in [hdphrs.spawn(add, n) for n in range(1000)]))
        """
    )
    process = cluster.start("--cores", 3, program)
    assert process.stdout is not None
    assert process.stdin is not None
    assert process.stdout.readline() == "begun\n"
    killed: set[int] = set()
    while len(killed) < 40 and process.poll() is None:
        killed |= {pid for pid in cluster.schedulers() if send(pid, signal.SIGKILL)}
    assert process.poll() is None, "the kills have ended it"
    process.stdin.write("\n")
    process.stdin.flush()
    completed = cluster.finish()
    assert (completed.returncode, completed.stdout) == (0, "500500\n"), completed.stderr
    assert "it is replaced in " in completed.stderr


@pytest.mark.slow
def test_place_where_no_scheduler_can_be_started_ends_the_run_with_the_reason(cluster: Cluster) -> None:
    """The first of them are forked, so they can be killed; new ones find that Python is broken."""
    broken = cluster.folder / "broken"
    broken.mkdir()
    (broken / "sitecustomize.py").write_text(
        "import sys\nif any(word.startswith('hdphrs.scheduler') for word in sys.orig_argv):\n"
        "    print('this Python is broken', file=sys.stderr, flush=True)\n    import os\n    os._exit(9)\n"
    )
    program = cluster.write(
        """
        import time
        import hdphrs
        print("begun", flush=True)
        hdphrs.get(hdphrs.spawn(time.sleep, 600))
        """
    )
    before = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(broken), before]))
    try:
        process = cluster.start("--cores", 1, program)
    finally:
        os.environ.pop("PYTHONPATH")
        if before is not None:
            os.environ["PYTHONPATH"] = before
    assert process.stdout is not None
    assert process.stdout.readline() == "begun\n"
    os.kill(cluster.schedulers()[0], signal.SIGKILL)
    completed = cluster.finish(SOON_S)
    assert completed.returncode != 0
    assert (
        "hdphrs: scheduler 0 on localhost could not be started 5 times one after the other; the last one exited with "
        "status 9: this Python is broken\n" in completed.stderr
    )
    assert "Traceback" not in completed.stderr


def _descriptors(pid: int) -> int:
    return len(os.listdir(f"/proc/{pid}/fd"))


@pytest.mark.slow
def test_node_does_not_keep_the_large_payloads_of_schedulers_that_were_killed(cluster: Cluster) -> None:
    program = cluster.write(
        """
        import os
        import sys
        import time
        import hdphrs

        ANSWER = 200_000

        def large(data):
            time.sleep(0.02)
            return data[:ANSWER]

        def parent(number, size):
            return sum(len(hdphrs.get(one)) for one in [hdphrs.spawn(large, bytes(size)) for _ in range(number)])

        if __name__ == "__main__":
            print("begun", flush=True)
            while not os.path.exists(sys.argv[1]):
                for future in [hdphrs.spawn(parent, 10, int(sys.argv[2])) for _ in range(8)]:
                    assert hdphrs.get(future) == 10 * ANSWER
            print("done", flush=True)
            input()
        """
    )
    enough = cluster.folder / "enough"
    process = cluster.start("--cores", 4, program, enough, LARGE_BYTES)
    assert process.stdout is not None
    assert process.stdin is not None
    assert process.stdout.readline() == "begun\n"
    root, kills = cluster.nodes()[0], 0
    while kills < 50:
        eventually(lambda: len(cluster.schedulers()) == 4, SOON_S, "four schedulers")
        sleep(0.4)  # they are to have something
        kills += sum(send(pid, signal.SIGKILL) for pid in cluster.schedulers())
    enough.touch()
    assert process.stdout.readline() == "done\n"
    # What tasks have taken and answered is kept for a while, up to so many bytes, for the death of the next scheduler.
    retained = 2 * CoreConfig().retained_bytes_max // (LARGE_BYTES + ANSWER_BYTES)
    eventually(lambda: _descriptors(root) <= retained + 40, SOON_S, "the end of most descriptors")
    process.stdin.write("\n")
    process.stdin.flush()
    completed = cluster.finish()
    assert completed.returncode == 0, completed.stderr


@pytest.mark.slow
def test_the_kernel_takes_schedulers_before_node_and_program_for_want_of_memory(cluster: Cluster) -> None:
    program = cluster.write(
        """
        import os
        import hdphrs

        def scores(pid):
            return [int(open(f"/proc/{one}/oom_score_adj").read()) for one in (os.getpid(), os.getppid(), pid)]

        if __name__ == "__main__":
            print(*hdphrs.get(hdphrs.spawn(scores, os.getpid())))
        """
    )
    score = Path("/proc/self/oom_score_adj")
    if not score.exists():
        pytest.skip("this kernel has no such scores")
    mine = int(score.read_text())
    completed = cluster.run("--cores", 1, program)
    assert completed.stdout == f"{max(500, mine)} {mine} {mine}\n", completed.stderr


def _words(path: Path) -> list[str]:
    return path.read_text().split()


@pytest.mark.slow
def test_run_goes_on_when_there_is_room_for_processes_again(cluster: Cluster, small_group: Path) -> None:
    """All schedulers are killed, and half of the room that they leave is taken away."""
    program = cluster.write(
        """
        import time
        import hdphrs

        def add(n):
            return n + 1

        if __name__ == "__main__":
            print("begun", flush=True)
            input()
            print("going on", flush=True)
            print(sum(hdphrs.get(one) for one in [hdphrs.spawn(add, n) for n in range(1000)]))
        """
    )
    process = cluster.start("--cores", 3, program)
    assert process.stdout is not None
    assert process.stdin is not None
    assert process.stderr is not None
    assert process.stdout.readline() == "begun\n"
    for pid in cluster.processes():
        (small_group / "cgroup.procs").write_text(str(pid))
    count = int((small_group / "pids.current").read_text())
    schedulers = cluster.schedulers()
    (small_group / "pids.max").write_text(str(count - 2 * len(schedulers) + 1))
    for pid in schedulers:
        send(pid, signal.SIGKILL)
    said = ""
    while "no room for" not in said:
        line = process.stderr.readline()
        assert line, said
        said += line
    process.stdin.write("\n")
    process.stdin.flush()
    assert process.stdout.readline() == "going on\n"
    sleep(1.0)  # it is to come to nothing for a while
    (small_group / "pids.max").write_text("max")
    completed = cluster.finish()
    assert (completed.returncode, completed.stdout) == (0, "500500\n"), said + completed.stderr
    assert "Traceback" not in said + completed.stderr
    assert (said + completed.stderr).count("no room for another process on this host") == 1
    eventually(partial(_is_empty, small_group), SOON_S, "the end of all in the group")


@pytest.mark.slow
def test_task_that_takes_all_the_room_for_processes_costs_the_program_none_of_its_threads(
    cluster: Cluster, small_group: Path
) -> None:
    """What the task prints is the first that the program shows, in a thread that it has not started before."""
    program = cluster.write(
        """
        import subprocess
        import time
        import hdphrs

        def hoard():
            children = []
            try:
                while True:
                    children.append(subprocess.Popen(["sleep", "60"]))
            except OSError:
                print("full", flush=True)
                time.sleep(1)
            for child in children:
                child.kill()
                child.wait()
            return len(children) > 0

        if __name__ == "__main__":
            print("begun", flush=True)
            input()
            print(hdphrs.get(hdphrs.spawn(hoard)))
        """
    )
    process = cluster.start("--cores", 2, program)
    assert process.stdout is not None
    assert process.stdin is not None
    assert process.stdout.readline() == "begun\n"
    for pid in cluster.processes():
        (small_group / "cgroup.procs").write_text(str(pid))
    (small_group / "pids.max").write_text(str(int((small_group / "pids.current").read_text()) + 5))
    process.stdin.write("\n")
    process.stdin.flush()
    completed = cluster.finish()
    assert completed.returncode == 0, completed.stderr
    assert "full\n" in completed.stdout
    assert completed.stdout.endswith("True\n")
    assert "Traceback" not in completed.stderr


def _is_empty(group: Path) -> bool:
    return not _words(group / "cgroup.procs")
