"""What spawn and get of a task cost that nobody steals, without a clock: so that a regression shows on a busy machine.

What lives here: two counts, and what they were when recorded (`instructions.json`, by Python's minor version).

* Bytecodes that spawn + get add to a call: exact, and the same on every machine; a test holds them.
* Instructions of the processor, counted by callgrind: these see what happens in C too, but hang on how this Python was
  built, so they are compared only where they were recorded for the same build.

Both are differences: of fib with every call spawned and plain fib, and instructions also of a larger and a smaller
fib, so that starting and warming up are not in them.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import subprocess
import sys
import sysconfig
from collections.abc import Iterator, Sequence
from hashlib import sha256
from pathlib import Path

from benchmarks.figures import Budget, Figure, table
from benchmarks.launch import REPOSITORY, BenchmarkError, launch

RECORD = Path(__file__).with_suffix(".json")

TOLERANCE = 0.02
"""Instructions may become more by this share before that counts as a regression."""

EXACT = 1.00001
"""Bytecodes may not; the record is rounded."""

SMALL, LARGE = 14, 19
"""Numbers of Fibonacci of the instructions."""

COUNTED = 12
"""And of the bytecodes: each costs a call of the counter."""

PROGRAM = ("-m", "benchmarks.programs.spawn_cost")
VALGRIND = ("valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null")


def calls_of(number: int) -> int:
    """How many calls fib makes, its own included."""
    one, other = 1, 1
    for _ in range(number - 1):
        one, other = other, one + other + 1
    return other


def bytecodes() -> float:
    """Executed for spawn + get of one task, beyond a plain call."""
    spawned, plain = (
        int(launch([*PROGRAM, kind, str(COUNTED), "--bytecodes"]).last_line) for kind in ("spawned", "plain")
    )
    return (spawned - plain) / calls_of(COUNTED)


def instructions() -> float:
    """Of the processor, for spawn + get of one task, beyond a plain call.

    Raises:
        BenchmarkError: there is no valgrind, or it cannot run this Python.
    """
    spawned, plain = (_collected(kind, LARGE) - _collected(kind, SMALL) for kind in ("spawned", "plain"))
    return (spawned - plain) / (calls_of(LARGE) - calls_of(SMALL))


def _collected(kind: str, number: int) -> int:
    """Instructions of a whole process."""
    command = [*VALGRIND, sys.executable, *PROGRAM, kind, str(number)]
    given = os.environ | {"PYTHONHASHSEED": "0"}
    try:
        done = subprocess.run(command, capture_output=True, text=True, cwd=REPOSITORY, env=given, check=False)
    except FileNotFoundError as missing:
        raise BenchmarkError("there is no valgrind here: apt-get install valgrind") from missing
    found = re.search(r"Collected : (\d+)", done.stderr)
    if done.returncode or found is None:
        raise BenchmarkError(f"exit status {done.returncode} of: {' '.join(command)}\n{done.stderr}")
    return int(found[1])


# ---- what was recorded -----------------------------------------------------------------------------------------


def minor() -> str:
    """Of this Python, as "3.11"."""
    return ".".join(platform.python_version_tuple()[:2])


def build() -> str:
    """What the number of instructions hangs on: version, compiler and how Python was configured."""
    how = sha256(str(sysconfig.get_config_var("CONFIG_ARGS")).encode()).hexdigest()[:8]
    return f"{platform.python_version()} {platform.machine()} {platform.python_compiler()} {how}"


def recorded() -> dict[str, float | str]:
    """What there is for this version of Python; nothing if there is nothing."""
    found: dict[str, float | str] = json.loads(RECORD.read_text()).get(minor(), {})
    return found


def count() -> Iterator[Figure]:
    """Bytecodes, against the record."""
    yield Figure("spawn + get, counted", "bytecodes", (bytecodes(),), _bound("bytecodes", EXACT))


def count_instructions() -> Iterator[Figure]:
    """Instructions, against the record if that is of the same build."""
    same = recorded().get("build") == build()
    yield Figure(
        "spawn + get, counted",
        "instructions",
        (instructions(),),
        _bound("instructions", 1 + TOLERANCE) if same else None,
    )


def _bound(name: str, slack: float) -> Budget | None:
    figure = recorded().get(name)
    return Budget(float(figure) * slack) if figure is not None else None


def record(figures: Sequence[Figure]) -> None:
    """What this version of Python is to keep to from now on."""
    known = json.loads(RECORD.read_text()) if RECORD.exists() else {}
    known[minor()] = {"build": build(), **{figure.unit: round(figure.value, 3) for figure in figures}}
    RECORD.write_text(
        json.dumps(dict(sorted(known.items(), key=lambda row: int(row[0].split(".")[1]))), indent=2) + "\n"
    )


def main(arguments: Sequence[str]) -> int:
    """Exit status: 0 kept, 1 more than was recorded, 2 it could not be counted."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks instructions", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("--record", action="store_true", help=f"write what is counted to {RECORD.name}")
    options = parser.parse_args(arguments)
    try:
        figures = [*count(), *count_instructions()]
    except BenchmarkError as error:
        print(f"benchmarks: {error}", file=sys.stderr)
        return 2
    print(table(figures))
    if options.record:
        record(figures)
    return 1 if any(figure.verdict == "MISSED" for figure in figures) and not options.record else 0
