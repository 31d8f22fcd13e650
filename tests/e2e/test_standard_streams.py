"""Standard streams that are closed, full, or read by nobody; the answer is in a file."""

from __future__ import annotations

import fcntl
import os
import re
import signal
import socket
import subprocess
import sys
import termios
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import combinations
from pathlib import Path
from subprocess import DEVNULL, PIPE
from time import monotonic
from typing import IO

import pytest

from tests.e2e.harness import DEADLINE_S, MARK, SOON_S, Cluster, eventually, written
from tests.pipes import full_pipe

CLOSED = [closed for count in (1, 2, 3) for closed in combinations("012", count)]
FORMS = {
    "plain": [sys.executable],
    "run": [sys.executable, "-m", "hdphrs", "run", "--cores", "1"],
    "nodes": [sys.executable, "-m", "hdphrs", "run", "--local-nodes", "2", "--cores", "1"],
}
WITHIN_S = 2.0
"""How long a run that is told to end may take."""

SQUARES = """
    import hdphrs, os, sys
    from pathlib import Path

    def square(n):
        print("task", n)
        print("task", n, file=sys.stderr)
        return n * n

    def main():
        return sum(map(hdphrs.get, [hdphrs.spawn(square, n) for n in range(4)]))

    if __name__ == "__main__":
        answer = hdphrs.run(main)
        Path(sys.argv[1]).write_text(f"{answer}\\n")
        print("answer", answer)
"""


def closing(closed: tuple[str, ...], command: list[str]) -> list[str]:
    """The command line of a shell that becomes this command, without these descriptors."""
    return ["sh", "-c", f'exec "$@" {" ".join(f"{number}>&-" for number in closed)}', "sh", *command]


@contextmanager
def started(
    cluster: Cluster,
    command: list[str],
    *,
    stdin: int = DEVNULL,
    stdout: int | IO[str] | None = None,
    stderr: int | None = None,
    then: Callable[[], None] | None = None,
) -> Iterator[subprocess.Popen[bytes]]:
    """A process of this cluster's, in a session of its own."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    process = subprocess.Popen(
        command,
        stdin=stdin,
        stdout=stdout,
        stderr=stderr,
        env=environment | {MARK: cluster.mark},
        start_new_session=True,
        preexec_fn=then,
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
def test_program_whose_standard_streams_are_closed_has_the_right_answer(cluster: Cluster, form: str) -> None:
    program, answer = cluster.write(SQUARES), cluster.folder / "answer"
    for closed in CLOSED:
        command = closing(closed, [*FORMS[form], str(program), str(answer)])
        with started(cluster, command, stdout=PIPE, stderr=PIPE) as process:
            out, err = process.communicate(timeout=DEADLINE_S)
        assert (process.returncode, written(answer)) == (0, ["14"]), (closed, err)
        assert ("1" in closed) or sorted(out.split(b"\n")) == sorted(
            b"|task 0|task 1|task 2|task 3|answer 14".split(b"|")
        )
        assert ("2" in closed) == (b"task 3\n" not in err), closed
        answer.unlink()
        eventually(lambda: not cluster.processes(), SOON_S, f"the end of all without {closed}")


@pytest.mark.slow
@pytest.mark.parametrize("form", ["plain", "run"])
@pytest.mark.parametrize("how", ["before", "after", "silent", "daemon"])
def test_program_that_closes_its_own_streams_has_the_right_answer(cluster: Cluster, form: str, how: str) -> None:
    program = cluster.write(
        """
        import hdphrs, os, sys
        from pathlib import Path

        def turn(data):
            sys.stdout = sys.stderr = None
            print("nobody hears it")
            return data[::-1]

        def work():  # large values travel as descriptors
            return [hdphrs.get(hdphrs.spawn(turn, bytes([n]) + bytes(200_000)))[-1] for n in range(5)]

        if __name__ == "__main__":
            _, how, path = sys.argv
            if how == "after":
                work()
            if how == "silent":
                sys.stdin = sys.stdout = sys.stderr = None
            elif how == "daemon":
                if os.fork():
                    os._exit(0)
                os.setsid()
                os.closerange(0, 1024)
            else:
                for number in (0, 1, 2):
                    os.close(number)
            values = work()
            taken = [number for number in (0, 1, 2) if os.path.exists(f"/proc/self/fd/{number}")]
            Path(path).write_text(f"{values} {taken if how == 'after' else []}\\n")
        """
    )
    if (form, how) == ("run", "daemon"):
        pytest.skip("the end of the program's process is the end of its run")
    answer = cluster.folder / "answer"
    with started(cluster, [*FORMS[form], str(program), how, str(answer)]) as process:
        assert process.wait(DEADLINE_S) == 0
        eventually(lambda: written(answer) == ["[0, 1, 2, 3, 4] []"], SOON_S, "the answer")
    eventually(lambda: not cluster.processes(), SOON_S, "the end of all")


@pytest.mark.slow
def test_output_that_is_full_fails_no_task_and_is_told(cluster: Cluster) -> None:
    program = cluster.write(
        """
        import hdphrs, sys
        from pathlib import Path

        def work(n):
            print("task", n)
            print("no end", n, end="")
            return n

        if __name__ == "__main__":
            total = sum(hdphrs.get(hdphrs.spawn(work, n)) for n in range(6))
            Path(sys.argv[1]).write_text(f"{total}\\n")
        """
    )
    answer = cluster.folder / "answer"
    for options in ([], ["--output", "raw"], ["--output", "prefixed"]):
        command = [*FORMS["run"], *options, str(program), str(answer)]
        with open("/dev/full", "w") as full, started(cluster, command, stdout=full, stderr=PIPE) as process:
            _, err = process.communicate(timeout=DEADLINE_S)
        assert (process.returncode, written(answer)) == (0, ["15"]), err
        told = "hdphrs: what tasks print cannot be shown, and is lost: standard output: No space left on device\n"
        assert re.sub(r"^\[localhost:0 work \d\] ", "", err.decode()) == told
        answer.unlink()


@pytest.mark.slow
def test_run_whose_output_nobody_reads_recovers_what_a_killed_node_had_and_hears_signals(cluster: Cluster) -> None:
    program = cluster.write(
        """
        import hdphrs, sys, time
        from pathlib import Path

        def work(n):
            for line in range(300):
                print("too much for a pipe " * 3, n, line, file=sys.stderr)
            time.sleep(0.02)
            return n

        if __name__ == "__main__":
            begun, answer = map(Path, sys.argv[1:])
            begun.touch()
            total = sum(hdphrs.get(future) for future in [hdphrs.spawn(work, n) for n in range(100)])
            answer.write_text(f"{total}\\n")
            while True:
                print("and so does the program", flush=True)
        """
    )
    begun, answer = cluster.folder / "begun", cluster.folder / "answer"
    command = [sys.executable, "-m", "hdphrs", "run", "--verbose", "--local-nodes", "3", "--cores", "1"]
    with full_pipe() as (_, writing):
        command += [str(program), str(begun), str(answer)]
        with started(cluster, command, stdout=writing, stderr=writing) as process:
            eventually(begun.exists, DEADLINE_S, "the program")
            os.kill(cluster.nodes()[-1], signal.SIGKILL)
            eventually(lambda: len(cluster.nodes()) == 2, SOON_S, "the end of a node")
            assert eventually(lambda: written(answer), DEADLINE_S, "the answer") == ["4950"]
            process.terminate()
            began_s = monotonic()
            assert process.wait(DEADLINE_S) == -signal.SIGTERM
            assert monotonic() - began_s < WITHIN_S
            eventually(lambda: not cluster.processes(), WITHIN_S, "the end of all")


@pytest.mark.slow
def test_run_whose_output_nobody_reads_ends_with_its_program(cluster: Cluster) -> None:
    program = cluster.write(
        """
        import hdphrs, sys
        def work(n):
            for line in range(1000):
                print("too much for a pipe " * 3, n, line, file=sys.stderr)
            return n
        if __name__ == "__main__":
            sys.exit(sum(hdphrs.get(future) for future in [hdphrs.spawn(work, n) for n in range(4)]))
        """
    )
    for form in FORMS.values():
        with full_pipe() as (_, writing), started(cluster, [*form, str(program)], stderr=writing) as process:
            assert process.wait(SOON_S) == 6
        eventually(lambda: not cluster.processes(), SOON_S, "the end of all")


@pytest.mark.slow
@pytest.mark.parametrize("form", ["plain", "run"])
def test_lines_of_tasks_that_are_read_slowly_come_as_they_are_up_to_the_last_one(cluster: Cluster, form: str) -> None:
    program = cluster.write(
        """
        import hdphrs, sys
        def work(n):
            for line in range(2000):
                print(f"{line:0100}", file=sys.stderr)
            return n
        if __name__ == "__main__":
            print(hdphrs.get(hdphrs.spawn(work, 1)) + hdphrs.get(hdphrs.spawn(work, 2)))
        """
    )
    environment = os.environ | {MARK: cluster.mark, "HDPHRS_OUTPUT": "raw"}
    command = [*FORMS[form], str(program)]
    pause = threading.Event()
    with subprocess.Popen(command, stdin=DEVNULL, stdout=DEVNULL, stderr=PIPE, env=environment) as process:
        assert process.stderr is not None
        lines = 0
        while read := os.read(process.stderr.fileno(), 1 << 16):
            lines += read.count(b"\n")
            pause.wait(0.05)
    assert (process.returncode, lines) == (0, 4000)


@pytest.mark.slow
@pytest.mark.parametrize("ignored", [False, True], ids=["heard", "nohup"])
def test_terminal_that_goes_away_ends_a_run_unless_it_is_to_go_on(cluster: Cluster, ignored: bool) -> None:
    program = cluster.write(
        """
        import hdphrs, sys, time
        from pathlib import Path

        def work(n, go):
            while not go.exists(): time.sleep(0.01)
            print("task", n)
            print("task", n, file=sys.stderr)
            return n

        if __name__ == "__main__":
            begun, go, answer = map(Path, sys.argv[1:])
            futures = [hdphrs.spawn(work, n, go) for n in range(10)]
            begun.touch()
            answer.write_text(f"{sum(map(hdphrs.get, futures))}\\n")
        """
    )
    files = begun, go, answer = [cluster.folder / name for name in ("begun", "go", "answer")]
    master, terminal = os.openpty()

    def take_terminal() -> None:
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)
        signal.signal(signal.SIGHUP, signal.SIG_IGN if ignored else signal.SIG_DFL)

    command = [*FORMS["nodes"], str(program), *map(str, files)]
    with started(cluster, command, then=take_terminal, stdin=terminal, stdout=terminal, stderr=terminal) as process:
        os.close(terminal)
        eventually(begun.exists, DEADLINE_S, "the program")
        os.close(master)
        if ignored:
            go.touch()
            assert process.wait(DEADLINE_S) == 0
            assert written(answer) == ["45"]
        else:
            assert process.wait(SOON_S) == -signal.SIGHUP
        eventually(lambda: not cluster.processes(), WITHIN_S, "the end of all")


@pytest.mark.slow
def test_what_a_node_logs_is_a_line_of_ours(cluster: Cluster) -> None:
    program = cluster.write(
        """
        import hdphrs
        if __name__ == "__main__":
            hdphrs.my_node()
            input()
        """
    )
    process = cluster.start("--local-nodes", 2, "--cores", 1, program)
    for name in eventually(lambda: listening(cluster.nodes()), DEADLINE_S, "the sockets of two nodes"):
        with socket.socket(socket.AF_UNIX) as stranger:
            stranger.connect(name)
            stranger.sendall(b"GET / HTTP/1.0\r\n\r\n" * 10)
            while stranger.recv(1 << 16):
                pass
    assert process.stdin is not None
    process.stdin.write("\n")
    completed = cluster.finish()
    lines = completed.stderr.splitlines()
    assert completed.returncode == 0
    assert len(lines) >= 2
    assert all(line.startswith("hdphrs: ") for line in lines), lines


def listening(pids: list[int]) -> list[bytes]:
    """The abstract names of the sockets on which these two processes listen, if both do."""
    mine = set()
    for pid in pids:
        mine |= {os.readlink(entry) for entry in Path(f"/proc/{pid}/fd").iterdir() if entry.is_symlink()}
    rows = [row.split() for row in Path("/proc/net/unix").read_text().splitlines()[1:]]
    listens = "00010000"
    names = [row[7] for row in rows if row[3] == listens and f"socket:[{row[6]}]" in mine]
    return [b"\0" + name.removeprefix("@").encode() for name in names] if len(names) >= 2 else []


@pytest.mark.slow
def test_what_a_run_writes_is_for_its_user_alone(cluster: Cluster) -> None:
    report, traces = cluster.folder / "report", cluster.folder / "traces"
    program = cluster.write(SQUARES)
    before = os.umask(0)
    try:
        completed = cluster.run(
            "--local-nodes", 2, "--report", report, "--trace-protocol", traces, program, cluster.folder / "answer"
        )
    finally:
        os.umask(before)
    assert completed.returncode == 0, completed.stderr
    modes = [path.stat().st_mode & 0o777 for path in (report, traces, *traces.iterdir())]
    assert modes == [0o600, 0o700, 0o600, 0o600]
