"""Programs with executors: in a plain `python prog.py` with a node of the executor's own, and under `hdphrs run`."""

from __future__ import annotations

import os
import signal

import pytest

from tests.e2e.harness import DEADLINE_S, HEARS_CTRL_C, SOON_S, Cluster, eventually

pytestmark = pytest.mark.slow


def test_plain_python_gets_a_node_that_ends_with_the_executor(cluster: Cluster) -> None:
    program = cluster.write(
        """
        import concurrent.futures, hdphrs, os, sys, warnings
        warnings.simplefilter("ignore")  # about forks of programs with threads
        def pid(n): return os.getpid()
        with hdphrs.Executor(max_workers=2) as executor:
            pids = set(executor.map(pid, range(40), chunksize=2))
            if os.fork() == 0:
                try: executor.submit(pid, 1)
                except concurrent.futures.BrokenExecutor: os._exit(7)
                os._exit(1)
            print(os.waitstatus_to_exitcode(os.wait()[1]), os.getpid() in pids, len(pids) <= 2, executor._max_workers)
        print("shut", flush=True)
        sys.stdin.readline()
        """
    )
    process = cluster.start(program, python=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "7 False True 2\n"
    assert process.stdout.readline() == "shut\n"
    assert cluster.nodes() == []
    completed = cluster.finish()
    assert (completed.stderr, completed.returncode) == ("", 0)


def test_a_fork_does_not_keep_the_node_of_an_executor_alive(cluster: Cluster) -> None:
    program = cluster.write(
        """
        import hdphrs, os, signal, warnings
        warnings.simplefilter("ignore")
        executor = hdphrs.Executor(max_workers=1)
        executor.submit(os.getpid).result()
        if os.fork() == 0:
            signal.pause()
        os.kill(os.getpid(), signal.SIGKILL)
        """
    )
    cluster.start(program, python=True)
    assert cluster.process is not None
    assert cluster.process.wait(DEADLINE_S) == -signal.SIGKILL
    eventually(lambda: len(cluster.processes()) == 1, SOON_S, "the end of all but the fork")
    (fork,) = cluster.processes()
    os.kill(fork, signal.SIGKILL)


def test_an_abandoned_executor_cancels_what_runs_on_its_own_node(cluster: Cluster) -> None:
    program = cluster.write(
        """
        import hdphrs, pathlib, signal, sys, time
        def run(gate):
            gate.touch()
            signal.pause()
        def outcome(call):
            try:
                return call.result(30)
            except BaseException as error:
                return type(error).__name__
        if __name__ == "__main__":
            gate = pathlib.Path(sys.argv[0]).with_name("gate")
            executor = hdphrs.Executor(max_workers=1)
            calls = [executor.submit(run, gate) for _ in range(3)]
            while not gate.exists():
                time.sleep(0.002)
            executor.abandon()
            print([outcome(call) for call in calls])
            executor.shutdown()
        """
    )
    completed = cluster.run(program, python=True)
    assert completed.stdout == "['CancelledError', 'CancelledError', 'CancelledError']\n"


def test_a_killed_node_costs_an_executor_nothing(cluster: Cluster) -> None:
    program = cluster.write(
        """
        import hdphrs, time
        def slow(n): time.sleep(0.02); return n
        with hdphrs.Executor() as executor:
            assert list(executor.map(slow, range(150))) == list(range(150))
            print(executor._max_workers)
        """
    )
    completed = cluster.run("--local-nodes", 2, "--cores", 2, "--kill-at", 0.5, program)
    assert completed.returncode == 0, completed.stderr
    assert completed.stdout in ("4\n", "2\n")


def test_only_the_end_of_the_root_breaks_an_executor(cluster: Cluster) -> None:
    program = cluster.write(
        """
        import concurrent.futures as cf, hdphrs, sys, time
        from hdphrs.errors import RootLostError
        with hdphrs.Executor(max_workers=1) as executor:
            done, *lost = [executor.submit(time.sleep, s) for s in (0, 1000, 1000)]
            done.result()
            print("up", flush=True)
            for call in lost:
                error = call.exception()
                print(type(error) is cf.BrokenExecutor, type(error.__cause__) is RootLostError)
            try: executor.submit(time.sleep, 0)
            except cf.BrokenExecutor as error: print(str(error).split(" (")[0])
        """
    )
    process = cluster.start(program, python=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "up\n"
    os.kill(cluster.nodes()[0], signal.SIGKILL)
    completed = cluster.finish()
    assert completed.stdout == "True True\nTrue True\nthe node of this program\n"
    assert (completed.stderr, completed.returncode) == ("", 0)


def test_ctrl_c_ends_the_calls_with_the_program(cluster: Cluster) -> None:
    program = cluster.write(
        HEARS_CTRL_C
        + """
    import hdphrs, time
    with hdphrs.Executor(max_workers=2) as executor:
        [executor.submit(time.sleep, 1000) for _ in range(9)]
        executor.submit(time.sleep, 0)
        print("up", flush=True)
        time.sleep(1000)
"""
    )
    process = cluster.start(program, python=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "up\n"
    eventually(lambda: len(cluster.schedulers()) == 2, DEADLINE_S, "the schedulers")
    process.send_signal(signal.SIGINT)
    completed = cluster.finish()
    assert completed.stderr.endswith("KeyboardInterrupt\n")
    assert completed.returncode == -signal.SIGINT
