"""The runs of one program: one set of workers, another node after a loss, and `hdphrs.shutdown`."""

from __future__ import annotations

import os
import signal

import pytest

from tests.e2e.harness import DEADLINE_S, SOON_S, Cluster, eventually

pytestmark = pytest.mark.slow

LOST = "was killed by SIGKILL"


def said(cluster: Cluster, source: str, *, python: bool = True) -> tuple[str, str]:
    """What a program prints that must succeed, and what it says of errors."""
    completed = cluster.run(cluster.write(source), python=python)
    assert completed.returncode == 0, completed.stderr
    return completed.stdout, completed.stderr


WORKERS = """
    import hdphrs, os, signal, subprocess
    CORES = len(os.sched_getaffinity(0))
    def nodes():
        listed = subprocess.run(["ps", "-o", "args=", "--ppid", str(os.getpid())], capture_output=True, text=True)
        return listed.stdout.count("hdphrs.node")
    def pid(_=0): return os.getpid()
    def node_of(_=0): return os.getppid()
"""


@pytest.mark.parametrize(
    "first",
    [
        "executor = hdphrs.Executor(); executor.submit(pid).result()",
        "executor = hdphrs.Executor(CORES); executor.submit(pid)",
        "executor, other = hdphrs.Executor(), hdphrs.Executor(CORES); executor.submit(pid).result(); other.submit(pid)",
        "executor = hdphrs.Executor(initializer=pid); list(executor.map(pid, range(4)))",
        "hdphrs.get(hdphrs.spawn(pid)); executor = hdphrs.Executor()",
        "executor = hdphrs.Executor(1) if CORES > 1 else hdphrs.Executor(); executor.submit(pid).result()",
    ],
)
def test_executors_and_tasks_have_one_set_of_workers(cluster: Cluster, first: str) -> None:
    out, err = said(
        cluster,
        f"""{WORKERS}
    {first}
    node = hdphrs.get(hdphrs.spawn(node_of))
    print(executor.submit(node_of).result() == node)
    import time
    end = time.monotonic() + {SOON_S}
    while nodes() > 1 and time.monotonic() < end: time.sleep(0.01)
    print(nodes())
    executor.shutdown()
    print(hdphrs.get(hdphrs.spawn(node_of)) == node)
    """,
    )
    assert (out, err) == ("True\n1\nTrue\n", "")


def test_node_that_executors_share_ends_with_the_last_of_them(cluster: Cluster) -> None:
    out, err = said(
        cluster,
        f"""{WORKERS}
    with hdphrs.Executor() as one:
        with hdphrs.Executor() as other:
            print(one.submit(node_of).result() == other.submit(node_of).result(), nodes())
        print(nodes())
    print(nodes())
    with hdphrs.Executor() as one: print(one.submit(abs, -3).result())
    print(nodes())
    """,
    )
    assert (out, err) == ("True 1\n1\n0\n3\n0\n", "")


AFTER = [
    "print(hdphrs.get(hdphrs.spawn(abs, -3)))",
    "print(hdphrs.run(abs, -3))",
    "print(hdphrs.get(hdphrs.spawn_at(hdphrs.my_node(), abs, -3)))",
    "print(*hdphrs.par_map(abs, [-3]))",
    "print(hdphrs.Executor().submit(abs, -3).result())",
    "print(before.submit(abs, -3).result())",
    "with hdphrs.scope() as scope: future = scope.spawn(abs, -3)\n    print(future.get())",
]


@pytest.mark.parametrize("after", AFTER)
def test_next_call_after_the_loss_of_an_idle_node_starts_another_one(cluster: Cluster, after: str) -> None:
    out, err = said(
        cluster,
        f"""{WORKERS}
    before = hdphrs.Executor()
    kept = hdphrs.spawn(node_of)
    node = hdphrs.get(kept)
    os.kill(node, signal.SIGKILL)
    from hdphrs.api.future import state
    from time import sleep
    while not state.port.is_lost: sleep(0.001)
    {after}
    print(hdphrs.get(kept) == node, nodes())
    """,
    )
    assert out == "3\nTrue 1\n"
    assert LOST in err
    assert "the next one starts now" in err
    assert err.count("\n") == 1


def test_futures_of_a_lost_node_fail_and_the_next_call_succeeds(cluster: Cluster) -> None:
    out, err = said(
        cluster,
        f"""{WORKERS}
    import concurrent.futures
    def die(): os.kill(os.getppid(), signal.SIGKILL)
    executor = hdphrs.Executor()
    for lose in (lambda: hdphrs.run(die), lambda: hdphrs.get(hdphrs.spawn(die)), lambda: executor.submit(die).result()):
        others = [hdphrs.spawn(signal.pause) for _ in range(CORES - 1)]
        try: lose()
        except hdphrs.errors.RootLostError as error: print("{LOST}" in str(error), "next call" in str(error))
        except concurrent.futures.BrokenExecutor as error: print("{LOST}" in str(error), "next call" in str(error))
        for other in others:
            try: hdphrs.get(other)
            except hdphrs.errors.RootLostError: pass
        print(hdphrs.run(abs, -3))
    try: executor.submit(abs, -3)
    except concurrent.futures.BrokenExecutor as error: print("broken")
    """,
    )
    assert out == "True True\n3\n" * 3 + "broken\n"
    assert err.count("the next one starts now") == err.count("\n") == 3


def test_lost_nodes_leave_no_thread_and_no_descriptor(cluster: Cluster) -> None:
    out, _ = said(
        cluster,
        f"""{WORKERS}
    import threading
    seen = []
    for round in range(6):
        node = hdphrs.run(node_of)
        seen.append((len(os.listdir("/proc/self/fd")), threading.active_count()))
        if round % 2: hdphrs.shutdown()
        else:
            try: hdphrs.run(lambda: os.kill(os.getppid(), signal.SIGKILL))
            except hdphrs.errors.RootLostError: pass
    print(len(set(seen[1:])), nodes())
    """,
    )
    assert out == "1 0\n"


def test_closed_descriptors_of_a_program_are_replaced_with_its_node(cluster: Cluster) -> None:
    out, _ = said(
        cluster,
        f"""{WORKERS}
    node = hdphrs.run(node_of)
    os.closerange(3, 4096)
    files = [open(os.devnull) for _ in range(600)]
    try: hdphrs.run(abs, -1)
    except hdphrs.errors.UsageError as error: assert "os.closerange" in str(error)
    print(hdphrs.run(abs, -3), hdphrs.run(node_of) != node)
    hdphrs.shutdown()
    print(all(file.read() == "" for file in files))
    """,
    )
    assert out == "3 True\nTrue\n"


def test_shutdown_ends_all_processes_and_cancels_what_is_there(cluster: Cluster) -> None:
    out, err = said(
        cluster,
        f"""{WORKERS}
    import concurrent.futures, threading
    hdphrs.shutdown()
    print(nodes())
    executor, apart = hdphrs.Executor(), hdphrs.Executor(CORES + 1)
    done = hdphrs.spawn(abs, -3)
    done.get()
    long = [hdphrs.spawn(signal.pause) for _ in range(2 * CORES)]
    calls = [one.submit(signal.pause) for one in (executor, apart) for _ in range(3)]
    apart.submit(abs, 1)
    caught = []
    def wait():
        try: hdphrs.get(long[0])
        except hdphrs.Cancelled as error: caught.append(str(error))
    waiting = threading.Thread(target=wait)
    waiting.start()
    hdphrs.shutdown()
    waiting.join()
    print(caught, nodes(), done.get(), all(one.done() for one in long))
    for call in calls:
        try: call.result()
        except concurrent.futures.CancelledError: pass
        else: print("not cancelled")
    for one in (executor, apart):
        try: one.submit(abs, 1)
        except RuntimeError as error: print(error)
    print(hdphrs.run(abs, -4), nodes(), hdphrs.Executor().submit(abs, -5).result())
    hdphrs.shutdown()
    hdphrs.shutdown()
    print(nodes(), threading.active_count())
    """,
    )
    why = "hdphrs.shutdown() has ended the run of this task"
    closed = "cannot schedule new futures after shutdown\n"
    assert (out, err) == (f"0\n{[why]} 0 3 True\n{closed}{closed}4 1 5\n0 1\n", "")


def test_shutdown_in_a_task_or_in_sequential_mode(cluster: Cluster) -> None:
    out, err = said(
        cluster,
        f"""{WORKERS}
    try: hdphrs.run(hdphrs.shutdown)
    except hdphrs.errors.UsageError as error: print(error)
    with hdphrs.sequential():
        future = hdphrs.spawn(abs, -3)
        hdphrs.shutdown()
        print(hdphrs.get(future), nodes())
    print(hdphrs.run(abs, -4))
    """,
    )
    assert (out, err) == ("shutdown(): not inside a task; only the program can end its run\n3 0\n4\n", "")


def test_shutdown_under_hdphrs_run_ends_the_run_for_good(cluster: Cluster) -> None:
    out, err = said(
        cluster,
        """
        import hdphrs
        print(hdphrs.run(abs, -3))
        hdphrs.shutdown()
        for call in (lambda: hdphrs.spawn(abs, 1), lambda: hdphrs.Executor(), lambda: hdphrs.par_map(abs, [1])):
            try: call()
            except hdphrs.errors.UsageError as error: print(error)
        """,
        python=False,
    )
    why = (
        "this program has ended its run by hdphrs.shutdown(); under `hdphrs run` there is one run for each start of a "
        "program\n"
    )
    assert (out, err) == (f"3\n{3 * why}", "")


def test_fork_after_shutdown_and_after_a_loss_has_a_node_of_its_own(cluster: Cluster) -> None:
    out, _ = said(
        cluster,
        f"""{WORKERS}
    import sys, warnings
    warnings.simplefilter("ignore")  # about forks of programs with threads
    future = hdphrs.spawn(abs, -2)
    for end in (lambda: None, hdphrs.shutdown):
        end()
        if os.fork() == 0:
            try: end is hdphrs.shutdown or future.get()
            except hdphrs.errors.UsageError as error: print("another process" in str(error))
            print(hdphrs.run(abs, -3), flush=True)
            sys.exit()
        os.wait()
    print(hdphrs.run(abs, -4))
    """,
    )
    assert out == "True\n3\n3\n4\n"


def test_nodes_of_a_killed_program_end_whichever_run_it_was(cluster: Cluster) -> None:
    program = cluster.write(
        f"""{WORKERS}
    hdphrs.run(abs, 1)
    hdphrs.shutdown()
    apart = hdphrs.Executor(CORES + 1)
    print(apart.submit(abs, 2).result(), hdphrs.run(abs, 3), flush=True)
    signal.pause()
    """
    )
    process = cluster.start(program, python=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "2 3\n"
    os.kill(process.pid, signal.SIGKILL)
    process.wait(DEADLINE_S)
    eventually(lambda: not cluster.processes(), SOON_S, "the end of both nodes")
