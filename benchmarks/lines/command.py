"""The command line of the bounds: `python -m benchmarks lines`.

A round goes over the workloads that the lines need, and for each over the systems, the other way round every second
time.  What is compared by the clock has a second turn at once, in the opposite order, of those that the line hangs on.
What has been measured so far is in the JSON file, should a round be interrupted.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from benchmarks.compare.document import marks, put, room
from benchmarks.compare.launch import Outcome, run_job
from benchmarks.compare.processes import wait_for_quiet
from benchmarks.compare.report import figure
from benchmarks.compare.results import Result, machine, read_results, write_results
from benchmarks.compare.systems import SYSTEMS, System
from benchmarks.compare.workloads import FULL, TINY
from benchmarks.lines.bounds import LINES, RUNNERS_UP, TURNS, Line, plan, turns_of
from benchmarks.lines.judge import MISSED, UNKNOWN, Rounds, Verdict, contenders, judge
from benchmarks.lines.own import OWN_WORKLOADS, run_own

RunJob = Callable[[str, System, str, str | None, str], Outcome]
RunOwn = Callable[[str, str, int], Outcome]

TABLE = "lines"
"""As documents know it."""

HEADING = f"""\
A sample is one figure, or sets two of the same turn of the same round against each other; each is of a run of its own.
A round has {TURNS} turns of the paper's programs, tasks of 1 ms, no-ops and round trips: all systems, then, in the
opposite order, hdphrs, the ideal and the {RUNNERS_UP} of the others that were fastest. Of everything else it has one.
"""


def main(arguments: Sequence[str], run: RunJob = run_job, own: RunOwn = run_own) -> int:
    """Exit status: 0 all lines hold, 1 one does not, 2 one could not be measured."""
    options = _parse(arguments)
    lines = [line for line in LINES if any(part in line.what for part in options.only)]
    results = read_results(options.json) if options.json and options.json.exists() else []
    facts, began_s = machine(), time.monotonic()
    if not options.read:
        first = 1 + max((result.round for result in results), default=0)
        for number in range(first, first + options.repeat):
            for job, turn in _round(lines, options, number, run, own):
                results.append(Result(number, round(os.getloadavg()[0], 2), job, turn))
                if options.json:
                    write_results(options.json, results, facts)
    rounds = Rounds(results)
    verdicts = [judge(line, rounds) for line in lines]
    if options.json and not options.read:
        write_results(options.json, results, facts, lines=[verdict.facts() for verdict in verdicts])
    table = markdown(verdicts)
    print(table)
    print(f"{time.monotonic() - began_s:.0f} s", file=sys.stderr)
    if options.write:
        put(options.write, TABLE, table)
    words = [verdict.word for verdict in verdicts]
    return 2 if UNKNOWN in words else int(MISSED in words)


def _round(
    lines: Sequence[Line], options: argparse.Namespace, number: int, run: RunJob, own: RunOwn
) -> Iterator[tuple[Outcome, int]]:
    """What has been measured, and in which turn."""
    for workload, systems in plan(lines).items():
        seen: list[Outcome] = []
        systems = systems[:: 1 if number % 2 else -1]
        with tempfile.TemporaryDirectory(prefix="hdphrs-lines-") as memory:
            for turn in range(1, 1 + turns_of(workload)):
                for system in systems:
                    wait_for_quiet(options.patience)
                    if workload in OWN_WORKLOADS:
                        job = own(workload, options.size or FULL, number)
                    else:
                        job = run(system, SYSTEMS[system], workload, options.size, memory)
                    _tell(number, job)
                    seen.append(job)
                    yield job, turn
                again = contenders(lines, workload, seen)
                systems = [system for system in reversed(systems) if system in again]


def _tell(number: int, job: Outcome) -> None:
    figures = "  ".join(f"{name} {value:.4g}" for name, value in job.figures.items())
    print(f"{number} {job.workload:18}{job.system:16}{job.outcome[:60]}  {figures}", file=sys.stderr, flush=True)


def markdown(verdicts: Sequence[Verdict]) -> str:
    """The table."""
    rows = [HEADING, "| what | must be | median | least – most | samples | |", "|---|---|---|---|---|---|"]
    for verdict in verdicts:
        line = verdict.line
        bound = f"{line.budget or ''} {line.unit}".replace("<=", "≤").replace(">=", "≥").strip()
        what = f"{line.what} ({SYSTEMS[verdict.best].name})" if verdict.best else line.what
        if verdict.value is None:
            rows.append(f"| {what} | {bound} | – | – | 0 | {verdict.word}: {verdict.trouble} |")
            continue
        spread = f"{figure(min(verdict.samples))} – {figure(max(verdict.samples))}"
        count = f"{len(verdict.samples)}" + (f", {verdict.disturbed} disturbed" if verdict.disturbed else "")
        rows.append(f"| {what} | {bound} | {figure(verdict.value)} | {spread} | {count} | {verdict.word} |")
    return "\n".join(rows) + "\n"


def _parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks lines", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--repeat", type=int, default=5, help="rounds (default %(default)s)")
    parser.add_argument("--only", nargs="+", default=[""], metavar="WORD", help="lines with one of these in them")
    parser.add_argument("--size", choices=[TINY], help="of everything: for tests")
    parser.add_argument("--patience", type=float, default=0.0, help="seconds to wait before each for a quiet machine")
    parser.add_argument("--json", type=Path, metavar="FILE", help="add the results to those in FILE, with the verdicts")
    parser.add_argument("--read", action="store_true", help="measure nothing: judge what FILE has")
    parser.add_argument("--write", type=Path, metavar="FILE.md", help=f"put the table there, after {marks(TABLE)[0]}")
    options = parser.parse_args(arguments)
    if options.read and not (options.json and options.json.exists()):
        parser.error("--read needs --json FILE")
    if options.repeat < 1:
        parser.error("--repeat must be at least 1")
    if not any(part in line.what for part in options.only for line in LINES):
        parser.error(f"no line has {' or '.join(options.only)} in it")
    if options.write:
        room(options.write, TABLE)
    return options
