"""Nodes of other hosts, and what becomes of their words.

What stands in for ssh runs them here, so no server is needed.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections import Counter
from itertools import combinations
from pathlib import Path

import pytest

from tests.cluster.stand_ins import interpreter
from tests.cluster.support import (
    GONE_S,
    Start,
    environment,
    processes_of,
    wait_until,
    write_executable,
    write_program,
)
from tests.pipes import full_pipe

pytestmark = pytest.mark.slow

WORK = """
import hdphrs

def work(low, high):
    if high - low <= 10:
        return sum(n * n for n in range(low, high))
    middle = (low + high) // 2
    right = hdphrs.spawn(work, middle, high)
    return work(low, middle) + hdphrs.get(right)

if __name__ == "__main__":
    print([hdphrs.get(hdphrs.spawn_at(node, hdphrs.my_node)) for node in hdphrs.all_nodes()])
    answer = hdphrs.run(work, 0, 1000)
    with open("answer", "w") as file:
        file.write(str(answer))
"""


@pytest.fixture
def shell(tmp_path: Path) -> Path:
    """Takes a host and a command, as ssh does, and runs it."""
    return write_executable(tmp_path / "shell", '#!/bin/sh\nexec sh -c "$2"\n')


@pytest.fixture
def hosts(tmp_path: Path) -> Path:
    """A local root, another local node, and two on another host."""
    python = interpreter(tmp_path, "python")
    file = tmp_path / "hosts"
    file.write_text(f"localhost slots=1\n127.0.0.1 slots=1 python={python}\n" * 2)
    return file


def test_nodes_on_other_hosts_work_whatever_standard_streams_are_closed(
    shell: Path, hosts: Path, tmp_path: Path
) -> None:
    answer = tmp_path / "answer"
    program = write_program(tmp_path, WORK)
    command = [sys.executable, "-m", "hdphrs", "run", "--ssh", str(shell), "--nodes", str(hosts), str(program)]
    for closed in [closed for count in (1, 2, 3) for closed in combinations("012", count)]:
        without = " ".join(f"{number}>&-" for number in closed)
        completed = subprocess.run(
            ["sh", "-c", f'exec "$@" {without}', "sh", *command],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            cwd=tmp_path,
            env=os.environ | environment(tmp_path),
            check=False,
        )
        assert completed.returncode == 0, completed
        assert (answer.read_text(), completed.stdout) == ("332833500", "" if "1" in closed else "[0, 1, 2, 3]\n")
        answer.unlink()
    assert wait_until(lambda: not processes_of(tmp_path))


def test_what_other_hosts_print_waits_for_a_reader_and_is_whole(
    start: Start, shell: Path, hosts: Path, tmp_path: Path
) -> None:
    program = write_program(
        tmp_path,
        """
import hdphrs

def work(count):
    for number in range(count):
        print("x" * 90, number)

if __name__ == "__main__":
    futures = [hdphrs.spawn_at(node, work, 20_000) for node in hdphrs.all_nodes()[1:]]
    list(map(hdphrs.get, futures))
""",
    )
    run = start("run", "--ssh", str(shell), "--nodes", hosts, program)
    assert wait_until(lambda: is_writing(run.process.pid))
    status, output, errors = run.finish()
    assert (status, errors) == (0, "")
    assert Counter(output.splitlines()) == {f"{'x' * 90} {number}": 3 for number in range(20_000)}


def test_launcher_whose_output_nobody_reads_hears_signals(shell: Path, hosts: Path, tmp_path: Path) -> None:
    program = write_program(
        tmp_path,
        """
import hdphrs

def work():
    while True:
        print("too much for a pipe" * 5)

if __name__ == "__main__":
    hdphrs.get(hdphrs.spawn_at(hdphrs.all_nodes()[-1], work))
""",
    )
    command = [sys.executable, "-m", "hdphrs", "run", "--ssh", str(shell), "--nodes", str(hosts), str(program)]
    with full_pipe() as (_, writing):
        run = subprocess.Popen(
            command, stdout=writing, stderr=writing, cwd=tmp_path, env=os.environ | environment(tmp_path)
        )
        try:
            assert wait_until(lambda: is_writing(run.pid))
            run.terminate()
            assert run.wait(GONE_S) == -signal.SIGTERM
            assert wait_until(lambda: not processes_of(tmp_path), GONE_S)
        finally:
            run.kill()
            run.wait()


def is_writing(launcher: int) -> bool:
    """Whether one of its threads waits for room in a pipe."""
    waits = [entry.read_text() for entry in Path(f"/proc/{launcher}/task").glob("*/wchan")]
    return any("pipe_write" in where for where in waits)
