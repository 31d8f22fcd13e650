"""Runs that are short of something, or told to end in the middle: the right answer, or a line that says what to do; no
traceback of ours, and nothing hangs."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.harness import MARK, SOON_S, Cluster, eventually
from tests.processes import send

FIB = """
    import hdphrs

    def fib(n):
        if n < 2:
            return n
        left = hdphrs.spawn(fib, n - 1)
        right = fib(n - 2)
        return hdphrs.get(left) + right

    if __name__ == "__main__":
        print(hdphrs.run(fib, 16))
"""

HELD = """
    import os, time
    import hdphrs

    def wait(path):
        while not os.path.exists(path):
            time.sleep(0.01)
        return 1

    if __name__ == "__main__":
        import sys
        futures = [hdphrs.spawn(wait, sys.argv[1]) for _ in range(2 * len(hdphrs.all_nodes()))]
        print("begun", flush=True)
        print(sum(hdphrs.get(future) for future in futures) == len(futures))
"""

WAYS = {"python": ([], True), "run": ([], False), "nodes": (["--local-nodes", 2], False)}


def limited(cluster: Cluster, files: int, *command: object, python: bool) -> subprocess.CompletedProcess[str]:
    """Run with so many open files at most."""
    prefix = [sys.executable] if python else [sys.executable, "-m", "hdphrs", "run"]
    shell = ["sh", "-c", f'ulimit -n {files} && exec "$@"', "sh"]
    cluster.process = subprocess.Popen(
        [*shell, *prefix, *map(str, command)],
        text=True,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
        env=os.environ | {MARK: cluster.mark},
    )
    return cluster.finish(4 * SOON_S)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("files", [8, 10, 12, 14, 16, 17, 18, 20, 22, 24, 27, 32, 48, 64])
def test_run_with_few_open_files_has_the_answer_or_a_line_that_says_what_to_raise(
    cluster: Cluster, files: int, way: str
) -> None:
    """The shares of a sweep from 8 to 64.  A program that runs without us gets an exception, and prints that."""
    options, python = WAYS[way]
    completed = limited(cluster, files, *options, cluster.write(FIB), python=python)
    lines = completed.stderr.splitlines()
    if completed.returncode == 0:
        assert completed.stdout == "987\n"
        assert all(line.startswith("hdphrs: ") for line in lines), completed.stderr
        return
    assert completed.stdout == ""
    if python:
        own = lines.index("Traceback (most recent call last):")  # before it the node may have tried again
        assert all(line.startswith("hdphrs: ") for line in lines[:own]), completed.stderr
        assert completed.stderr.count("hdphrs.errors.StartError: ") == 1, completed.stderr
        assert "raise `ulimit -n`" in lines[-1], completed.stderr
    else:
        assert all(line.startswith("hdphrs: ") for line in lines), completed.stderr
        assert len(lines) <= 3, completed.stderr
        assert any("raise `ulimit -n`" in line for line in lines), completed.stderr


@pytest.mark.parametrize("way", WAYS)
def test_run_where_nameless_memory_is_refused_has_the_answer(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    stand_in = cluster.folder / "stand_in"
    stand_in.mkdir()
    (stand_in / "sitecustomize.py").write_text(
        "import os\ndef refuse(*_):\n    raise PermissionError(1, 'not here')\nos.memfd_create = refuse\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(stand_in))
    options, python = WAYS[way]
    completed = cluster.run(*options, cluster.write(FIB), python=python)
    assert (completed.returncode, completed.stdout, completed.stderr) == (0, "987\n", "")


def begun(cluster: Cluster, *options: object, python: bool = False) -> Path:
    """A run that goes on until there is a file at this path."""
    go = cluster.folder / "go"
    process = cluster.start(*options, cluster.write(HELD), go, python=python)
    assert process.stdout is not None
    assert process.stdout.readline() == "begun\n"
    return go


@pytest.mark.parametrize("way", WAYS)
def test_root_node_that_is_interrupted_ends_the_run_with_a_line(cluster: Cluster, way: str) -> None:
    options, python = WAYS[way]
    begun(cluster, *options, python=python)
    send(cluster.nodes()[0], signal.SIGINT)
    completed = cluster.finish(SOON_S)
    assert completed.returncode == 1
    if python:
        assert completed.stderr.count("Traceback") == 1, completed.stderr
        assert "hdphrs.errors.RootLostError: the node of this program" in completed.stderr
    else:
        (line,) = completed.stderr.splitlines()
        assert re.fullmatch(r"hdphrs: the root node .* was told to end; the program cannot go on", line)


def test_other_node_that_is_interrupted_leaves_and_the_answer_is_right(cluster: Cluster) -> None:
    go = begun(cluster, "--local-nodes", 2, "--grace", 0.2)
    leaving = cluster.nodes()[1]
    send(leaving, signal.SIGINT)
    eventually(lambda: leaving not in cluster.nodes(), SOON_S, "the node has left")
    go.touch()
    completed = cluster.finish()
    assert (completed.returncode, completed.stdout) == (0, "True\n")
    assert all(line.startswith("hdphrs: ") for line in completed.stderr.splitlines()), completed.stderr


@pytest.mark.parametrize("idle", [True, False])
def test_scheduler_that_is_interrupted_goes_on_or_its_task_is_interrupted(cluster: Cluster, idle: bool) -> None:
    """In a task it is a KeyboardInterrupt, as in any program; the task has it as its outcome."""
    source = """
        import os, signal, time
        import hdphrs

        def interrupt(idle):
            if os.fork() == 0:
                time.sleep(0.3)
                os.kill(os.getppid(), signal.SIGINT)
                os._exit(0)
            return idle or time.sleep(60)

        if __name__ == "__main__":
            import sys
            try:
                print(hdphrs.get(hdphrs.spawn(interrupt, sys.argv[1] == "True")))
            except KeyboardInterrupt:
                print("interrupted")
            time.sleep(1)
            print(hdphrs.get(hdphrs.spawn(abs, -1)))
    """
    completed = cluster.run(cluster.write(source), idle, python=True, deadline_s=3 * SOON_S)
    assert (completed.returncode, completed.stdout) == (0, f"{True if idle else 'interrupted'}\n1\n"), completed.stderr
    lines = completed.stderr.splitlines()
    if idle:
        what = "dropped what a signal handler has raised (KeyboardInterrupt: ): no task runs here"
        (line,) = lines
        assert re.fullmatch(rf"\[localhost:\d+ interrupt 0\] hdphrs: {re.escape(what)}", line), line
    else:
        assert lines == []


@pytest.mark.parametrize("files", [21, 22, 24, 30])
def test_scheduler_that_is_killed_where_few_files_may_be_open_is_replaced_or_a_line_says_why_not(
    cluster: Cluster, files: int
) -> None:
    source = """
        import os, signal, sys
        import hdphrs

        def die(path):
            if not os.path.exists(path):
                open(path, "w").close()
                os.kill(os.getpid(), signal.SIGKILL)
            return 1

        if __name__ == "__main__":
            print(hdphrs.get(hdphrs.spawn(die, sys.argv[1])))
    """
    completed = limited(cluster, files, cluster.write(source), cluster.folder / "died", python=False)
    assert all(line.startswith("hdphrs: ") for line in completed.stderr.splitlines()), completed.stderr
    if completed.returncode == 0:
        assert completed.stdout == "1\n"
    else:
        assert "raise `ulimit -n`" in completed.stderr
