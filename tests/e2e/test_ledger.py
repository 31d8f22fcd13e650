"""Runs that leave a ledger, and runs that find one."""

from __future__ import annotations

import json
import os
import re
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


def test_a_full_disk_costs_two_lines_and_what_is_in_the_ledger_is_used(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file may not become larger than a limit; the signal that tells so is ignored by Python."""
    program = write(cluster, program=PROGRAM.replace("N = 600", "N = 40"))
    assert cluster.run(*options(cluster, program, "program")).stderr == ""
    assert count(cluster) == 40
    write(cluster, program=PROGRAM.replace("N = 600", "N = 160"))
    limited = cluster.write(
        f"""
        import resource, runpy, sys
        resource.setrlimit(resource.RLIMIT_FSIZE, (34_000, 34_000))
        sys.argv = ["hdphrs", "run", "--cores", "1", "--ledger", {str(cluster.folder / "ledger")!r},
                    {str(program)!r}, "program"]
        runpy.run_module("hdphrs", run_name="__main__")
        """,
        "limited.py",
    )
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    completed = cluster.run(limited, python=True)
    assert completed.stdout == f"{sum(range(160))}\n", completed.stderr
    first, last = completed.stderr.splitlines()
    assert "cannot be written: " in first
    assert first.endswith("; this run goes on, and its results are not kept as long as that is so")
    assert re.fullmatch(r"hdphrs: \d+ results of this run could not be written to the ledger .*", last)
    assert count(cluster) == 160


DELETING = """
    import os
    import shutil
    import sys
    import time
    import hdphrs

    def work(number):
        time.sleep(0.01)
        return number

    print(sum(map(hdphrs.get, [hdphrs.spawn(work, number) for number in range(20)])))
    shutil.rmtree(sys.argv[1])
    print(sum(map(hdphrs.get, [hdphrs.spawn(work, number) for number in range(20, 60)])))
"""


def test_a_ledger_that_is_deleted_during_a_run_costs_two_lines(cluster: Cluster) -> None:
    program, folder = cluster.write(DELETING), cluster.folder / "ledger"
    completed = cluster.run("--ledger", folder, program, folder)
    assert (completed.returncode, completed.stdout) == (0, f"{sum(range(20))}\n{sum(range(20, 60))}\n")
    first, last = completed.stderr.splitlines()
    assert first.startswith(f"hdphrs: the ledger {folder} has been deleted; this run goes on")
    assert last.endswith(f"results of this run could not be written to the ledger {folder}")
    assert not folder.exists()


LOOKING = """
    import sys
    from pathlib import Path
    import hdphrs
    from helper import work

    def told(pid):
        "What anybody who may look sees of a process."
        try:
            return (pid / "cmdline").read_bytes() + (pid / "environ").read_bytes()
        except OSError:
            return b""

    LOG = sys.argv[0] + ".log"
    print(sum(map(hdphrs.get, [hdphrs.spawn(work, LOG, number) for number in range(20)])))
    print(sum(b"seventeen-or-more" in told(pid) for pid in Path("/proc").glob("[0-9]*")))
"""


@pytest.mark.parametrize("python", [False, True])
def test_with_a_key_only_what_is_signed_is_found_again_and_no_process_tells_the_key(
    cluster: Cluster, python: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = cluster.folder / "key"
    key.write_bytes(b"seventeen-or-more bytes")
    key.chmod(0o600)
    monkeypatch.setenv("HDPHRS_LEDGER", str(cluster.folder / "ledger"))
    program = write(cluster, program=LOOKING)

    def run() -> tuple[str, int]:
        before = count(cluster)
        completed = cluster.run(program, python=python)
        assert (completed.returncode, completed.stdout) == (0, f"{sum(range(20))}\n0\n"), completed.stderr
        return completed.stderr, count(cluster) - before

    assert run() == ("", 20)
    assert run() == ("", 0)
    monkeypatch.setenv("HDPHRS_LEDGER_KEY", str(key))
    why = "holds entries without the signature of its key; they are not used"
    line = f"hdphrs: the ledger {cluster.folder}/ledger {why}\n"
    assert run() == (line, 20)
    assert run() == ("", 0)
    key.write_bytes(b"seventeen-or-more other bytes")
    assert run() == (line, 20)
    monkeypatch.delenv("HDPHRS_LEDGER_KEY")
    assert run() == ("", 0)


def test_without_the_key_that_is_wanted_there_is_no_ledger(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    key = cluster.folder / "key"
    key.write_bytes(bytes(32))
    key.chmod(0o644)
    monkeypatch.setenv("HDPHRS_LEDGER", str(cluster.folder / "ledger"))
    monkeypatch.setenv("HDPHRS_LEDGER_KEY", str(key))
    program = write(cluster, program=LOOKING)
    why = f"the key of the ledger cannot be trusted: others can read {key} (mode 0644); chmod 600 {key}"
    completed = cluster.run(program, python=True)
    assert (completed.returncode, completed.stdout) == (0, f"{sum(range(20))}\n0\n")
    assert completed.stderr == f"hdphrs: {why}; this run goes on without its ledger\n"
    assert not (cluster.folder / "ledger").exists()
    completed = cluster.run(program)
    assert (completed.returncode, completed.stdout) == (2, "")
    assert completed.stderr == f"hdphrs: --ledger-key {key}: {why}\n"


def test_a_log_that_others_may_have_planted_is_not_believed(cluster: Cluster) -> None:
    """The attack: a group may write to the folder, and one of it has left a log with another value."""
    program = write(cluster, program=LOOKING)
    arguments, folder = options(cluster, program), cluster.folder / "ledger"
    assert cluster.run(*arguments).returncode == 0
    (folder / "ledger-1.sqlite-wal").write_bytes(b"planted")
    folder.chmod(0o770)
    completed = cluster.run(*arguments)
    assert (completed.returncode, completed.stdout) == (2, "")
    why = f"its group can write to {folder} (mode 0770); chmod go-w {folder}"
    assert completed.stderr == f"hdphrs: --ledger {folder}: the ledger {folder} cannot be trusted: {why}\n"
