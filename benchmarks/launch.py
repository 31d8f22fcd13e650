"""Starting programs from outside, as a user would, and timing them by the wall clock."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

REPOSITORY = Path(__file__).parents[1]
PROGRAMS = Path(__file__).with_name("programs")
EXAMPLES = REPOSITORY / "examples"
DEADLINE_S = 600.0
"""After this a program counts as hanging."""

HDPHRS_RUN = ("-m", "hdphrs", "run")

FORGOTTEN = ("VIRTUAL_ENV", "PYTHONHOME", "PYTHONDONTWRITEBYTECODE")
"""Variables of ours that would send a program to another Python, or have each process compile what it imports."""

python = sys.executable
"""Of which hdphrs is measured; `installed.as_installed` has another."""
surroundings: Mapping[str, str] = os.environ
"""Its environment."""


class BenchmarkError(Exception):
    """A program failed, hung, or gave a wrong answer: there is nothing to measure."""


@dataclass(frozen=True, slots=True)
class Run:
    """One finished run of a program."""

    started_at: float
    """`time.time()` just before the process was made."""
    seconds: float
    """From there to its end."""
    last_line: str
    """The last that it wrote to stdout."""
    cpu_s: float
    """Processor time of all its processes; if other programs were launched meanwhile, of these too."""


def launch(arguments: Sequence[str], folder: Path = REPOSITORY, more: Mapping[str, str] | None = None) -> Run:
    """Run `python *arguments` in `folder` to its end.

    Args:
        more: what its environment has besides ours.

    Raises:
        BenchmarkError: it failed, took longer than `DEADLINE_S`, or printed nothing.
    """
    command = [python, *arguments]
    started_at, start, start_cpu_s = time.time(), time.perf_counter(), children_cpu_s()
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            cwd=folder,
            timeout=DEADLINE_S,
            check=False,
            env={**surroundings, **(more or {})},
        )
    except subprocess.TimeoutExpired as hung:
        raise BenchmarkError(f"no end after {DEADLINE_S:g} s: {' '.join(command)}") from hung
    seconds = time.perf_counter() - start
    lines = done.stdout.splitlines()
    if done.returncode != 0 or not lines:
        raise BenchmarkError(f"exit status {done.returncode} of: {' '.join(command)}\n{done.stderr}")
    return Run(started_at, seconds, lines[-1], children_cpu_s() - start_cpu_s)


def for_another_python(ours: Mapping[str, str]) -> dict[str, str]:
    """Our environment, as a program gets it that runs under another Python than this one."""
    return {name: value for name, value in ours.items() if name not in FORGOTTEN}


def children_cpu_s() -> float:
    """Processor time of all ended children of this process, and of theirs."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
