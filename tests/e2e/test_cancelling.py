"""Cancelled futures of real programs (decision 14)."""

from __future__ import annotations

import pytest

from tests.e2e.harness import HEARS_CTRL_C, Cluster


def test_cancelled_tasks_end_on_all_nodes_and_what_comes_after_them_is_right(cluster: Cluster) -> None:
    """Trees that would take minutes are cancelled while they grow, by the program and by a task; nothing is left."""
    cluster.recorded = True
    program = cluster.write(
        """
        import hdphrs, sys, time
        from pathlib import Path

        def tree(folder, depth):
            if depth == 0:
                (folder / "leaf").touch()
                time.sleep(0.01)
                return 1
            return sum(map(hdphrs.get, [hdphrs.spawn(tree, folder, depth - 1) for _ in range(8)]))

        def gated(folder, go):
            while not go.exists():
                hdphrs.get(hdphrs.spawn(time.sleep, 0.01))
            return tree(folder, 1)

        def cancelled(folder):
            folder.mkdir()
            future = hdphrs.spawn(tree, folder, 5)
            while not (folder / "leaf").exists():
                time.sleep(0.01)
            assert future.cancel() and not future.cancel()
            try:
                hdphrs.get(future)
            except hdphrs.Cancelled:
                return future
            raise AssertionError("it has a value")

        def inside(folder):
            cancelled(folder)
            return "inside"

        folder = Path(sys.argv[1])
        for turn in range(5):
            assert cancelled(folder / f"program {turn}").done()
        print(hdphrs.get(hdphrs.spawn(inside, folder / "task")))
        futures = [hdphrs.spawn(gated, folder, folder / "go") for _ in range(300)]
        print(sum(future.cancel() for future in futures[100:]))
        (folder / "go").touch()
        print(sum(map(hdphrs.get, futures[:100])))
        done = hdphrs.spawn(abs, -3)
        print(hdphrs.get(done), done.cancel())
        """
    )
    completed = cluster.run("--local-nodes", 2, "--cores", 2, program, cluster.folder)
    assert completed.returncode == 0, completed.stderr
    assert completed.stdout == "inside\n200\n800\n3 False\n"


def test_scheduler_whose_cancelled_task_does_not_end_is_replaced_and_nobody_is_blamed(cluster: Cluster) -> None:
    program = cluster.write(
        """
        import hdphrs, sys, time
        from pathlib import Path

        def hang(path):
            Path(path).touch()
            while True:
                pass

        future = hdphrs.spawn(hang, sys.argv[1])
        while not Path(sys.argv[1]).exists():
            time.sleep(0.01)
        future.cancel()
        print(hdphrs.get(hdphrs.spawn(abs, -3)))
        """
    )
    completed = cluster.run("--cores", 1, program, cluster.folder / "begun")
    assert (completed.returncode, completed.stdout) == (0, "3\n")
    assert "task hang, which was cancelled and did not end; it is replaced" in completed.stderr


@pytest.mark.slow
def test_task_that_cancels_what_does_not_end_in_its_own_process_is_given_up_and_not_run_for_ever(
    cluster: Cluster,
) -> None:
    """It waits in the process that is replaced, is run again, and does the same again: the first time is nobody's
    fault."""
    program = cluster.write(
        """
        import hdphrs, sys, time
        from pathlib import Path

        def times(path, what):
            return Path(path).read_text().count(what)

        def stubborn(path):
            try:
                with open(path, "a") as file:
                    file.write("stubborn ")
                hdphrs.get(hdphrs.spawn_at(1, time.sleep, 60))
            except BaseException:
                while True:
                    pass

        def cancels(path):
            with open(path, "a") as file:
                file.write("begun ")
            before = times(path, "stubborn")
            future = hdphrs.spawn(hdphrs.task(stubborn, pin=True), path)
            while times(path, "stubborn") == before:
                try:
                    future.get(timeout=0.1)
                except hdphrs.errors.WaitTimeoutError:
                    pass
            future.cancel()
            hdphrs.get(hdphrs.spawn_at(1, time.sleep, 60))

        try:
            hdphrs.run(hdphrs.task(cancels, attempts=1), sys.argv[1])
        except hdphrs.errors.TaskCrashedError as error:
            print(error)
        print(hdphrs.get(hdphrs.spawn(abs, -3)), Path(sys.argv[1]).read_text())
        """
    )
    completed = cluster.run("--local-nodes", 2, "--cores", 1, program, cluster.folder / "begun")
    assert completed.returncode == 0, completed.stderr
    error, last = completed.stdout.splitlines()
    assert "task cancels took down its process" in error
    assert error.endswith("was killed by SIGKILL, because task stubborn was cancelled and did not end")
    assert last == "3 begun stubborn begun stubborn "


STUBBORN_CHILD = """
    import hdphrs, sys, time
    from pathlib import Path

    def note(path, what):
        with open(path, "a") as file:
            file.write(what)

    def stubborn(path):
        note(path, "begun ")
        try:
            while True:
                hdphrs.get(hdphrs.spawn(abs, -1))
        except hdphrs.Cancelled:
            while True:   # without a wait, in which others would go on
                pass

    def begins(future, path):
        before = len(Path(path).read_text()) if Path(path).exists() else 0
        while not Path(path).exists() or len(Path(path).read_text()) == before:
            try:
                future.get(timeout=0.1)
            except hdphrs.errors.WaitTimeoutError:
                pass
        return future

    def leaves(path):
        return begins(hdphrs.spawn(stubborn, path), path).cancel()

    def waits(path):
        begins(hdphrs.spawn(hdphrs.task(stubborn, pin="pinned" in path), path), path).cancel()
        hdphrs.spawn(abs, -1).get(timeout=60)   # set aside meanwhile

    path = sys.argv[1]
"""


def test_child_that_nobody_else_knows_and_that_outlives_its_parent_does_not_keep_the_core_when_it_is_cancelled(
    cluster: Cluster,
) -> None:
    """No node has heard of it, so it is its scheduler that says that it does not end."""
    program = cluster.write(
        STUBBORN_CHILD
        + """
    print(hdphrs.run(leaves, path), hdphrs.run(abs, -3), Path(path).read_text())
"""
    )
    completed = cluster.run("--cores", 1, program, cluster.folder / "begun")
    assert (completed.returncode, completed.stdout) == (0, "True 3 begun \n"), completed.stderr
    assert "task stubborn, which was cancelled and did not end; it is replaced" in completed.stderr


@pytest.mark.slow
@pytest.mark.parametrize(("calls", "child"), [(1, "own"), (100, "own"), (100, "pinned")])
def test_task_whose_cancelled_child_does_not_end_on_its_scheduler_is_given_up_and_not_run_for_ever(
    cluster: Cluster, calls: int, child: str
) -> None:
    """Alone, and as one call of a bundle, which is not run again as a bundle: that is the first time, nobody's fault.

    A child of its scheduler's own, which no node knows, and one that its node has seen.
    """
    program = cluster.write(
        STUBBORN_CHILD
        + """
    def call(n, path):
        if n == 50 or path.endswith(" 1"):
            waits(path)
        return 1

    calls = int(path.split()[-1])
    if calls == 1:
        call = hdphrs.task(call, attempts=1)
    else:
        quick = [hdphrs.get(hdphrs.spawn(call, 0, path)) for _ in range(100)]   # now it is known how long they take
    futures = [hdphrs.spawn(call, n, path) for n in range(calls)]
    done = 0
    for future in futures:
        try:
            done += hdphrs.get(future)
        except hdphrs.errors.TaskCrashedError as error:
            print(error)
    print(done, hdphrs.get(hdphrs.spawn(abs, -3)), Path(path).read_text())
"""
    )
    completed = cluster.run("--cores", 1, program, cluster.folder / f"{child} {calls}")
    assert completed.returncode == 0, completed.stderr
    error, last = completed.stdout.splitlines()
    assert "task call took down its process" in error
    assert error.endswith("was killed by SIGKILL, because task stubborn was cancelled and did not end")
    begun = 2 if calls == 1 else 4  # the first time is nobody's fault; a call in a bundle has no options: 3 attempts
    assert last == f"{calls - 1} 3 " + begun * "begun "


def test_ctrl_c_in_run_cancels_the_task_that_nobody_else_knows(cluster: Cluster) -> None:
    program = cluster.write(
        HEARS_CTRL_C
        + """
    import hdphrs, os, sys, threading, time
    from pathlib import Path

    def hang(path):
        Path(path).touch()
        while True:
            pass

    def interrupt():
        while not Path(sys.argv[1]).exists():
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=interrupt).start()
    try:
        hdphrs.run(hang, sys.argv[1])
    except KeyboardInterrupt:
        print("interrupted")
    print(hdphrs.run(abs, -3))
"""
    )
    completed = cluster.run("--cores", 1, program, cluster.folder / "begun")
    assert (completed.returncode, completed.stdout) == (0, "interrupted\n3\n")


def test_scopes_and_waits_mean_the_same_in_the_program_and_in_a_task(cluster: Cluster) -> None:
    program = cluster.write(
        """
        import hdphrs, sys, time
        from pathlib import Path

        def later(path, value):
            while not Path(path).exists():
                time.sleep(0.001)
            return value

        def fail(path, value):
            later(path, None)
            raise ValueError(value)

        def tree(depth):
            if depth == 0:
                time.sleep(0.005)
            else:
                hdphrs.wait([hdphrs.spawn(tree, depth - 1) for _ in range(6)])

        def check(folder):
            folder.mkdir()
            now = folder / "now"
            now.touch()
            quick = [hdphrs.spawn(later, now, n) for n in range(20)]
            assert sorted(hdphrs.get(f) for f in hdphrs.as_completed(quick)) == list(range(20))
            hdphrs.wait(quick)
            first = hdphrs.spawn_at(0, later, now, "first")
            assert hdphrs.get_any([hdphrs.spawn_at(hdphrs.all_nodes()[-1], later, now, "first"), first]) == "first"
            with hdphrs.scope() as tasks:
                futures = [tasks.spawn(later, now, n) for n in range(5)]
            assert all(future.done() for future in futures)
            try:
                with hdphrs.scope() as tasks:
                    failing = tasks.spawn(fail, now, "one")
                    long = hdphrs.spawn_at(hdphrs.all_nodes()[-1], tree, 4)
                    tasks._futures.append(long)
            except ValueError as error:
                assert error.args == ("one",)
            assert long.done()
            try:
                with hdphrs.scope() as tasks:
                    tasks.spawn(fail, now, "one")
                    raise KeyError
            except BaseExceptionGroup as group:
                assert [type(error) for error in group.exceptions] == [KeyError, ValueError], group
            except KeyError:
                pass  # the task was cancelled before it had failed
            return "right"

        folder = Path(sys.argv[1])
        print(check(folder / "program"))
        print(hdphrs.run(check, folder / "task"))
        """
    )
    completed = cluster.run("--local-nodes", 2, "--cores", 2, program, cluster.folder)
    assert (completed.returncode, completed.stdout) == (0, "right\nright\n"), completed.stderr


def test_limits_mean_the_same_in_the_program_and_in_a_task(cluster: Cluster) -> None:
    """Whoever has waited long enough goes on, and so does the task; a scope cancels what is late."""
    program = cluster.write(
        """
        import hdphrs, sys, time
        from pathlib import Path

        def later(path, value):
            while not Path(path).exists():
                hdphrs.get(hdphrs.spawn(time.sleep, 0.001))
            return value

        def late(call):
            try:
                call()
            except hdphrs.errors.WaitTimeoutError as error:
                return str(error)
            raise AssertionError("it has waited")

        def in_scope(path):
            with hdphrs.scope(timeout=0.05) as tasks:
                tasks.spawn(later, path, 0)
                tasks.spawn(abs, -1)

        def check(folder):
            folder.mkdir()
            now = folder / "now"
            futures = [hdphrs.spawn(later, now, n) for n in range(4)]
            assert "get: " in late(lambda: futures[0].get(timeout=0.05))
            assert "wait: 4 tasks" in late(lambda: hdphrs.wait(futures, timeout=0.05))
            assert "as_completed: 4 tasks" in late(lambda: list(hdphrs.as_completed(futures, timeout=0)))
            assert "get_any: 4 tasks" in late(lambda: hdphrs.get_any(futures, timeout=0.05))
            assert "scope: " in late(lambda: in_scope(now))
            now.touch()
            hdphrs.wait(futures, timeout=60)
            return sum(future.get(timeout=60) for future in futures)

        folder = Path(sys.argv[1])
        print(check(folder / "program"))
        print(hdphrs.run(check, folder / "task"))
        """
    )
    completed = cluster.run("--local-nodes", 2, "--cores", 2, program, cluster.folder)
    assert (completed.returncode, completed.stdout) == (0, "6\n6\n"), completed.stderr
