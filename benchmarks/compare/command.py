"""The command line of the comparison: `python -m benchmarks peers`.

Rounds go over the workloads, and each workload over the systems, so that systems that are compared run within minutes
of each other.  A round that is interrupted leaves what it has measured in the JSON file.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from benchmarks.compare.document import marks, put, room
from benchmarks.compare.install import install
from benchmarks.compare.launch import Outcome, run_job
from benchmarks.compare.processes import wait_for_quiet
from benchmarks.compare.report import markdown
from benchmarks.compare.results import Result, machine, read_results, write_results
from benchmarks.compare.systems import BASE, SYSTEMS, VENVS, System
from benchmarks.compare.workloads import FULL, LEAST, LESS, TINY, WORKLOADS
from benchmarks.launch import REPOSITORY

RunJob = Callable[[str, System, str, str | None], Outcome]

TABLES = "peers"
"""As documents know them."""


def main(arguments: Sequence[str], run: RunJob = run_job) -> int:
    """Exit status: 0 done, 1 a system gave a wrong answer, or does not install."""
    options = _parse(arguments)
    if options.install:
        return 0 if install(options.systems) else 1
    earlier = read_results(options.json) if options.json and options.json.exists() else []
    results = list(earlier)
    if not options.read:
        first = 1 + max((result.round for result in earlier), default=0)
        facts = machine()
        for number in range(first, first + options.repeat):
            for workload in options.workloads:
                for system in options.systems:
                    wait_for_quiet(options.patience)
                    job = run(system, SYSTEMS[system], workload, options.size)
                    figures = "  ".join(f"{name} {value:.4g}" for name, value in job.figures.items())
                    print(
                        f"{number} {workload:18}{system:16}{job.outcome[:60]}  {figures}", file=sys.stderr, flush=True
                    )
                    results.append(Result(number, round(os.getloadavg()[0], 2), job))
                    if options.json:
                        write_results(options.json, results, facts)
    tables = markdown(results)
    print(tables)
    if options.write:
        put(options.write, TABLES, tables)
    if options.plots:
        python = VENVS / BASE / "bin" / "python"
        command = [python, "-m", "benchmarks.compare.plots", options.json.resolve(), options.plots.resolve()]
        subprocess.run(command, check=True, cwd=REPOSITORY)
    return 1 if any(result.job.outcome.startswith("wrong") for result in results) else 0


def _parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks peers", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--systems", type=_names(SYSTEMS), default=list(SYSTEMS), help=f"of {','.join(SYSTEMS)}")
    parser.add_argument(
        "--workloads", type=_names(WORKLOADS), default=list(WORKLOADS), help=f"of {','.join(WORKLOADS)}"
    )
    parser.add_argument("--repeat", type=int, default=3, help="rounds (default %(default)s)")
    parser.add_argument("--size", choices=[FULL, LESS, LEAST, TINY], help="of all workloads (default: by system)")
    parser.add_argument("--patience", type=float, default=0.0, help="seconds to wait before each for a quiet machine")
    parser.add_argument("--json", type=Path, metavar="FILE", help="add the results to those in FILE")
    parser.add_argument("--plots", type=Path, metavar="FOLDER", help="draw what FILE has")
    parser.add_argument("--read", action="store_true", help="measure nothing: show what FILE has")
    parser.add_argument("--write", type=Path, metavar="FILE.md", help=f"put the tables there, after {marks(TABLES)[0]}")
    parser.add_argument("--install", action="store_true", help="install the systems, and measure nothing")
    options = parser.parse_args(arguments)
    if (options.read or options.plots) and not options.json:
        parser.error("--read and --plots need --json FILE")
    if options.read and not options.json.exists():
        parser.error(f"there is no {options.json}")
    if options.repeat < 1:
        parser.error("--repeat must be at least 1")
    if options.write:
        room(options.write, TABLES)
    return options


def _names(known: Iterable[str]) -> Callable[[str], list[str]]:
    def names(text: str) -> list[str]:
        chosen = text.split(",")
        if unknown := [name for name in chosen if name not in known]:
            raise argparse.ArgumentTypeError(f"no {unknown[0]}; there are {', '.join(known)}")
        return chosen

    return names
