"""Runs a suite: pytest in the suite's environment, again and again until every test has an outcome.

What lives here: the processes and their limits.  A test that takes its process down, or hangs, has failed; the tests
after it are run by the next process.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from dataclasses import dataclass, field
from fcntl import LOCK_EX, LOCK_NB, flock
from pathlib import Path
from time import monotonic

from tests.foreign.environment import folder_of, python_of
from tests.foreign.expectations import FAILED, LEFT_OUT, Expectations
from tests.foreign.plugged import outcomes as plugin
from tests.foreign.plugged.startup import SUITE
from tests.foreign.suite import FOLDER, Suite

EVENTS = "events.jsonl"
"""The outcomes, in the suite's folder of runs."""

PROCESSES_MAX = 20
"""A suite whose tests take more processes down is given up."""

ENDS_S_MAX = 20.0
"""A process that has been told to show its stacks and to end has this time for it."""

LAST_WORDS_CHARS_MAX = 3_000


class RunError(Exception):
    """A suite does not run at all."""


@dataclass(slots=True)
class Run:
    """What became of each test."""

    outcomes: dict[str, str] = field(default_factory=dict)
    why: dict[str, str] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    took_s: float = 0.0


def command_of(suite: Suite, share: str) -> list[str]:
    """What runs the share in the suite's folder, for a reader to repeat."""
    tests = suite.ci if share == "ci" and suite.ci else suite.tests
    return ["python", "-m", "pytest", "-p", f"plugged.{suite.plugin}", *tests]


def run(suite: Suite, share: str) -> Run:
    """Run the tests of a share.

    Raises:
        RunError: pytest does not start, or the suite takes too many processes down.
    """
    work = _work(suite)
    work.mkdir(parents=True, exist_ok=True)
    events, left_out, said = work / EVENTS, work / "left_out", work / "output.txt"
    lock = (work / "lock").open("w")
    try:
        flock(lock, LOCK_EX | LOCK_NB)
    except BlockingIOError as error:
        raise RunError(f"{suite.name} is being run already") from error
    with lock:
        (work / "share").write_text(share)
        return _run_all(suite, share, events, left_out, said)


def last_run(suite: Suite, share: str) -> Run:
    """What became of the tests in the last run, for other expectations.

    Raises:
        RunError: there was none of this share.
    """
    told = _work(suite) / "share"
    if not told.exists() or told.read_text() != share:
        raise RunError(f"the last run of {suite.name} was not of the share {share}")
    found = _read(_work(suite) / EVENTS)
    if not found.outcomes or "started" in found.outcomes.values():
        raise RunError(f"{suite.name} has not been run to its end")
    return found


def _work(suite: Suite) -> Path:
    return FOLDER / "runs" / suite.name


def _run_all(suite: Suite, share: str, events: Path, left_out: Path, said: Path) -> Run:
    """Run the tests of a share, with these files."""
    events.unlink(missing_ok=True)
    said.unlink(missing_ok=True)
    names = Expectations.read(suite.expectations).names(LEFT_OUT)
    left_out.write_text("\n".join(names + (list(suite.ci_left_out) if share == "ci" else [])))
    options = (
        "-p",
        "plugged.outcomes",
        "-p",
        "no:cacheprovider",
        "--continue-on-collection-errors",
        "-q",
        "--tb=native",
    )
    command = [*command_of(suite, share), *options]
    command[0] = str(python_of(suite))
    environ = _environ(suite) | {
        plugin.EVENTS: str(events),
        plugin.LEFT_OUT: str(left_out),
        plugin.LIMIT: str(suite.test_s_max),
    }
    began_s = monotonic()
    for _ in range(PROCESSES_MAX):
        status = _run(command, folder_of(suite), environ, said, began_s + suite.suite_s_max - monotonic())
        found = _read(events)
        unfinished = [test for test, outcome in found.outcomes.items() if outcome == "started"]
        for test in unfinished:
            _finish(events, test, f"the process ended with status {status}, or had to be ended")
        if status in (0, 1, 5) and not unfinished:
            break
        if not unfinished:
            raise RunError(f"{suite.name}: pytest ended with status {status}\n{_end_of(said)}")
        if monotonic() - began_s > suite.suite_s_max:
            raise RunError(f"{suite.name}: more than {suite.suite_s_max:.0f} s\n{_end_of(said)}")
    else:
        raise RunError(f"{suite.name}: more than {PROCESSES_MAX} processes have ended\n{_end_of(said)}")
    found = _read(events)
    found.took_s = monotonic() - began_s
    return found


def _environ(suite: Suite) -> dict[str, str]:
    """Ours, without what is meant for this Python."""
    ours = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "PYTEST", "COVERAGE"))}
    path = os.pathsep.join([str(python_of(suite).parent), os.environ.get("PATH", "")])
    return ours | {SUITE: suite.name, "HDPHRS_ADVICE": "0", "PATH": path, **suite.environ}


def _run(command: list[str], folder: Path, environ: dict[str, str], said: Path, limit_s: float) -> int:
    """The status of pytest, whose output is added to a file; a process that takes too long shows its stacks."""
    with said.open("ab") as output:
        process = subprocess.Popen(
            command,
            cwd=folder,
            env=environ,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
        try:
            return process.wait(max(limit_s, 1.0))
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGABRT)  # pytest has a handler that shows the stacks
            try:
                return process.wait(ENDS_S_MAX)
            except subprocess.TimeoutExpired:
                return -1
        finally:
            _end_group(process.pid)
            process.wait()


def _end_group(group: int) -> None:
    """End what a test has left, too."""
    try:
        os.killpg(group, signal.SIGKILL)
    except ProcessLookupError:
        return


def _read(events: Path) -> Run:
    found = Run()
    for line in events.read_text().splitlines() if events.exists() else []:
        event = json.loads(line)
        test = event["test"]
        found.outcomes[test] = event["outcome"]
        found.why[test] = event.get("why", "")
        found.seconds[test] = event.get("seconds", 0.0)
    return found


def _finish(events: Path, test: str, why: str) -> None:
    with events.open("a") as file:
        file.write(json.dumps({"test": test, "outcome": FAILED, "seconds": 0.0, "why": why}) + "\n")


def _end_of(said: Path) -> str:
    return said.read_text(errors="replace")[-LAST_WORDS_CHARS_MAX:] if said.exists() else ""


def show(found: Run, tests: tuple[str, ...], title: str) -> None:
    """Name some tests, and what went wrong."""
    for test in tests:
        print(f"  {title}: {test}\n      {found.why.get(test, '')}", file=sys.stderr, flush=True)
