"""Samples of a line from the rounds, and what they come to.

What lives here: which figures of a round are set against each other.  A machine's speed changes by the minute, so only
what was measured in the same round is compared, and the median is taken of the comparisons.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from benchmarks.compare.job import RIGHT
from benchmarks.compare.processes import DISTURBED_CORES
from benchmarks.compare.results import Result
from benchmarks.lines.bounds import DIFFERENCE, RATE, Line, Quantity

MET, MISSED, UNKNOWN = "met", "MISSED", "not measured"


@dataclass(frozen=True, slots=True)
class Verdict:
    """What has come of a line."""

    line: Line
    samples: tuple[float, ...] = ()
    """A round each; in the line's unit."""
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
        return MET if self.line.budget.is_kept(self.value) else MISSED

    def facts(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "what": self.line.what,
            "unit": self.line.unit,
            "bound": str(self.line.budget),
            "median": self.value,
            "samples": self.samples,
            "against": self.best,
            "disturbed": self.disturbed,
            "verdict": self.word,
            "trouble": self.trouble,
        }


class Rounds:
    """The right results, by system, workload and round."""

    def __init__(self, results: Sequence[Result]) -> None:
        self._figures: dict[tuple[str, str], dict[int, dict[str, float]]] = {}
        self._troubles: dict[tuple[str, str], str] = {}
        for result in results:
            key = (result.job.system, result.job.workload)
            if result.job.outcome == RIGHT:
                self._figures.setdefault(key, {})[result.round] = dict(result.job.figures)
            else:
                self._troubles[key] = result.job.outcome
        for (system, workload), by_round in self._figures.items():
            if workload == "recovery":
                self._compare_with_nobody_killed(system, by_round)

    def _compare_with_nobody_killed(self, system: str, killed: dict[int, dict[str, float]]) -> None:
        for number, calm in self._figures.get((system, "no_recovery"), {}).items():
            if number in killed:
                figures = killed[number]
                figures["longer_s"] = figures["seconds"] - calm["seconds"]
                figures["beyond_s"] = figures["longer_s"] - figures["lost_s"]

    def values(self, system: str, quantity: Quantity) -> dict[int, float]:
        """By round."""
        by_round = self._figures.get((system, quantity.workload), {})
        return {number: found[quantity.figure] for number, found in by_round.items() if quantity.figure in found}

    def is_disturbed(self, system: str, workload: str, number: int) -> bool:
        """Whether others used the machine meanwhile."""
        figures = self._figures.get((system, workload), {}).get(number, {})
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
    common = [number for number in ours if number in theirs[best]]
    samples = tuple(_compare(line.how, ours[number], theirs[best][number]) for number in common)
    trouble = "" if samples else f"{best}: no round in common"
    return Verdict(line, samples, best, _disturbed(line, rounds, common), trouble)


def _compare(how: str, ours: float, theirs: float) -> float:
    if how == DIFFERENCE:
        return ours - theirs
    return ours / theirs if how == RATE else theirs / ours


def _disturbed(line: Line, rounds: Rounds, numbers: Sequence[int]) -> int:
    return sum(rounds.is_disturbed(line.system, line.ours.workload, number) for number in numbers)
