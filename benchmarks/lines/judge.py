"""Samples of a line from the rounds, and what they come to.

What lives here: which figures of a round are set against each other.  A machine's speed changes by the second, so only
what was measured in the same turn of the same round is compared, and the median is taken of the comparisons.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any, TypeAlias

from benchmarks.compare.job import RIGHT
from benchmarks.compare.launch import Outcome
from benchmarks.compare.processes import DISTURBED_CORES
from benchmarks.compare.results import Result
from benchmarks.lines.bounds import DIFFERENCE, RATE, RUNNERS_UP, Line, Quantity

When: TypeAlias = tuple[int, int]
"""Round and turn."""

MET, MISSED, UNKNOWN, LIMIT = "met", "MISSED", "not measured", "a limit"


@dataclass(frozen=True, slots=True)
class Verdict:
    """What has come of a line."""

    line: Line
    samples: tuple[float, ...] = ()
    """A turn of a round each; in the line's unit."""
    best: str = ""
    """Of the others, the one that it was compared with."""
    disturbed: int = 0
    """Samples during which somebody else used the machine."""
    trouble: str = ""
    """Why there are no samples."""

    @property
    def value(self) -> float | None:
        """The median; None without samples."""
        return median(self.samples) if self.samples else None

    @property
    def word(self) -> str:
        """Whether the line holds."""
        if self.value is None:
            return UNKNOWN
        if self.line.budget is None:
            return LIMIT
        return MET if self.line.budget.is_kept(self.value) else MISSED

    def facts(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "what": self.line.what,
            "unit": self.line.unit,
            "bound": self.line.budget and str(self.line.budget),
            "median": self.value,
            "samples": self.samples,
            "against": self.best,
            "disturbed": self.disturbed,
            "verdict": self.word,
            "trouble": self.trouble,
        }


class Rounds:
    """The right results, by system, workload, and when it was."""

    def __init__(self, results: Sequence[Result]) -> None:
        self._figures: dict[tuple[str, str], dict[When, dict[str, float]]] = {}
        self._troubles: dict[tuple[str, str], str] = {}
        for result in results:
            key = (result.job.system, result.job.workload)
            if result.job.outcome == RIGHT:
                self._figures.setdefault(key, {})[result.round, result.turn] = dict(result.job.figures)
            else:
                self._troubles[key] = result.job.outcome
        for (system, workload), by_turn in self._figures.items():
            if workload == "recovery":
                self._compare_with_nobody_killed(system, by_turn)

    def _compare_with_nobody_killed(self, system: str, killed: dict[When, dict[str, float]]) -> None:
        for when, calm in self._figures.get((system, "no_recovery"), {}).items():
            if when in killed:
                figures = killed[when]
                figures["longer_s"] = figures["seconds"] - calm["seconds"]
                figures["beyond_s"] = figures["longer_s"] - figures["lost_s"]

    def values(self, system: str, quantity: Quantity) -> dict[When, float]:
        """By round and turn."""
        by_turn = self._figures.get((system, quantity.workload), {})
        return {when: found[quantity.figure] for when, found in by_turn.items() if quantity.figure in found}

    def is_disturbed(self, system: str, workload: str, when: When) -> bool:
        """Whether others used the machine meanwhile."""
        figures = self._figures.get((system, workload), {}).get(when, {})
        return figures.get("others_cores", 0.0) > DISTURBED_CORES

    def trouble(self, system: str, workload: str) -> str:
        """Why there is nothing."""
        return f"{system}: {self._troubles.get((system, workload), 'not run')}"


def judge(line: Line, rounds: Rounds) -> Verdict:
    """The verdict about one line."""
    ours = rounds.values(line.system, line.ours)
    if not ours:
        return Verdict(line, trouble=rounds.trouble(line.system, line.ours.workload))
    quantity = line.theirs or line.ours
    theirs = {system: rounds.values(system, quantity) for system in line.others}
    theirs = {system: values for system, values in theirs.items() if values}
    if not line.others:
        return Verdict(line, tuple(ours.values()), "", _disturbed(line, rounds, list(ours)))
    if not theirs:
        return Verdict(line, trouble="; ".join(rounds.trouble(system, quantity.workload) for system in line.others))
    pick = max if line.how == RATE else min
    best = pick(theirs, key=lambda system: median(theirs[system].values()))
    common = [when for when in ours if when in theirs[best]]
    samples = tuple(_compare(line.how, ours[when], theirs[best][when]) for when in common)
    trouble = "" if samples else f"{best}: no round in common"
    return Verdict(line, samples, best, _disturbed(line, rounds, common), trouble)


def _compare(how: str, ours: float, theirs: float) -> float:
    if how == DIFFERENCE:
        return ours - theirs
    return ours / theirs if how == RATE else theirs / ours


def _disturbed(line: Line, rounds: Rounds, times: Sequence[When]) -> int:
    return sum(rounds.is_disturbed(line.system, line.ours.workload, when) for when in times)


def contenders(lines: Sequence[Line], workload: str, seen: Sequence[Outcome]) -> set[str]:
    """Who has another turn: hdphrs, and of the others of each line those that were fastest.

    Args:
        seen: what has come of this workload in this round.
    """
    again: set[str] = set()
    for line in lines:
        if line.ours.workload == workload:
            figure = line.ours.figure
            found = {job.system: job.figures[figure] for job in seen if job.outcome == RIGHT and figure in job.figures}
            known = [system for system in line.others if system in found]
            best = sorted(known, key=found.__getitem__, reverse=line.how == RATE)
            again |= {line.system, *best[:RUNNERS_UP]}
    return again
