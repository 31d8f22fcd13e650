"""Running real programs on real clusters, and checking that nothing of them is left.

Every process of a run inherits an environment variable with the name of its test, by which it is found again.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from time import monotonic, sleep
from typing import TypeVar

from hdphrs.observe.replay import replay
from hdphrs.wire.settings import NODE_MODULE, ROOT_NODE
from tests.processes import gone, send, started, stat

T = TypeVar("T")

MARK = "HDPHRS_TEST_MARK"
DEADLINE_S = 120.0
GONE_S = 2.0
"""Within this time after the end of a run, nothing of it is left."""
SOON_S = 10.0
"""Shorter than what hdphrs or a task of a test waits for in vain."""
HEARS_CTRL_C = """
    import atexit, signal
    signal.signal(signal.SIGALRM, lambda *_: None)
    signal.setitimer(signal.ITIMER_REAL, 1, 1)
    atexit.register(signal.setitimer, signal.ITIMER_REAL, 0)
"""
"""Begins a program that is interrupted while it waits: Python overlooks a signal that comes just before it waits for
something, until it is woken by another one."""
EXAMPLES = Path(__file__).parents[2] / "examples"


def eventually(condition: Callable[[], T], deadline_s: float, what: str) -> T:
    """Wait until a condition holds; its value."""
    end_s = monotonic() + deadline_s
    while True:
        value = condition()
        if value:
            return value
        assert monotonic() < end_s, f"not within {deadline_s} s: {what}"
        sleep(0.01)


def written(path: Path) -> list[str]:
    """The whole lines of a file that somebody may still be writing; none, if it is not there yet."""
    try:
        return path.read_text().split("\n")[:-1]
    except FileNotFoundError:
        return []


def entries(ledger: Path) -> int:
    """How many results a ledger holds, which a run may be using; 0 if there is none yet."""
    command = [sys.executable, "-m", "hdphrs", "ledger", "stat", str(ledger)]
    said = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    return int(said.split()[1]) if said.startswith("entries: ") else 0


class Cluster:
    """One run of a program, with all the processes that belong to it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.mark = uuid.uuid4().hex
        self.process: subprocess.Popen[str] | None = None
        self.recorded = False
        """Whether runs record their protocol, to be replayed at the end."""
        self.traces: list[Path] = []

    def write(self, source: str, name: str = "prog.py") -> Path:
        """Write a program into the test's folder."""
        path = self.folder / name
        path.write_text(textwrap.dedent(source))
        return path

    def start(self, *command: object, python: bool = False, stdin: int = subprocess.PIPE) -> subprocess.Popen[str]:
        """Start `hdphrs run COMMAND...`, or plain `python COMMAND...`."""
        prefix = [sys.executable] if python else [sys.executable, "-m", "hdphrs", "run"]
        if self.recorded and not python:
            self.traces.append(self.folder / f"trace-{len(self.traces)}")
            prefix += ["--trace-protocol", str(self.traces[-1])]
        self.process = subprocess.Popen(
            [*prefix, *map(str, command)],
            text=True,
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
            env=os.environ | {MARK: self.mark},
        )
        return self.process

    def start_announced(
        self, *options: object, example: str, arguments: list[str], hold: bool = False
    ) -> subprocess.Popen[str]:
        """Start an example under `hdphrs run OPTIONS...`, and return when its program begins.

        Args:
            hold: it goes on when there is a line in its standard input.
        """
        program = self.write(
            f"""
            import runpy, sys
            print("begun", flush=True)
            {hold} and input()
            sys.argv = {[str(EXAMPLES / example), *arguments]!r}
            runpy.run_path(sys.argv[0], run_name="__main__")
            """
        )
        process = self.start(*options, program)
        assert process.stdout is not None
        assert process.stdout.readline() == "begun\n"
        return process

    def finish(self, deadline_s: float = DEADLINE_S) -> subprocess.CompletedProcess[str]:
        """Wait for the end of what was started; what it said."""
        assert self.process is not None
        out, err = self.process.communicate(timeout=deadline_s)
        return subprocess.CompletedProcess(self.process.args, self.process.returncode, out, err)

    def run(
        self, *command: object, python: bool = False, deadline_s: float = DEADLINE_S
    ) -> subprocess.CompletedProcess[str]:
        """Start and finish."""
        self.start(*command, python=python)
        return self.finish(deadline_s)

    def processes(self, module: str = "") -> list[int]:
        """Living processes of this run, oldest first; only those of `python -m MODULE` if one is given."""
        return sorted((pid for pid, words in self._commands().items() if not module or module in words), key=started)

    def nodes(self) -> list[int]:
        """Process ids of the nodes, the root first, then the oldest.

        A scheduler is the copy of a node for a moment, until it has given itself another name.
        """
        commands = self._commands()
        found = {pid: words for pid, words in commands.items() if NODE_MODULE in words}
        parents = {pid: stat(pid)[1:2] for pid in found}
        copies = {pid for pid, parent in parents.items() if not parent or int(parent[0]) in found}
        return sorted(found.keys() - copies, key=lambda pid: (ROOT_NODE not in found[pid], started(pid)))

    def schedulers(self) -> list[int]:
        """Process ids of the schedulers."""
        return self.processes("hdphrs.scheduler")

    def _commands(self) -> dict[int, list[str]]:
        """The command line of each living process of this run."""
        mark = f"{MARK}={self.mark}".encode()
        found = {}
        for pid in [int(name) for name in os.listdir("/proc") if name.isdigit()]:
            with suppress(OSError):
                if not gone(pid) and mark in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0"):
                    found[pid] = Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").split("\0")
        return found

    def replay(self) -> None:
        """Everything that was recorded is what the protocol's core would do, and the invariants hold."""
        for folder in self.traces:
            verdict = replay(str(folder))
            assert verdict.conforming, "\n".join([f"hdphrs replay {folder}", *verdict.sentences()])

    def kill_rest(self) -> None:
        """End whatever is left."""
        for pid in self.processes():
            send(pid, signal.SIGKILL)
        if self.process is not None:
            self.process.kill()
            self.process.communicate()


@contextmanager
def cluster(folder: Path) -> Iterator[Cluster]:
    """A cluster for one test; fails if a process outlives its run."""
    run = Cluster(folder)
    shared_memory = _shared_memory()
    try:
        yield run
        if run.process is not None:
            eventually(lambda: run.process and run.process.poll() is not None, GONE_S, "the end of the run")
        eventually(lambda: not run.processes(), GONE_S, "the end of all its processes")
        eventually(lambda: _shared_memory() <= shared_memory, GONE_S, "the end of all its shared memory")
        run.replay()
    finally:
        run.kill_rest()


def _shared_memory() -> set[Path]:
    """Named shared memory, which are files; those of others are semaphores, and folders, as joblib's are."""
    with suppress(FileNotFoundError), os.scandir("/dev/shm") as entries:
        return {Path(entry) for entry in entries if entry.is_file() and not entry.name.startswith("sem.")}
    return set()


def result_of(completed: subprocess.CompletedProcess[str]) -> str:
    """What an example printed as its result; its exit status must be 0."""
    assert completed.returncode == 0, completed.stderr
    last = completed.stdout.strip().splitlines()[-1]
    assert last.startswith("result: "), completed.stdout
    return last.removeprefix("result: ")
