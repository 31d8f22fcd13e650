"""What tasks print, log and warn of, as the user of a real run sees it."""

from __future__ import annotations

import json

import pytest

from tests.e2e.harness import Cluster


@pytest.mark.slow
@pytest.mark.parametrize("options", [("--cores", 2), ("--local-nodes", 2, "--cores", 1)])
def test_everything_that_tasks_say_has_come_when_their_values_have(cluster: Cluster, options: tuple[object]) -> None:
    program = cluster.write(
        """
        import logging, sys, warnings
        import hdphrs

        def work(number):
            print("out", number)
            print("err", number, file=sys.stderr)
            logging.getLogger("work").info("log %d", number)
            logging.getLogger("work").debug("not wanted")
            warnings.warn("careful")
            print("no end", number, end="")

        def main():
            print("begun")
            for future in [hdphrs.spawn_at(node, work, i) for i, node in enumerate(hdphrs.all_nodes() * 3)]:
                hdphrs.get(future)
            print("done")

        if __name__ == "__main__":
            logging.basicConfig(level=logging.INFO, format="%(hdphrs)s %(levelname)s %(message)s")
            hdphrs.run(main)
            print("last")
        """
    )
    completed = cluster.run("--output", "prefixed", *options, program)
    assert completed.returncode == 0, completed.stderr
    out, err = completed.stdout.splitlines(), completed.stderr.splitlines()
    assert (out[0], out[-2:]) == ("begun", ["done", "last"])
    tasks = 3 * (2 if options[0] == "--local-nodes" else 1)
    for number in range(tasks):
        (line,) = [line for line in out if line.endswith(f"out {number}")]
        node = f"/{number % 2}" if tasks == 6 else ""  # several of one host are told apart
        assert line.startswith(f"[localhost{node}:")
        assert line.endswith(f" work 0.{number}] out {number}")
        assert any(line.endswith(f"work 0.{number}] no end {number}") for line in out)
        assert any(line.endswith(f"work 0.{number}] err {number}") for line in err)
        assert any(line.endswith(f"work 0.{number}] INFO log {number}") for line in err)
    assert not [line for line in err if "not wanted" in line]
    assert len([line for line in err if "UserWarning: careful" in line]) == 1


@pytest.mark.slow
def test_output_into_a_pipe_is_raw_and_errors_have_a_prefix(cluster: Cluster) -> None:
    program = cluster.write(
        """
        import sys
        import hdphrs

        def work(number):
            print("same")
            print("error", file=sys.stderr)

        if __name__ == "__main__":
            for future in [hdphrs.spawn(work, n) for n in range(20)]:
                hdphrs.get(future)
        """
    )
    completed = cluster.run(program)
    assert completed.stdout == "same\n" * 20
    shown = [line for line in completed.stderr.splitlines() if line.startswith("[localhost:")]
    counted = [line for line in completed.stderr.splitlines() if line not in shown]
    assert all(line.endswith("] error") for line in [*shown, *counted])
    told = [int(line.removeprefix("[").split()[0]) for line in counted]
    assert len(shown) + sum(told) == 20
    assert len(shown) < 10  # one, and another one whenever two seconds have passed
    raw = cluster.run("--output", "raw", program)
    assert (raw.stdout, raw.stderr) == ("same\n" * 20, "error\n" * 20)


@pytest.mark.slow
def test_last_lines_of_a_process_that_dies_come_all_the_same(cluster: Cluster) -> None:
    program = cluster.write(
        """
        import ctypes, os, sys
        import hdphrs

        def doomed(x):
            print("on its way", x)
            print("about to", end=" ")
            print("die", x, flush=True)
            os.write(2, b"from below\\n")
            ctypes.string_at(0)

        if __name__ == "__main__":
            try:
                hdphrs.get(hdphrs.spawn(doomed, 1))
            except hdphrs.errors.TaskCrashedError as error:
                print("caught", len(error.attempts))
        """
    )
    completed = cluster.run("--attempts", 2, "--output", "prefixed", program)
    assert completed.stdout.count(" doomed 0] on its way 1\n") == 2
    assert completed.stdout.count(" doomed 0] about to die 1\n") == 2
    assert completed.stdout.endswith("caught 2\n")
    assert completed.stderr.count(" doomed 0] from below\n") == 2
    assert completed.stderr.count(" doomed 0] Fatal Python error: Segmentation fault\n") == 2


@pytest.mark.slow
def test_program_with_a_stream_of_its_own_gets_the_lines_there(cluster: Cluster) -> None:
    """As in a notebook, whose standard output is no descriptor."""
    program = cluster.write(
        """
        import io, sys
        import hdphrs

        def work(number):
            print("number", number)

        if __name__ == "__main__":
            shown, sys.stdout = sys.stdout, io.StringIO()
            hdphrs.get(hdphrs.spawn(work, 1))
            cell, sys.stdout = sys.stdout, io.StringIO()
            hdphrs.get(hdphrs.spawn(work, 2))
            for text in (cell, sys.stdout):
                print(repr(text.getvalue()), file=shown)
        """
    )
    completed = cluster.run(program, python=True)
    first, second = completed.stdout.splitlines()
    assert first.endswith("work 0] number 1\\n'")
    assert second.endswith("work 1] number 2\\n'")


@pytest.mark.slow
def test_flood_costs_neither_the_run_nor_the_results(cluster: Cluster) -> None:
    program = cluster.write(
        """
        import hdphrs

        def chatter(number):
            for i in range(20_000):
                print(number, i)
            return number

        if __name__ == "__main__":
            print("sum", sum(hdphrs.get(f) for f in [hdphrs.spawn(chatter, n) for n in range(6)]))
        """
    )
    completed = cluster.run("--output", "prefixed", program)
    lines = completed.stdout.splitlines()
    assert "sum 15" in lines
    assert len(lines) < 120_000
    held = [line for line in completed.stderr.splitlines() if line.startswith("hdphrs: held back ")]
    assert len(lines) - 1 + sum(int(line.split()[3]) for line in held) == 120_000


@pytest.mark.slow
def test_children_of_a_task_are_heard_too(cluster: Cluster) -> None:
    program = cluster.write(
        """
        import os, subprocess, sys
        import hdphrs

        def work():
            subprocess.run([sys.executable, "-c", "print('of a child')"], check=True, stdout=sys.stdout)
            sys.stdout.flush()
            pid = os.fork()
            if not pid:
                print("of a fork", flush=True)
                os._exit(0)
            os.waitpid(pid, 0)

        if __name__ == "__main__":
            hdphrs.get(hdphrs.spawn(work))
        """
    )
    completed = cluster.run("--output", "prefixed", program)
    lines = [line.split("] ") for line in completed.stdout.splitlines()]
    assert [line for _, line in lines] == ["of a child", "of a fork"], completed.stderr
    assert all(label.startswith("[localhost:") for label, _ in lines)


@pytest.mark.slow
def test_explained_run_accounts_for_all_its_tasks_and_all_its_time(cluster: Cluster) -> None:
    program = cluster.write(
        """
        import hdphrs, time

        def tree(depth):
            if depth == 0:
                time.sleep(0.005)
                return 1
            left = hdphrs.spawn(tree, depth - 1)
            return tree(depth - 1) + hdphrs.get(left)

        if __name__ == "__main__":
            print(hdphrs.run(tree, 6))
        """
    )
    path = cluster.folder / "report.json"
    completed = cluster.run("--explain", "--report", path, "--local-nodes", 2, "--cores", 1, program)
    assert completed.stdout == "64\n"
    assert completed.stderr.startswith("hdphrs: explained: ")
    assert "what to change: " in completed.stderr
    report = json.loads(path.read_text())
    told = report["explained"]
    assert told["cores"] == 2
    assert told["busy_s"] >= 64 * 0.005
    assert told["busy_s"] + told["idle_s"] == pytest.approx(2 * report["wall_s"], rel=0.01)
    assert sum(told["grains"].values()) == told["exported"]
    assert 0.005 <= told["span_s"] <= told["work_s"]
    assert told["work_s"] >= 64 * 0.005


@pytest.mark.slow
def test_child_that_runs_while_a_value_is_pickled_is_explained_too(cluster: Cluster) -> None:
    program = cluster.write(
        """
        import hdphrs, time

        def child():
            time.sleep(0.05)
            return 42

        class Lazy:
            def __init__(self, future):
                self.future = future

            def __reduce__(self):
                return int, (hdphrs.get(self.future),)

        def main():
            return Lazy(hdphrs.spawn(child))

        if __name__ == "__main__":
            print(hdphrs.run(main))
        """
    )
    path = cluster.folder / "report.json"
    completed = cluster.run("--explain", "--report", path, "--cores", 1, program)
    assert completed.stdout == "42\n", completed.stderr
    assert json.loads(path.read_text())["explained"]["work_s"] >= 0.05


@pytest.mark.slow
@pytest.mark.parametrize(("options", "count"), [(("--advice",), 1), (("--no-advice",), 0)])
def test_advice_is_given_once_unless_it_is_not_wanted(
    cluster: Cluster, options: tuple[object, ...], count: int
) -> None:
    program = cluster.write(
        """
        import hdphrs

        if __name__ == "__main__":
            futures = [hdphrs.spawn(len, bytes(20 << 20)) for _ in range(2)]
            print(sum(map(hdphrs.get, futures)))
        """
    )
    completed = cluster.run(*options, program)
    assert completed.stdout == f"{40 << 20}\n"
    assert completed.stderr.count("hdphrs: advice: a task len takes 20.0 MiB along") == count
    assert completed.stderr.count("\n") == count
