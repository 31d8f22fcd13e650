"""What tasks print, log and warn of, as the user of a real run sees it."""

from __future__ import annotations

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
        assert line.startswith("[localhost:")
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
    first, *_, last = completed.stderr.splitlines()
    assert first.startswith("[localhost:")
    assert first.endswith("] error")
    assert last == "[19 more] error"
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
