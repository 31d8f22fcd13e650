"""Numerical libraries in tasks: each scheduler has its share of the cores."""

from __future__ import annotations

import os

import pytest

from tests.e2e.harness import Cluster

pytest.importorskip("numpy")
pytest.importorskip("threadpoolctl")

PROGRAM = """
    import os, subprocess, sys
    import hdphrs

    def threads(n):
        import numpy, threadpoolctl
        from numpy.linalg import inv
        return {info["num_threads"] for info in threadpoolctl.threadpool_info() if info["user_api"] == "blas"}

    def limited(n):
        import numpy, threadpoolctl
        with threadpoolctl.threadpool_limits(3):
            return threads(n)

    def forked(n):
        import numpy
        reading, writing = os.pipe()
        if os.fork() == 0:
            os.write(writing, b"%d" % max(threads(n)))
            os._exit(0)
        os.wait()
        return {int(os.read(reading, 9))}

    def in_child(n):
        code = "import numpy, threadpoolctl as t; print(*{i['num_threads'] for i in t.threadpool_info()})"
        return {int(subprocess.check_output([sys.executable, "-c", code]))}

    def elsewhere(function):
        futures = [hdphrs.spawn_at(node, function, n) for node in hdphrs.all_nodes() for n in range(4)]
        return sorted(set().union(*[hdphrs.get(future) for future in futures]))

    if __name__ == "__main__":
        for name in sys.argv[1:]:
            print(name, *elsewhere(globals()[name]))
"""
VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS")


@pytest.fixture(autouse=True)
def nothing_is_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)


def printed(cluster: Cluster, *command: object, python: bool = False) -> list[str]:
    program = cluster.write(PROGRAM)
    words = [program if word == "PROG" else word for word in command]
    process = cluster.start(*words, python=python)
    output, errors = process.communicate(timeout=100)
    assert process.returncode == 0, errors
    return output.splitlines()


def share(schedulers: int) -> int:
    from hdphrs.wire.settings import usable_cores

    return max(1, usable_cores() // schedulers)


def test_one_scheduler_a_core_means_one_thread_each(cluster: Cluster) -> None:
    """In a plain program, forked children and new processes of a task included; what a task says itself wins."""
    found = printed(cluster, "PROG", "threads", "limited", "forked", "in_child", python=True)
    assert found == ["threads 1", "limited 3", "forked 1", "in_child 1"]


@pytest.mark.parametrize(
    ("options", "schedulers"),
    [(["--cores", 1], 1), (["--local-nodes", 2, "--cores", 1], 2), (["--local-nodes", 2], os.cpu_count() or 1)],
)
def test_schedulers_of_all_nodes_of_a_host_share_its_cores(
    cluster: Cluster, options: list[object], schedulers: int
) -> None:
    assert printed(cluster, *options, "PROG", "threads") == [f"threads {share(schedulers)}"]


def test_the_users_variable_wins_and_those_that_follow_it_follow(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    assert printed(cluster, "PROG", "threads", python=True) == ["threads 2"]


def test_a_variable_that_the_program_sets_before_its_first_call_wins(cluster: Cluster) -> None:
    program = cluster.write("import os\nos.environ['OPENBLAS_NUM_THREADS'] = '2'\n", "before.py")
    source = "import before\n" + cluster.write(PROGRAM).read_text()
    cluster.write(source, "after.py")
    process = cluster.start(program.with_name("after.py"), "threads", python=True)
    output, errors = process.communicate(timeout=100)
    assert output.splitlines() == ["threads 2"], errors
