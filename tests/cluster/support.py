"""Runs of the command line as real processes, and what is left of them.

Every process of a run inherits a mark in its environment, the folder of its test, so that a test finds all of them,
and no others.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.processes import send, started

REPOSITORY = Path(__file__).parent.parent.parent
MARK = "HDPHRS_TEST_RUN"
GONE_S = 2.0
"""Within this time after the end of a run, nothing of it is left."""
PATIENCE_S = 120.0


def wait_until(condition: Callable[[], object], within_s: float = PATIENCE_S) -> bool:
    """Look again and again until the condition holds; False if it does not in time."""
    deadline_s = time.monotonic() + within_s
    pause = threading.Event()
    while not condition():
        if time.monotonic() > deadline_s:
            return False
        pause.wait(0.02)
    return True


class Run:
    """One `python -m hdphrs ...` in a session of its own, as at a terminal's foreground."""

    def __init__(self, arguments: tuple[object, ...], folder: Path) -> None:
        self._folder = folder
        self.process = subprocess.Popen(
            [sys.executable, "-m", "hdphrs", *map(str, arguments)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
            cwd=folder,
            env=os.environ | environment(folder),
        )

    def finish(self, stdin: bytes = b"", within_s: float = PATIENCE_S) -> tuple[int, str, str]:
        """Wait for its end: exit status, what it printed, what it complained about."""
        output, errors = self.process.communicate(stdin, within_s)
        return self.process.returncode, output.decode(), errors.decode()

    def read_line(self) -> str:
        """The next line that the program prints."""
        assert self.process.stdout is not None
        return self.process.stdout.readline().decode().rstrip("\n")

    def read_error(self) -> str:
        """The next line that it complains."""
        assert self.process.stderr is not None
        return self.process.stderr.readline().decode().rstrip("\n")

    def assert_all_there(self, count: int) -> None:
        """Fail unless so many processes are there: one that just becomes another program is not seen for a moment."""
        assert wait_until(lambda: len(self.processes()) == count), self.processes()

    def interrupt(self) -> None:
        """Ctrl-C: SIGINT to the process group."""
        os.killpg(self.process.pid, signal.SIGINT)

    def processes(self) -> dict[int, str]:
        """The command lines of all living processes of this run, by process id."""
        return processes_of(self._folder)

    def named(self, module: str) -> list[int]:
        """The processes that run this module, the oldest first: process ids begin anew now and then."""
        return sorted((pid for pid, line in self.processes().items() if f" -m {module} " in line), key=started)

    def assert_nothing_left(self) -> None:
        """Fail unless all processes of this run are gone soon enough."""
        assert wait_until(lambda: not self.processes(), GONE_S), self.processes()

    def close(self) -> None:
        """End what a failed test has left."""
        for pid in self.processes():
            send(pid, signal.SIGKILL)
        self.process.kill()
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            if stream is not None:
                with suppress(BrokenPipeError):
                    stream.close()


def processes_of(folder: Path) -> dict[int, str]:
    """The command lines of all living processes that were started by the test with this folder, by process id."""
    mark = f"{MARK}={folder}".encode()
    found = {}
    for entry in Path("/proc").iterdir():
        with suppress(OSError):
            if entry.name.isdigit() and mark in (entry / "environ").read_bytes().split(b"\0"):
                found[int(entry.name)] = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()
    return found


def environment(folder: Path) -> dict[str, str]:
    """What a run needs in its environment: the mark, and the way to this package, installed or not."""
    path = os.pathsep.join(filter(None, [str(REPOSITORY), os.environ.get("PYTHONPATH")]))
    return {MARK: str(folder), "PYTHONPATH": path, "PYTHONUNBUFFERED": "1"}


Start = Callable[..., Run]


@contextmanager
def runs(folder: Path) -> Iterator[Start]:
    """A function that starts runs in `folder`; at the end none of them has left anything."""
    started: list[Run] = []

    def start(*arguments: object) -> Run:
        started.append(Run(arguments, folder))
        return started[-1]

    try:
        yield start
        for run in started:
            run.assert_nothing_left()
    finally:
        for run in started:
            run.close()


def write_program(folder: Path, text: str, name: str = "prog.py") -> Path:
    """A program file with this text."""
    path = folder / name
    path.write_text(text)
    return path


def write_executable(path: Path, text: str) -> Path:
    """An executable script."""
    path.write_text(text)
    path.chmod(0o755)
    return path
