"""What a person sees of the explorer: the table of the searches, and replays move by move."""

from __future__ import annotations

import resource
from collections.abc import Callable, Sequence
from pathlib import Path

from hdphrs.errors import UsageError
from hdphrs.explore.scenario import read, replay, write
from hdphrs.explore.scope import SCOPES
from hdphrs.explore.search import Report, search

Tell = Callable[[str], None]

COLUMNS = (("states", 10), ("transitions", 12), ("depth", 6), ("ends", 8), ("cpu s", 7), ("states/s", 9), ("MB", 6))


def tell_scopes(tell: Tell) -> None:
    """List the scopes."""
    for name, scope in SCOPES.items():
        tell(f"{name:14} {scope.told}")


def search_all(names: Sequence[str], tell: Tell) -> bool:
    """Search these scopes, or all; whether all are clean, and have met what they are for.

    Raises:
        UsageError: there is no such scope, or the scenario of a violation cannot be written.
    """
    for name in names:
        if name not in SCOPES:
            raise UsageError(f"there is no scope {name!r}; there are {', '.join(SCOPES)}")
    reports: list[Report] = []
    tell(f"{'scope':14}{''.join(f'{title:>{width}}' for title, width in COLUMNS)}  verdict")
    for name in names or SCOPES:
        report = search(SCOPES[name])
        tell(_row(report))
        reports.append(report)
    tell("")
    for report in reports:
        tell(f"{report.scope.name}: {report.scope.told}")
        tell("  met: " + ", ".join(f"{name} {report.met[name]:,}" for name in sorted(report.met)))
    for report in reports:
        if report.violation is not None:
            _tell_violation(report, tell)
    tell(f"in all {sum(r.states for r in reports):,} states, {sum(r.took_s for r in reports):.0f} s of processor time")
    return all(report.violation is None and not report.vacuous for report in reports)


def replay_file(path: str, tell: Tell) -> bool:
    """Replay a scenario, move by move; whether nothing was wrong.

    Raises:
        UsageError: the file cannot be read, is no scenario, or is not possible.
    """
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is no text"
        raise UsageError(f"cannot read the scenario {path}: {reason}") from error
    try:
        scope, moves = read(text)
    except UsageError as error:
        raise UsageError(f"{path}: {error}") from error
    try:
        replay(scope, moves, tell)
    except UsageError as error:
        raise UsageError(f"{path}: {error}") from error
    except Exception as error:  # whatever the core raises is what a replay is for
        tell(f"violated: {type(error).__name__}: {error}")
        return False
    tell("clean: all futures are full")
    return True


def _row(report: Report) -> str:
    memory_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    speed = report.states / report.took_s
    cells = (
        f"{report.states:,}",
        f"{report.transitions:,}",
        f"{report.depth}",
        f"{report.ends:,}",
        f"{report.took_s:.1f}",
        f"{speed:,.0f}",
        f"{memory_mb:,}",
    )
    row = "".join(f"{cell:>{width}}" for cell, (_, width) in zip(cells, COLUMNS, strict=True))
    if report.violation is not None:
        verdict = f"VIOLATION: {report.violation.told}"
    elif report.vacuous:
        verdict = f"VACUOUS: never met {', '.join(report.vacuous)}"
    else:
        verdict = "clean"
    return f"{report.scope.name:14}{row}  {verdict}"


def _tell_violation(report: Report, tell: Tell) -> None:
    found = report.violation
    assert found is not None
    path = Path(f"explore-{report.scope.name}.txt")
    try:
        path.write_text(write(report.scope, found.told, found.moves), encoding="utf-8")
    except OSError as error:
        raise UsageError(f"cannot write the scenario {path}: {error.strerror}") from error
    tell(f"{report.scope.name}: {found.told}; {len(found.moves)} moves in {path}")
    tell(f"  replay with: hdphrs explore --replay {path}")
