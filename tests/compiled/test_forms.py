"""The compiled form beside the pure one, and what users see of it; `make compiled` runs these, others skip them."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest

import hdphrs
from hdphrs.form import form
from tests.e2e.conftest import cluster as cluster
from tests.e2e.harness import MARK, Cluster

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(form() != "compiled", reason="this is the pure form: make compiled"),
]

BOTH = """
import hdphrs
import hdphrs.form

def tell(data):
    return hdphrs.form.form(), len(data), hdphrs.my_node()

def fib(n):
    if n < 2:
        return n
    left = hdphrs.spawn(fib, n - 1)
    return fib(n - 2) + hdphrs.get(left)

if __name__ == "__main__":
    for host in ("localhost", "127.0.0.2"):
        print(hdphrs.get(hdphrs.spawn_at(host, tell, bytes(1 << 20))))
    print(hdphrs.run(fib, 20))
"""


def test_nodes_of_both_forms_work_together(cluster: Cluster) -> None:
    pure = cluster.folder / "pure"
    shutil.copytree(Path(hdphrs.__file__).parent, pure / "hdphrs", ignore=shutil.ignore_patterns("*.so", "__pycache__"))
    ssh = cluster.folder / "to"
    ssh.write_text(f'#!/bin/sh\nshift\nexport {MARK}={cluster.mark} PYTHONPATH={pure}\nexec sh -c "$*"\n')
    os.chmod(ssh, 0o700)
    hosts = cluster.folder / "hosts"
    hosts.write_text(f"localhost slots=1\n127.0.0.2 slots=1 python={sys.executable}\n")
    completed = cluster.run("--ssh", ssh, "--nodes", hosts, cluster.write(BOTH))
    assert completed.returncode == 0, completed.stderr
    size = 1 << 20
    told = [("compiled", size, 0), ("pure Python", size, 1)]
    assert completed.stdout.splitlines() == [*map(str, told), "6765"]


def test_traceback_of_a_task_has_the_frames_of_the_user_and_none_of_ours(cluster: Cluster) -> None:
    program = cluster.write(
        """
        import hdphrs

        def fail(n):
            if n == 0:
                raise ValueError("of the user's")
            return hdphrs.get(hdphrs.spawn(fail, n - 1))

        hdphrs.get(hdphrs.spawn(fail, 2))
        """
    )
    completed = cluster.run("--local-nodes", "2", "--cores", "1", program)
    assert completed.returncode == 1
    assert "ValueError: of the user's" in completed.stderr
    assert "in fail" in completed.stderr
    assert "hdphrs/wire" not in completed.stderr


def test_development_mode_has_nothing_to_say(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONDEVMODE", "1")
    completed = cluster.run("--cores", "2", cluster.write("import hdphrs\nprint(hdphrs.run(sum, range(5)))\n"))
    assert (completed.returncode, completed.stdout, completed.stderr) == (0, "10\n", "")
