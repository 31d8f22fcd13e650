"""`python -m spin`: all models, all properties, one table like Table 2 of the paper.

Exit status 1 when a property fails, a counter-property holds, or a line of a handler is reached by no search.
"""

from __future__ import annotations

import sys
import time

from spin.pan import HERE, WITNESS, Line, PanError, Report, missing_tools, search
from spin.runs import RUNS, Run

HEADER = ("model", "scope", "formula", "counter", "depth", "states", "transitions", "memory", "time", "verdict")
ROW = "{:<10} {:<34} {:<41} {:<7} {:>5} {:>9} {:>11} {:>7} {:>7}  {}"


def main() -> int:
    """Run everything; 0 if all is as it must be."""
    missing = missing_tools()
    if missing:
        print(f"python -m spin needs {' and '.join(missing)}: apt-get install spin gcc libc6-dev", file=sys.stderr)
        return 2
    started = time.monotonic()
    print(ROW.format(*HEADER))
    deviations = 0
    covered: dict[str, tuple[set[Line], set[Line]]] = {}
    for run in RUNS:
        report = search(run.search)
        verdict = judge(run, report)
        deviations += verdict is not None
        print(row(run, report, verdict), flush=True)
        if run.tracks_lines:
            lines, reached = covered.setdefault(run.search.model, (set(), set()))
            lines |= report.lines
            reached |= report.reached
    for model, (lines, reached) in covered.items():
        deviations += tell_unreached(model, sorted(lines - reached), len(lines))
    print(f"{len(RUNS)} searches, {deviations} deviations, {time.monotonic() - started:.0f} s with compiling")
    return 1 if deviations else 0


def judge(run: Run, report: Report) -> str | None:
    """What is wrong; None if the search found what it must."""
    if run.counter:
        seen = report.violated == WITNESS or (run.search.claim is not None and report.violated is not None)
        return None if seen else f"NOT SEEN ({report.violated})"
    return None if report.violated is None else f"VIOLATED: {report.violated}"


def row(run: Run, report: Report, verdict: str | None) -> str:
    """A line of the table."""
    return ROW.format(
        run.search.model,
        run.scope,
        run.formula,
        "yes" if run.counter else "no",
        report.depth,
        f"{report.states:,}",
        f"{report.transitions:,}",
        f"{report.memory_mb:.0f} MB",
        f"{report.time_s:.1f} s",
        verdict or ("seen" if run.counter else "holds"),
    )


def tell_unreached(model: str, unreached: list[Line], lines: int) -> int:
    """Print the lines that no search of the model has reached; how many there are."""
    print(f"{model}: {lines - len(unreached)} of {lines} lines reached")
    for file, number in unreached:
        text = (HERE / file).read_text().splitlines()[number - 1].strip()
        print(f"  UNREACHED {file}:{number}: {text}")
    return len(unreached)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except PanError as error:
        print(f"spin: {error}", file=sys.stderr)
        sys.exit(2)
