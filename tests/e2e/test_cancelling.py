"""Cancelled futures of real programs (decision 14)."""

from __future__ import annotations

from tests.e2e.harness import Cluster


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
        futures = [hdphrs.spawn(tree, folder, 1) for _ in range(300)]
        print(sum(future.cancel() for future in futures[100:]) > 100, sum(map(hdphrs.get, futures[:100])))
        done = hdphrs.spawn(abs, -3)
        print(hdphrs.get(done), done.cancel())
        """
    )
    completed = cluster.run("--local-nodes", 2, "--cores", 2, program, cluster.folder)
    assert completed.returncode == 0, completed.stderr
    assert completed.stdout == "inside\nTrue 800\n3 False\n"


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
