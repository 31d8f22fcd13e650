"""Compiles a model with its switches and lets SPIN's verifier search it.

What lives here: one search, what it reports, and which lines of the model it has reached.  What does not: which
searches there are (`runs.py`, `mutants.py`), and what is made of their reports (`__main__.py`).

Everything happens in a temporary directory, which is gone afterwards.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from spin.story import tell

HERE = Path(__file__).parent
SUFFIX = ".pml"

TOOLS = ("spin", "gcc")
DEPTH_MAX = 200_000
"""Steps of one path.  A search that meets a longer one fails, for it would not be exhaustive."""
MEMORY_MAX_MB = 4_000
TIMEOUT_S = 600

CHECKS = {
    1: "invariant 1: the record covers the newest replica",
    2: "invariant 2: one copy of the newest replica may migrate",
    3: "invariant 3: a future is filled once",
    4: "invariant 4: each copy is in one place",
    5: "a handler raises",
    6: "a message to a node known dead",
    7: "a link is too short for the model",
    8: "a thief or a guard waits for ever",
    9: "the model has no room for another child",
}
"""The numbers in `BROKEN(...)` of core.pml."""
END_STATE = "invalid end state: the program waits for ever"
WITNESS = "witness"
LIVENESS = "acceptance cycle"

Line = tuple[str, int]
"""File name and line number of a model."""


class PanError(RuntimeError):
    """A tool is missing or has failed, or a search was not exhaustive."""


@dataclass(frozen=True, slots=True)
class Search:
    """One model, one scope, one thing to look for."""

    model: str
    switches: tuple[str, ...] = ()
    """-D... for the model."""
    claim: str | None = None
    """Name of an `ltl` block, which must hold; None for assertions and end states."""
    shortest: bool = False
    """Breadth first: what is found is found with the fewest steps."""


@dataclass(frozen=True, slots=True)
class Report:
    """What a search has found."""

    violated: str | None
    """The check that failed, in words; None if all hold."""
    depth: int
    """Of the violation if there is one, else the longest path."""
    states: int
    transitions: int
    memory_mb: float
    time_s: float
    """Of the search, without compiling."""
    lines: frozenset[Line]
    """Lines of the model with anything to execute."""
    reached: frozenset[Line]
    trace: tuple[str, ...]
    """Steps to the violation."""


def missing_tools() -> list[str]:
    """What is not installed."""
    return [tool for tool in TOOLS if shutil.which(tool) is None]


def search(what: Search, *, trace: bool = False) -> Report:
    """Compile and run.

    Args:
        trace: whether to tell the steps to a violation.

    Raises:
        PanError: a tool failed, or the search was cut short by a bound.
    """
    with tempfile.TemporaryDirectory(prefix="hdphrs-spin-") as directory:
        room = Path(directory)
        for source in HERE.glob(f"*{SUFFIX}"):
            shutil.copy(source, room)
        model = what.model + SUFFIX
        _run(["spin", "-a", *what.switches, model], room)
        _run(["gcc", "-O2", "-w", *_options(what), "-o", "pan", "pan.c"], room)
        started = time.monotonic()
        output = _run(["./pan", f"-m{DEPTH_MAX}", *(["-a", "-N", what.claim] if what.claim else [])], room)
        elapsed_s = time.monotonic() - started
        steps: tuple[str, ...] = ()
        if trace and (room / f"{model}.trail").exists():
            trail = _run(["spin", "-t", "-p", "-r", "-s", *what.switches, model], room)
            steps = tell(trail.splitlines(), HERE)
        return _read(output, (room / "pan.c").read_text(), elapsed_s, steps)


def _options(what: Search) -> list[str]:
    options = ["-DCOLLAPSE", f"-DMEMLIM={MEMORY_MAX_MB}"]
    if what.claim is None:
        options += ["-DSAFETY", "-DNOCLAIM"]
    if what.shortest:
        options.append("-DBFS")
    return options


def _run(command: list[str], room: Path) -> str:
    try:
        done = subprocess.run(command, cwd=room, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    except subprocess.TimeoutExpired as error:
        raise PanError(f"{' '.join(command)}: not done within {TIMEOUT_S} s") from error
    if done.returncode:
        raise PanError(
            f"{' '.join(command)}: exit status {done.returncode}\n{done.stdout[-2000:]}{done.stderr[-2000:]}"
        )
    return done.stdout


def _read(output: str, source: str, time_s: float, trace: tuple[str, ...]) -> Report:
    for sign in ("max search depth too small", "out of memory", "memory limit", "VECTORSZ"):
        if sign in output:
            raise PanError(f"the search was not exhaustive: {sign}\n{output[-1500:]}")
    states = re.search(r"^\s*([\d.e+]+) states, stored", output, re.MULTILINE)
    if states is None:
        raise PanError(f"no report from pan\n{output[-1500:]}")
    violated, depth = _violation(output)
    if violated is None:
        longest = re.search(r"depth reached (\d+)", output)
        depth = int(longest[1]) if longest else 0
    lines, reached = _coverage(output, source)
    return Report(
        violated,
        depth,
        int(float(states[1])),
        int(_number(r"^\s*([\d.e+]+) transitions", output)),
        _number(r"^\s*([\d.]+)\s+total actual memory usage", output),
        time_s,
        lines,
        reached,
        trace,
    )


def _number(pattern: str, output: str) -> float:
    found = re.search(pattern, output, re.MULTILINE)
    return float(found[1]) if found else 0.0


def _violation(output: str) -> tuple[str | None, int]:
    if re.search(r"errors: 0$", output, re.MULTILINE):
        return None, 0
    found = re.search(r"^pan:\d+: (.*?)(?: \(at depth (\d+)\))?$", output, re.MULTILINE)
    if found is None:
        raise PanError(f"an error that pan does not explain\n{output[-1500:]}")
    sentence, depth = found[1], int(found[2] or 0)
    if "invalid end state" in sentence:
        return END_STATE, depth
    if "acceptance cycle" in sentence:
        return LIVENESS, depth
    if re.search(r"assertion violated \(?\(?\d+!=\d+\)", sentence):
        return WITNESS, depth
    check = re.search(r"\|\|\s*\((\d)==0\)", sentence)
    return (CHECKS[int(check[1])] if check else sentence), depth


def _coverage(output: str, source: str) -> tuple[frozenset[Line], frozenset[Line]]:
    """Lines with anything to execute, and those of them that were reached.

    A line is reached when one of its states is.  pan's own report names wrong files once a process takes its lines from
    more than a few, so files come from its tables.
    """
    lines: set[Line] = set()
    reached: set[Line] = set()
    reports = re.split(r"^unreached in (.+)$", output, flags=re.MULTILINE)[1:]
    for index, (title, body) in enumerate(zip(reports[::2], reports[1::2], strict=True)):
        if title.startswith("claim") or title == "init" or title == "proctype Monitor":
            continue
        missed = {int(state) for state in re.findall(r", state (\d+), ", body)}
        numbers = _table(rf"short src_ln{index} \[\]", source)
        idle = _table(rf"uchar reached{index} \[\]", source)
        ends = {int(state) for state in re.findall(r", state (\d+), \"-end-\"", body)}
        for state, (number, is_idle) in enumerate(zip(numbers, idle, strict=True)):
            if state == 0 or is_idle or number == 0 or state in ends:
                continue
            line = (_file_of(index, state, source), number)
            lines.add(line)
            if state not in missed:
                reached.add(line)
    return frozenset(lines), frozenset(reached)


def _table(name: str, source: str) -> list[int]:
    found = re.search(name + r" = \{([^}]*)\}", source)
    if found is None:
        raise PanError(f"pan.c has no table {name}")
    return [int(number) for number in found[1].replace(",", " ").split()]


def _file_of(process: int, state: int, source: str) -> str:
    table = re.search(rf"S_F_MAP src_file{process} \[\] = \{{(.*?)\n\}};", source, re.DOTALL)
    if table is None:
        raise PanError(f"pan.c has no table of files of process {process}")
    for name, first, last in re.findall(r'\{ "([^"]*)", (\d+), (\d+) \}', table[1]):
        if int(first) <= state <= int(last):
            return Path(name).name
    return "-"
