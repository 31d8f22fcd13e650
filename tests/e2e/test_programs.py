"""What a user's program sees: the calls from program and tasks, errors, exits."""

from __future__ import annotations

import os
import signal

import pytest

from hdphrs.wire.settings import usable_cores
from tests.e2e.harness import DEADLINE_S, GONE_S, HEARS_CTRL_C, SOON_S, Cluster, eventually


def test_plain_python_gets_a_node_of_its_own_on_first_use(cluster: Cluster) -> None:
    program = cluster.write(
        """
        import hdphrs, os
        def where(): return os.getpid()
        print(hdphrs.get(hdphrs.spawn(where)) != os.getpid(), hdphrs.my_node(), hdphrs.all_nodes())
        """
    )
    completed = cluster.run(program, python=True)
    assert (completed.stdout, completed.stderr, completed.returncode) == ("True 0 [0]\n", "", 0)


def test_r8_placed_and_recovered_tasks_run_in_schedulers_and_nowhere_else(cluster: Cluster) -> None:
    program = cluster.write(
        """
        import hdphrs, os, sys
        def where(_): return os.getpid(), "hdphrs.scheduler.hub" in sys.modules
        def crash_once(path):
            if not os.path.exists(path):
                open(path, "w").close()
                os._exit(1)
            return where(None)
        def main(path):
            placed = [hdphrs.spawn_at(node, where, n) for n in range(9) for node in hdphrs.all_nodes()]
            return [hdphrs.get(f) for f in [*placed, hdphrs.spawn(crash_once, path), hdphrs.spawn_at(0, where, 1)]]
        for pid, is_scheduler in hdphrs.run(main, sys.argv[1]):
            assert pid != os.getpid() and is_scheduler, pid
        """
    )
    completed = cluster.run("--local-nodes", 2, program, cluster.folder / "crashed")
    assert completed.returncode == 0, completed.stderr


def test_anything_callable_is_a_task(cluster: Cluster) -> None:
    program = cluster.write(
        """
        import functools, math, operator
        from hdphrs import get, spawn, run

        class Account:
            def __init__(self, amount): self.amount = amount
            def plus(self, more): return self.amount + more
            @classmethod
            def named(cls, name): return cls.__name__ + name
            @staticmethod
            def twice(n): return 2 * n
            def __call__(self, factor): return self.amount * factor

        offset = 5
        def add(n, *, more=0): return n + offset + more

        def main():
            local = 7
            futures = [
                spawn(add, 1), spawn(add, 1, more=10), spawn(lambda n: n + local, 1), spawn(Account(3).plus, 4),
                spawn(Account(3), 4), spawn(Account.named, "!"), spawn(Account.twice, 21), spawn(math.gcd, 12, 18),
                spawn(functools.partial(operator.sub, 10), 4),
            ]
            return [get(future) for future in futures]

        def from_program():
            global main
            return main()

        expected = [6, 16, 8, 7, 12, "Account!", 42, 6, 6]
        assert main() == expected
        assert run(main) == expected
        """
    )
    completed = cluster.run("--local-nodes", 2, program)
    assert completed.returncode == 0, completed.stderr


def test_helper_modules_beside_the_program_are_found(cluster: Cluster) -> None:
    cluster.write("def triple(n): return 3 * n\nclass Special(Exception): pass\n", "helper.py")
    program = cluster.write(
        """
        import hdphrs, helper
        def fail(): raise helper.Special("x")
        print(hdphrs.get(hdphrs.spawn(helper.triple, 4)))
        try: hdphrs.get(hdphrs.spawn(fail))
        except helper.Special as error: print("caught", error)
        """
    )
    assert cluster.run(program).stdout == "12\ncaught x\n"


@pytest.mark.skipif(usable_cores() < 2, reason="what has nothing to do would take the core of what has")
def test_a_scheduler_imports_what_another_one_of_its_node_has_needed(cluster: Cluster) -> None:
    """The last of the three processes that import the module never gets a task."""
    cluster.write(
        """
        import os, time
        from pathlib import Path
        IMPORTS = Path(__file__).with_name("imports.txt")
        with IMPORTS.open("a") as file: file.write(f"{os.getpid()}\\n")
        def main(deadline_s):
            end_s = time.monotonic() + deadline_s
            while (count := len(set(IMPORTS.read_text().split()))) < 3 and time.monotonic() < end_s: time.sleep(0.01)
            return count
        """,
        "needed.py",
    )
    program = cluster.write(
        f"""
        import hdphrs, needed
        print(hdphrs.run(needed.main, {SOON_S}))
        """
    )
    completed = cluster.run("--cores", 2, program)
    assert (completed.stdout, completed.returncode) == ("3\n", 0), completed.stderr


def test_any_thread_of_the_program_may_spawn_and_get(cluster: Cluster) -> None:
    program = cluster.write(
        """
        import hdphrs, threading
        sums = {}
        def square(n): return n * n
        def work(base):
            sums[base] = sum(hdphrs.get(f) for f in [hdphrs.spawn(square, base + i) for i in range(200)])
        threads = [threading.Thread(target=work, args=(i * 1000,)) for i in range(8)]
        [t.start() for t in threads]; [t.join() for t in threads]
        assert sums == {b: sum((b + i) ** 2 for i in range(200)) for b in range(0, 8000, 1000)}
        """
    )
    completed = cluster.run(program)
    assert completed.returncode == 0, completed.stderr


def test_an_exception_travels_with_its_remote_traceback(cluster: Cluster) -> None:
    program = cluster.write(
        """
        import hdphrs
        def inner(n): return 1 // n
        def outer(n): return hdphrs.get(hdphrs.spawn(inner, n))
        hdphrs.get(hdphrs.spawn(outer, 0))
        """
    )
    completed = cluster.run(program)
    assert completed.returncode == 1
    assert "ZeroDivisionError" in completed.stderr.splitlines()[-1]
    assert "in inner" in completed.stderr
    assert "in outer" in completed.stderr
    assert "in <module>" in completed.stderr


def test_errors_of_the_runtime_are_one_line_that_names_the_task(cluster: Cluster) -> None:
    program = cluster.write(
        """
        import hdphrs, sys, threading
        def take(lock): pass
        def give(): return threading.Lock()
        def odd():
            lock = threading.Lock()
            class Odd(Exception):
                def locked(self): return lock
            raise Odd(1)
        def future(f): pass
        match sys.argv[1]:
            case "argument": hdphrs.spawn(take, threading.Lock())
            case "result": hdphrs.get(hdphrs.spawn(give))
            case "exception": hdphrs.get(hdphrs.spawn(odd))
            case "future": hdphrs.spawn(future, hdphrs.spawn(give))
            case "value": hdphrs.spawn(len("word"))
        """
    )
    for case, words in {
        "argument": "argument 1 of task take (a _thread.lock) does not pickle",
        "result": "the result of task give (a _thread.lock) does not pickle",
        "exception": "task odd raised __main__.odd.<locals>.Odd: 1 (that exception does not pickle: ",
        "future": "a Future cannot travel",
        "value": "spawn: the first argument is the function, as in spawn(f, x); 4 is none",
    }.items():
        completed = cluster.run(program, case)
        assert completed.returncode == 1, case
        assert words in completed.stderr.splitlines()[-1], completed.stderr
        assert case == "exception" or len(completed.stderr.splitlines()) == 1


def test_ten_thousand_tasks_wait_at_once(cluster: Cluster) -> None:
    program = cluster.write(
        """
        import hdphrs
        def leaf(n): return n
        def wait(node, n): return hdphrs.get(hdphrs.spawn_at(node, leaf, n))
        def main():
            nodes = hdphrs.all_nodes()
            return sum(map(hdphrs.get, [hdphrs.spawn(wait, nodes[-1], n) for n in range(10_000)]))
        print(hdphrs.run(main))
        """
    )
    completed = cluster.run("--local-nodes", 2, program)
    assert completed.stdout == f"{sum(range(10_000))}\n", completed.stderr


def test_nested_spawns_reach_the_depth_of_plain_recursion(cluster: Cluster) -> None:
    program = cluster.write(
        """
        import hdphrs, sys
        def down(n): return 0 if n == 0 else 1 + hdphrs.get(hdphrs.spawn(down, n - 1))
        print(hdphrs.run(down, 950))
        sys.setrecursionlimit(20_000)
        def deep(n): return 0 if n == 0 else 1 + hdphrs.get(hdphrs.spawn(deep, n - 1))
        print(hdphrs.run(deep, 19_000))
        """
    )
    completed = cluster.run(program)
    assert completed.stdout == "950\n19000\n", completed.stderr


def test_a_program_keeps_its_streams_arguments_and_exit_status(cluster: Cluster) -> None:
    program = cluster.write(
        """
        import sys
        print(sys.argv[1:], sys.stdin.read(), __name__)
        print("to stderr", file=sys.stderr)
        sys.exit(7)
        """
    )
    process = cluster.start(program, "-v", "--help", "x")
    out, err = process.communicate("input", timeout=DEADLINE_S)
    assert (out, err, process.returncode) == ("['-v', '--help', 'x'] input __main__\n", "to stderr\n", 7)


def test_ctrl_c_interrupts_a_get(cluster: Cluster) -> None:
    program = cluster.write(
        HEARS_CTRL_C
        + """
    import hdphrs, time
    def nap():
        print("begun", flush=True)  # not before: Python loses a Ctrl-C that comes within an import, now and then
        time.sleep(60)
    try: hdphrs.get(hdphrs.spawn(nap))
    except KeyboardInterrupt: print("interrupted", flush=True); raise
"""
    )
    process = cluster.start(program)
    assert process.stdout is not None
    assert process.stdout.readline() == "begun\n"
    os.killpg(process.pid, signal.SIGINT)
    completed = cluster.finish(SOON_S)
    assert completed.stdout == "interrupted\n"
    assert completed.returncode == -signal.SIGINT


@pytest.mark.parametrize("python", [True, False])
def test_ctrl_c_while_a_program_takes_leave_of_its_node_shows_no_traceback(cluster: Cluster, python: bool) -> None:
    """The node is stopped, so that this takes long enough."""
    program = cluster.write(
        """
        import atexit, os, signal, threading, time
        import hdphrs
        def node(): return os.getppid()
        def interrupt():
            time.sleep(0.1)
            os.kill(os.getpid(), signal.SIGINT)
        def stop(pid):
            os.kill(pid, signal.SIGSTOP)
            threading.Thread(target=interrupt, daemon=True).start()
        if __name__ == "__main__":
            atexit.register(stop, hdphrs.run(node))
        """
    )
    cluster.start(program, python=python)
    completed = cluster.finish(SOON_S)
    assert (completed.returncode, completed.stdout, completed.stderr) == (0, "", "")


def test_sigterm_ends_the_run(cluster: Cluster) -> None:
    program = cluster.write("import hdphrs, time\nprint(hdphrs.all_nodes(), flush=True)\ntime.sleep(60)\n")
    process = cluster.start("--local-nodes", 2, program)
    assert process.stdout is not None
    assert process.stdout.readline() == "[0, 1]\n"
    process.terminate()
    assert cluster.finish(SOON_S).returncode == -signal.SIGTERM


def test_output_of_tasks_reaches_the_terminal(cluster: Cluster) -> None:
    program = cluster.write("import hdphrs\nhdphrs.get(hdphrs.spawn(print, 'from a task'))\n")
    assert cluster.run(program).stdout == "from a task\n"


def test_sequential_mode_starts_no_other_process(cluster: Cluster) -> None:
    program = cluster.write(
        """
        import hdphrs, os
        def where(): return os.getpid()
        print(hdphrs.get(hdphrs.spawn(where)) == hdphrs.run(where) == os.getpid())
        """
    )
    assert cluster.run("--sequential", program).stdout == "True\n"


def test_a_fork_of_the_program_does_not_keep_the_run_alive(cluster: Cluster) -> None:
    program = cluster.write(
        """
        import hdphrs, os, time
        def square(n): return n * n
        print(hdphrs.get(hdphrs.spawn(square, 3)), flush=True)
        if os.fork() == 0:
            print(hdphrs.get(hdphrs.spawn(square, 4)), flush=True)
        else:
            os.wait()
        """
    )
    completed = cluster.run(program, python=True)
    assert completed.stdout == "9\n16\n", completed.stderr


@pytest.mark.parametrize("how", ["raise", "exit"])
def test_a_program_that_ends_early_leaves_nothing_and_keeps_its_status(cluster: Cluster, how: str) -> None:
    program = cluster.write(
        """
        import hdphrs, sys, time
        future = hdphrs.spawn(time.sleep, 60)
        if sys.argv[1] == "exit": sys.exit("bye")
        raise RuntimeError("mine")
        """
    )
    completed = cluster.run("--local-nodes", 2, program, how, deadline_s=45)  # sooner than the task that sleeps
    assert completed.returncode == 1
    expected = "bye" if how == "exit" else "RuntimeError: mine"
    assert completed.stderr.splitlines()[-1] == expected
    assert "hdphrs/" not in completed.stderr
    eventually(lambda: not cluster.processes(), GONE_S, "the end of all processes")


@pytest.mark.parametrize("python", [False, True])
def test_functions_that_travel_inline_find_the_modules_of_the_program_s_directory(
    cluster: Cluster, python: bool
) -> None:
    cluster.write("def double(n): return 2 * n\n", "beside_the_program.py")
    program = cluster.write(
        """
        import hdphrs
        from beside_the_program import double
        futures = [hdphrs.spawn(lambda n=n: double(n)) for n in range(8)]
        print(sum(map(hdphrs.get, futures)), hdphrs.par_map_sliced(4, double, range(3)))
        """
    )
    completed = cluster.run(program, python=python)
    assert (completed.stdout, completed.stderr) == ("56 [0, 2, 4]\n", "")


def test_a_lambda_finds_the_modules_of_a_directory_that_the_program_has_added_to_its_path(cluster: Cluster) -> None:
    (cluster.folder / "apart").mkdir()
    cluster.write("def double(n): return 2 * n\n", "apart/elsewhere.py")
    program = cluster.write(
        f"""
        import sys
        import hdphrs
        sys.path.append("{cluster.folder}/apart")
        from elsewhere import double
        print(hdphrs.get(hdphrs.spawn(lambda: double(3))))
        """
    )
    completed = cluster.run(program)
    assert (completed.stdout, completed.stderr) == ("6\n", "")


def test_mistakes_within_a_task_are_errors_and_none_waits_for_ever(cluster: Cluster) -> None:
    program = cluster.write(
        """
        import asyncio, concurrent.futures, hdphrs
        from hdphrs import errors, get, spawn

        def double(x): return 2 * x
        async def asynchronous(x): return x
        def nothing(): return get(spawn(print("called")))
        def waits(): hdphrs.wait([spawn(None)])
        def cancels(): return spawn(None).cancel()
        def times(): return get(spawn(None), timeout=5)
        def several(): return get([spawn(double, n) for n in range(2)])
        def value(): return get(3)
        def limited(): return get(spawn(double, 2), timeout=5)
        def placed(): return get(hdphrs.spawn_at(0, double, [concurrent.futures.Future()]))

        for main in (nothing, waits, cancels, times, several, value, limited, placed):
            try:
                print(main.__name__, hdphrs.run(main))
            except errors.HdphrsError as error:
                print(main.__name__, error)
        try:
            hdphrs.run(asynchronous, 1)
        except errors.CannotTravelError as error:
            print("asyncio.run(function(argument))" in str(error))
        """
    )
    completed = cluster.run(program)
    none = "spawn: the first argument is the function, as in spawn(f, x); None is none"
    lines = completed.stdout.splitlines()
    assert (lines[0], completed.stderr, completed.returncode) == ("called", "", 0)
    assert lines[1:5] == [f"{name} {none}" for name in ("nothing", "waits", "cancels", "times")]
    assert lines[5].startswith("several get: it takes one future, not a list; for several write [hdphrs.get(")
    assert lines[6:8] == ["value get: it takes a future, as spawn returns it, not 3", "limited 4"]
    assert "; [0] is a concurrent.futures._base.Future: " in lines[8]
    assert lines[9:] == ["True"]
