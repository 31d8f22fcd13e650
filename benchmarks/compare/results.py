"""The results of many jobs: kept as JSON, and condensed to medians and ratios."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.compare.job import RIGHT
from benchmarks.compare.launch import Outcome
from benchmarks.compare.processes import DISTURBED_CORES
from benchmarks.installed import form


@dataclass(frozen=True, slots=True)
class Result:
    """One job of one round; in each turn of a round a system does a workload once."""

    round: int
    load: float
    """The machine's load (mean of a minute) when it ended: its own, and that of whoever else is there."""
    job: Outcome
    turn: int = 1


def machine() -> dict[str, Any]:
    """What the figures depend on."""
    model = ""
    if (info := Path("/proc/cpuinfo")).exists():
        model = next((line.split(":")[1].strip() for line in info.read_text().splitlines() if "model name" in line), "")
    return {
        "machine": platform.machine(),
        "processor": model,
        "python": platform.python_version(),
        "hdphrs": form(),
        "cores": len(os.sched_getaffinity(0)),
        "niceness": os.nice(0),
    }


def write_results(path: Path, results: Sequence[Result], facts: dict[str, Any], **more: Any) -> None:
    """Replace the file at once, so that one that is read is whole.

    Args:
        more: what was made of the results.
    """
    rows = [
        {"round": result.round, "turn": result.turn, "load": result.load, **asdict(result.job)} for result in results
    ]
    document = {"machine": facts, "results": rows} | more
    draft = path.with_name(f"{path.name}.new")
    draft.write_text(json.dumps(document, indent=1) + "\n")
    draft.replace(path)


def read_results(path: Path) -> list[Result]:
    """What `write_results` has written."""
    rows = json.loads(path.read_text())["results"]
    return [
        Result(number, load, Outcome(**row), turn)
        for row in rows
        for number, load, turn in [(row.pop("round"), row.pop("load"), row.pop("turn", 1))]
    ]


class Board:
    """All results, by system and workload."""

    def __init__(self, results: Sequence[Result]) -> None:
        self._jobs: dict[tuple[str, str], list[Result]] = {}
        for result in results:
            self._jobs.setdefault((result.job.system, result.job.workload), []).append(result)

    def systems(self) -> list[str]:
        """In the order in which they came."""
        return list(dict.fromkeys(system for system, _ in self._jobs))

    def right(self, system: str, workload: str) -> list[Result]:
        """Those that ended with the right answer; only the undisturbed ones if there are such."""
        right = [result for result in self._jobs.get((system, workload), []) if result.job.outcome == RIGHT]
        calm = [result for result in right if result.job.figures.get("others_cores", 0.0) <= DISTURBED_CORES]
        return calm or right

    def disturbed(self, system: str, workload: str) -> bool:
        """Whether others have used the machine during all of those."""
        right = self.right(system, workload)
        return bool(right) and right[0].job.figures.get("others_cores", 0.0) > DISTURBED_CORES

    def samples(self, system: str, workload: str, figure: str) -> list[float]:
        """One figure of those."""
        return [result.job.figures[figure] for result in self.right(system, workload) if figure in result.job.figures]

    def median(self, system: str, workload: str, figure: str) -> float | None:
        """None if nothing was measured."""
        samples = self.samples(system, workload, figure)
        return median(samples) if samples else None

    def ratio(self, system: str, workload: str, base: str, figure: str = "seconds") -> float | None:
        """How many times as much `base` needs for the same work, median by median; None if nobody knows."""
        ours, theirs = self.median(system, workload, figure), self.median(base, workload, figure)
        return theirs / ours if ours and theirs is not None else None

    def size(self, system: str, workload: str) -> str:
        """The size that this system got; nothing if it did not take part."""
        jobs = self._jobs.get((system, workload), [])
        return jobs[0].job.size if jobs else ""

    def trouble(self, system: str, workload: str) -> str:
        """What came instead of a right answer, last."""
        jobs = [result.job.outcome for result in self._jobs.get((system, workload), [])]
        return next((outcome for outcome in reversed(jobs) if outcome != RIGHT), "")
