"""A run whose root node or program dies is started again, a bounded number of times; one that ends by itself is not."""

from __future__ import annotations

import os
import signal
from collections import Counter
from pathlib import Path

import pytest

from tests.e2e.harness import DEADLINE_S, HEARS_CTRL_C, SOON_S, Cluster, entries, eventually, written

WORK = """
    import os
    import sys
    import time
    import hdphrs

    PROGRAM, COUNT, HOLD = sys.argv

    def done():
        with open(PROGRAM + ".log", "a+") as log:
            log.seek(0)
            return len(log.readlines())

    def leaf(number):
        time.sleep(0.03)
        while done() >= int(HOLD) and not os.path.exists(PROGRAM + ".go"):
            time.sleep(0.01)
        with open(PROGRAM + ".log", "a") as log:
            log.write(f"{number}\\n")
        return number

    if __name__ == "__main__":
        with open(PROGRAM + ".begun", "a") as log:
            log.write("begun\\n")
        print(sum(hdphrs.get(future) for future in [hdphrs.spawn(leaf, n) for n in range(int(COUNT))]))
"""
COUNT = 60
RESULT = f"{sum(range(COUNT))}\n"

DIES = """
    import os
    import signal
    import sys
    sys.stdout.write(sys.stdin.read())
    sys.stdout.flush()
    os.kill(os.getpid(), signal.SIGKILL)
"""


def lines(cluster: Cluster, kind: str) -> list[str]:
    return written(cluster.folder / f"prog.py.{kind}")


def start(cluster: Cluster, *options: object, done: int = 10) -> None:
    """Three nodes; returns when so many tasks have ended, which the others wait for until they may go on."""
    cluster.start("--local-nodes", 3, "--cores", 1, *options, cluster.write(HEARS_CTRL_C + WORK), COUNT, done)
    eventually(lambda: len(lines(cluster, "log")) >= done, DEADLINE_S, "tasks ended")


def go_on(cluster: Cluster) -> None:
    """The rest of the tasks may end, in this run or in the next."""
    (cluster.folder / "prog.py.go").touch()


def kill(cluster: Cluster, module: str) -> int:
    pid = cluster.nodes()[0] if module == "hdphrs.node" else cluster.processes(module)[0]
    os.kill(pid, signal.SIGKILL)
    return pid


def test_root_that_is_killed_is_started_again_and_the_result_is_right(cluster: Cluster) -> None:
    start(cluster, "--restarts", "5/h")
    root = kill(cluster, "hdphrs.node")
    eventually(lambda: len(lines(cluster, "begun")) == 2, 8, "the program runs again")
    go_on(cluster)
    completed = cluster.finish()
    assert (completed.returncode, completed.stdout) == (0, RESULT)
    said = [line for line in completed.stderr.splitlines() if "lost the root node" not in line]
    assert len(said) == 1, completed.stderr
    (line,) = said
    assert line == (
        f"hdphrs: the root node on localhost (pid {root}) died (killed by SIGKILL); the run starts again "
        "(1 of at most 5 restarts in an hour), without --ledger all is computed again"
    )


def test_program_that_is_killed_is_started_again(cluster: Cluster) -> None:
    start(cluster, "--restarts", 1)
    kill(cluster, "hdphrs.program")
    go_on(cluster)
    completed = cluster.finish()
    assert (completed.returncode, completed.stdout) == (0, RESULT)
    assert "the program was killed by SIGKILL; the run starts again (1 of at most 1 restarts" in completed.stderr


def test_what_is_in_the_ledger_is_not_computed_again(cluster: Cluster) -> None:
    """What the last tenth of a second has brought may be lost with the root, beside what ran."""
    start(cluster, "--restarts", 1, "--ledger", cluster.folder / "ledger", done=40)
    eventually(lambda: entries(cluster.folder / "ledger") >= 15, DEADLINE_S, "results in the ledger")
    kill(cluster, "hdphrs.node")
    go_on(cluster)
    completed = cluster.finish()
    assert (completed.returncode, completed.stdout) == (0, RESULT), completed.stderr
    assert "what is in the ledger is not computed again" in completed.stderr
    assert sum(count - 1 for count in Counter(lines(cluster, "log")).values()) <= 25


@pytest.mark.parametrize("restarts", [0, 2])
def test_run_that_dies_again_and_again_is_given_up(cluster: Cluster, restarts: int) -> None:
    """A standard input that is a file begins anew each time."""
    words = cluster.folder / "words"
    words.write_text("said\n")
    program = cluster.write(DIES)
    with words.open() as stdin:
        process = cluster.start("--restarts", f"{restarts}/h", program, stdin=stdin.fileno())
        completed = cluster.finish()
    assert process.returncode == -signal.SIGKILL
    assert completed.stdout == "said\n" * (restarts + 1)
    told = completed.stderr.splitlines()
    assert [line.partition(";")[0] for line in told] == ["hdphrs: the program was killed by SIGKILL"] * (
        restarts + 1 if restarts else 0
    )
    assert not restarts or told[-1].endswith("; given up after 2 restarts within an hour")


@pytest.mark.parametrize(
    ("ending", "status"),
    [("raise ValueError('mine')", 1), ("sys.exit(3)", 3), ("os.kill(os.getpid(), signal.SIGTERM)", -signal.SIGTERM)],
)
def test_program_that_ends_by_itself_or_is_told_to_is_not_started_again(
    cluster: Cluster, ending: str, status: int
) -> None:
    program = cluster.write(f"import os, signal, sys\nprint('begun', flush=True)\n{ending}\n")
    completed = cluster.run("--restarts", "5/h", program)
    assert (completed.returncode, completed.stdout) == (status, "begun\n")
    assert "starts again" not in completed.stderr


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_launcher_that_is_told_to_end_starts_nothing_again(cluster: Cluster, number: signal.Signals) -> None:
    start(cluster, "--restarts", "5/h")
    assert cluster.process is not None
    if number == signal.SIGINT:
        os.killpg(cluster.process.pid, number)
    else:
        cluster.process.send_signal(number)
    assert cluster.finish(SOON_S).returncode == -number
    assert len(lines(cluster, "begun")) == 1


def test_root_that_is_told_to_end_is_not_started_again(cluster: Cluster) -> None:
    start(cluster, "--restarts", "5/h")
    os.kill(cluster.nodes()[0], signal.SIGTERM)
    completed = cluster.finish(SOON_S)
    assert completed.returncode == 1
    assert "was told to end; the program cannot go on" in completed.stderr
    assert not Path(cluster.folder, "prog.py.begun").read_text().count("begun") > 1
