"""Runs that leave a ledger, and runs that find one."""

from __future__ import annotations

import json
import os
import signal
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.harness import DEADLINE_S, GONE_S, Cluster, entries, eventually, written
from tests.processes import send

HELPER = """
    import os
    import time

    FACTOR = 1

    def hold(log):
        "Nobody begins when most of the work is done, as long as a test does not want that."
        while os.path.exists(log + ".hold") and os.path.exists(log) and len(list(open(log))) >= 540:
            time.sleep(0.01)

    def work(log, number):
        hold(log)
        time.sleep(0.01)
        with open(log, "a") as file:
            file.write(f"{number}\\n")
        return FACTOR * number
"""

PROGRAM = """
    import sys
    import time
    import hdphrs
    from helper import hold, work

    LOG = sys.argv[0] + ".log"
    N = 600

    def flat():
        return sum(map(hdphrs.get, [hdphrs.spawn(work, LOG, number) for number in range(N)]))

    def tree(low, high):
        if high - low == 1:
            return work(LOG, low)
        middle = (low + high) // 2
        left = hdphrs.spawn(tree, low, middle)
        right = tree(middle, high)
        return hdphrs.get(left) + right

    def skeleton():
        return sum(hdphrs.par_map_sliced(100, task, range(N)))

    def task(number):
        hold(LOG)
        time.sleep(0.01)
        with open(LOG, "a") as file:
            file.write(f"{number}\\n")
        return number

    if __name__ == "__main__":
        match sys.argv[1]:
            case "flat":
                print(hdphrs.run(flat))
            case "tree":
                print(hdphrs.run(tree, 0, N))
            case "skeleton":
                print(hdphrs.run(skeleton))
            case "program":
                print(flat())
"""
N = 600
TOTAL = sum(range(N))


def write(cluster: Cluster, helper: str = HELPER, program: str = PROGRAM) -> Path:
    """The program and its helper, as old files, which no process takes for changed."""
    path = cluster.write(program)
    for file in (path, cluster.write(helper, "helper.py")):
        os.utime(file, (1e9 + len(helper), 1e9 + len(helper)))
    return path


def count(cluster: Cluster) -> int:
    """How many pieces of work have been done so far."""
    return len(written(cluster.folder / "prog.py.log"))


def report(cluster: Cluster) -> dict[str, Any]:
    """What the root did."""
    root: dict[str, Any] = json.loads((cluster.folder / "report.json").read_text())["nodes"][0]
    return root


def options(cluster: Cluster, *more: object) -> list[object]:
    """Of a run with a ledger."""
    return ["--ledger", cluster.folder / "ledger", "--report", cluster.folder / "report.json", *more]


def kill_all(cluster: Cluster) -> None:
    """As if the host had lost its power."""
    for pid in cluster.processes():
        send(pid, signal.SIGKILL)  # it may have ended with another
    assert cluster.process is not None
    cluster.finish()
    eventually(lambda: not cluster.processes(), GONE_S, "the end of all processes")


@pytest.mark.slow
@pytest.mark.parametrize("shape", ["flat", "tree", "skeleton", "program"])
@pytest.mark.parametrize("nodes", [1, 2])
def test_what_was_done_before_everything_was_killed_is_not_done_again(cluster: Cluster, shape: str, nodes: int) -> None:
    program = write(cluster)
    arguments = options(cluster, "--local-nodes", nodes, "--cores", 2 // nodes, program, shape)
    hold = cluster.folder / "prog.py.log.hold"
    hold.touch()
    cluster.start(*arguments)
    eventually(lambda: count(cluster) >= 0.9 * N, DEADLINE_S, "most of the work")
    kept = 80 if shape == "skeleton" else 500  # there a hundred slices have six pieces of work each
    eventually(lambda: entries(cluster.folder / "ledger") >= kept, DEADLINE_S, "most of it in the ledger")
    kill_all(cluster)
    hold.unlink()
    completed = cluster.run(*arguments)
    assert (completed.returncode, completed.stdout, completed.stderr) == (0, f"{TOTAL}\n", "")
    assert count(cluster) - N <= 0.15 * N
    assert len(Counter((cluster.folder / "prog.py.log").read_text().split())) == N
    assert report(cluster)["pieces_mismatched"] == 0


@pytest.mark.slow
def test_a_second_run_computes_nothing_and_a_changed_module_everything(cluster: Cluster) -> None:
    calls, total, small = 200, sum(range(200)), PROGRAM.replace("N = 600", "N = 200")
    program = write(cluster, program=small)
    arguments = options(cluster, "--cores", 2, program, "program")
    for _ in range(2):
        assert cluster.run(*arguments).stdout == f"{total}\n"
        assert count(cluster) == calls
    assert report(cluster)["ledger_hits"] == calls
    write(cluster, HELPER.replace("FACTOR = 1", "FACTOR = 22"), small)
    assert cluster.run(*arguments).stdout == f"{22 * total}\n"
    assert count(cluster) == 2 * calls
    write(cluster, program=small)
    assert cluster.run(*arguments).stdout == f"{total}\n"
    assert count(cluster) == 2 * calls


MARKED = """
    import sys
    import hdphrs

    LOG, DATA = sys.argv[1:]

    def log(name):
        with open(LOG, "a") as file:
            file.write(f"{name}\\n")

    @hdphrs.task(memo=True)
    def always(n):
        log("always")
        return n

    @hdphrs.task(memo=False)
    def never(n):
        log("never")
        return n

    def read(file):
        log("read")
        return len(open(file).read())

    def skeleton(n):
        log("skeleton")
        return n

    hdphrs.run(never, 0)
    futures = [hdphrs.spawn(f, 1) for f in (always, never)]
    futures.append(hdphrs.spawn(read, hdphrs.InputFile(DATA)))
    print(*map(hdphrs.get, futures), hdphrs.par_map_sliced(2, skeleton, [5, 6]), hdphrs.par_map_sliced(1, never, [7]))
"""


@pytest.mark.parametrize("python", [False, True])
def test_marks_and_files_are_honoured_also_without_hdphrs_run(
    cluster: Cluster, python: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HDPHRS_LEDGER", str(cluster.folder / "ledger"))
    program = cluster.write(MARKED.replace("def read(", "@hdphrs.task(memo=True)\n    def read("))
    log, data = cluster.folder / "log", cluster.folder / "data"
    data.write_text("abc")

    def run() -> Counter[str]:
        log.write_text("")
        completed = cluster.run(program, log, data, python=python)
        assert completed.stdout == f"1 1 {len(data.read_text())} [5, 6] [7]\n", completed.stderr
        return Counter(log.read_text().split())

    assert run() == Counter(always=1, never=3, read=1, skeleton=2)
    assert run() == Counter(never=3)
    data.write_text("abcd")
    assert run() == Counter(never=3, read=1)
    program.write_text(program.read_text().replace('log("always")', 'log("again")'))
    assert run() == Counter(again=1, never=3)


def test_a_damaged_or_useless_ledger_costs_one_line_and_nothing_else(cluster: Cluster) -> None:
    program = write(cluster, program=PROGRAM.replace("N = 600", "N = 10"))
    file = cluster.folder / "ledger" / "ledger-1.sqlite"
    assert cluster.run(*options(cluster, program, "program")).stdout == "45\n"
    file.write_bytes(b"garbage" * 1000)
    completed = cluster.run(*options(cluster, program, "program"))
    assert completed.stdout == "45\n"
    (line,) = completed.stderr.splitlines()
    assert line.endswith("it is set aside, and a new one begun")
    assert count(cluster) == 20
    completed = cluster.run(*options(cluster, program, "program"))
    assert (completed.stdout, completed.stderr, count(cluster)) == ("45\n", "", 20)
    (cluster.folder / "file").write_text("")
    completed = cluster.run("--ledger", cluster.folder / "file", program, "program")
    assert (completed.returncode, completed.stdout) == (2, "")
    assert completed.stderr.endswith("cannot be used: it is no directory\n")


def test_a_full_disk_turns_the_ledger_off_with_one_line(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file may not become larger than a limit; the signal that tells so is ignored by Python."""
    program = write(cluster, program=PROGRAM.replace("N = 600", "N = 40"))
    limited = cluster.write(
        f"""
        import resource, runpy, sys
        resource.setrlimit(resource.RLIMIT_FSIZE, (60_000, 60_000))
        sys.argv = ["hdphrs", "run", "--cores", "1", "--ledger", {str(cluster.folder / "ledger")!r},
                    {str(program)!r}, "program"]
        runpy.run_module("hdphrs", run_name="__main__")
        """,
        "limited.py",
    )
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    completed = cluster.run(limited, python=True)
    assert completed.stdout == f"{sum(range(40))}\n", completed.stderr
    (line,) = completed.stderr.splitlines()
    assert line.endswith("this run goes on without it")
