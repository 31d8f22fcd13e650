"""Schedulers whose process is stopped: a line says so, and they are replaced if that is wanted; who is stopped with its
node is left alone."""

from __future__ import annotations

import signal
from time import monotonic, sleep

import pytest

from tests.e2e.harness import SOON_S, Cluster, eventually
from tests.processes import send, stat

STOPS = """
    import os, signal, sys
    import hdphrs
    from hdphrs.errors import TaskCrashedError

    def stop(path):
        if not os.path.exists(path):
            open(path, "w").close()
            os.kill(os.getpid(), signal.SIGSTOP)
        return 7

    def stop_always():
        os.kill(os.getpid(), signal.SIGSTOP)

    if __name__ == "__main__":
        print(hdphrs.get(hdphrs.spawn(stop, sys.argv[1])), flush=True)
        if len(sys.argv) > 2:
            try:
                hdphrs.get(hdphrs.spawn(stop_always))
            except TaskCrashedError as error:
                print(len(error.attempts), {attempt.how for attempt in error.attempts})
"""

WORKS = """
    import os, sys, time
    import hdphrs

    def work(path):
        while not os.path.exists(path):
            time.sleep(0.01)
        return 1

    if __name__ == "__main__":
        futures = [hdphrs.spawn(work, sys.argv[1]) for _ in range(4)]
        print("begun", flush=True)
        print(sum(hdphrs.get(future) for future in futures))
"""

WAYS = {"python": ([], True), "run": (["--detect-stopped", 0.5], False)}


@pytest.mark.parametrize("way", WAYS)
def test_stopped_scheduler_is_replaced_after_the_time_that_is_wanted_and_its_task_run_again(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    options, python = WAYS[way]
    if python:
        monkeypatch.setenv("HDPHRS_DETECT_STOPPED", "0.5")
    program = cluster.write(STOPS)
    completed = cluster.run(*options, program, cluster.folder / "stopped", python=python, deadline_s=3 * SOON_S)
    assert (completed.returncode, completed.stdout) == (0, "7\n"), completed.stderr
    assert "s and then killed while it ran task stop; it is replaced\n" in completed.stderr


def test_task_that_stops_each_scheduler_is_forgiven_once_and_then_charged(cluster: Cluster) -> None:
    program = cluster.write(STOPS)
    completed = cluster.run("--detect-stopped", 0.3, program, cluster.folder / "stopped", "always")
    assert completed.stdout.splitlines()[1].startswith("3 {'was stopped for "), completed.stderr
    assert completed.stderr.count("while it ran task stop_always; it is replaced\n") == 4


@pytest.mark.slow
def test_stopped_scheduler_is_spoken_of_and_goes_on_when_it_is_let(cluster: Cluster) -> None:
    process = cluster.start(cluster.write(STOPS), cluster.folder / "stopped")
    assert process.stderr is not None
    line = process.stderr.readline()
    (pid,) = [pid for pid in cluster.schedulers() if stat(pid)[0] == "T"]
    assert line == (
        f"hdphrs: scheduler process {pid} on localhost has been stopped (SIGSTOP) for 10 s, in task stop; there, "
        f"kill -CONT {pid} lets it go on, and kill -KILL {pid} has it replaced, as --detect-stopped S does\n"
    )
    send(pid, signal.SIGCONT)
    completed = cluster.finish(SOON_S)
    assert (completed.returncode, completed.stdout, completed.stderr) == (0, "7\n", "")


@pytest.mark.parametrize("order", ["the node first", "schedulers first"])
def test_node_that_was_stopped_with_its_schedulers_accuses_nobody(cluster: Cluster, order: str) -> None:
    """As Ctrl-Z, and fg, do it to all processes."""
    go = cluster.folder / "go"
    process = cluster.start("--detect-stopped", 1, cluster.write(WORKS), go)
    assert process.stdout is not None
    assert process.stdout.readline() == "begun\n"
    (node,) = cluster.nodes()
    schedulers = cluster.schedulers()
    pause_s(0.7)  # the watch has looked
    everybody = [node, *schedulers]
    for pid in everybody:
        send(pid, signal.SIGSTOP)
    eventually(lambda: all(stat(pid)[0] == "T" for pid in everybody), SOON_S, "all are stopped")
    pause_s(2.5)
    for pid in everybody if order == "the node first" else reversed(everybody):
        send(pid, signal.SIGCONT)
        if pid in (node, schedulers[0]):
            pause_s(0.3)
    pause_s(1.5)
    assert cluster.schedulers() == schedulers
    go.touch()
    completed = cluster.finish(SOON_S)
    assert (completed.returncode, completed.stdout, completed.stderr) == (0, "4\n", "")


def pause_s(for_s: float) -> None:
    """What is to be seen is that nothing happens meanwhile."""
    end_s = monotonic() + for_s
    while monotonic() < end_s:
        sleep(0.05)
