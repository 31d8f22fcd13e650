"""Many seeds: run them on several cores, and add up.

What lives here: the pool of processes, the totals, and what must have happened at least once in a large batch, for a
check of what never happens proves nothing.
"""

from __future__ import annotations

import multiprocessing
import signal
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from hashlib import blake2b

from hdphrs.sim.run import RIGHT, Result, run
from hdphrs.sim.work import Totals
from hdphrs.sim.world import Happening

VACUITY_SEEDS = 2000
"""From so many seeds on, nothing of `WANTED` may be missing."""

WANTED: dict[str, tuple[str, ...]] = {
    "what struck": (
        *(
            "kills",
            "power losses",
            "ambushes",
            "departures",
            "crashes of schedulers",
            "schedulers killed",
            "poisonings",
            "readers killed",
        ),
        *("cuts", "one-way cuts", "isolations", "stalls", "root stalls", "joins", "repeats", "overtakings"),
        *("cancels", "crowds"),
    ),
    "what came of it": (
        *(
            "deaths_seen",
            "left",
            "left_nothing",
            "declared dead alive",
            "returns",
            "suspicions",
            "messages lost",
            "replicas",
            "doubled",
            "orphans",
        ),
        *("duplicates", "stale", "crashes", "LOST", "CRASHED", "lost the root"),
        *("cancelled", "stopped", "schedulers replaced", "gave way"),
    ),
    "work": (
        "tasks_started",
        "exported",
        "placed",
        "stolen",
        "given",
        "fish_sent",
        "fish_answered",
        "given back",
        "hungry in time",
    ),
    "pieces": ("pieces", "pieces used", "pieces too late"),
    "messages": (
        *("FISH", "NOWORK", "SCHEDULE", "REQ", "AUTH", "DENIED", "OBSOLETE", "ACK", "RESULT", "PUSH", "PURGE"),
        *("CANCEL",),
        *("LEAVING", "NOTED", "BYE", "KEEP", "RECALL", "RECALLED", "ORPHANS", "AWAIT", "GONE", "CODE", "FORGET"),
        *("WELCOME", "JOINED", "SUSPECT", "DEADNODE", "TERM", "TERMACK"),
    ),
}
"""All that is counted, by kind."""

CHUNK = 4
"""Seeds that a process takes at a time."""


@dataclass(slots=True)
class Batch:
    """The sums of many runs."""

    fixed: Mapping[str, int]
    seeds: int = 0
    events: int = 0
    virtual_s: float = 0.0
    took_s: float = 0.0
    tallies: dict[str, int] = field(default_factory=dict)
    work: Totals = field(default_factory=Totals)
    failures: list[Result] = field(default_factory=list)
    results: list[Result] = field(default_factory=list)
    """All of them, if they are to be kept."""
    _traces: list[str] = field(default_factory=list)

    def add(self, result: Result) -> None:
        """One more run; in the order of the seeds."""
        self.seeds += 1
        self.events += result.events
        self.virtual_s += result.virtual_s
        self.work.add(result.work)
        self._traces.append(result.trace)
        for name, value in result.tallies.items():
            self.tallies[name] = self.tallies.get(name, 0) + value
        if result.status != RIGHT:
            self.failures.append(result)

    @property
    def trace(self) -> str:
        """Digest of all traces."""
        return blake2b("".join(self._traces).encode(), digest_size=8).hexdigest()

    @property
    def missing(self) -> list[str]:
        """What should have happened and has not."""
        if self.seeds < VACUITY_SEEDS or self.fixed:
            return []
        return [name for names in WANTED.values() for name in names if not self.tallies.get(name)]

    def table(self) -> list[str]:
        """For a person."""
        speed = self.events / self.took_s if self.took_s else 0.0
        lines = [f"{self.seeds} seeds, {self.events} events in {self.virtual_s:.1f} s of virtual time"]
        for kind, names in WANTED.items():
            counted = ", ".join(f"{name.replace('_', ' ')} {self.tallies.get(name, 0)}" for name in names)
            lines.append(f"{kind}: {counted}")
        lines.append(f"computed: {self.work}")
        lines.append(f"failures: {len(self.failures)}")
        lines.append(f"trace: {self.trace}")
        lines.append(
            f"took {self.took_s:.1f} s: {speed:.0f} events/s, {self.took_s / max(1, self.seeds) * 1e3:.1f} ms a seed"
        )
        return lines


def run_batch(
    seeds: range,
    jobs: int,
    fixed: Mapping[str, int],
    on_failure: Callable[[Result], None] = lambda failed: None,
    *,
    keep: bool = False,
) -> Batch:
    """Run all these seeds.

    Args:
        on_failure: told of each failure as soon as it is found.
        keep: keep all results, not only their sums.

    Raises:
        UsageError: see `run`.
    """
    batch = Batch(fixed)
    started_s = time.perf_counter()
    for result in _results(seeds, jobs, fixed):
        batch.add(result)
        if keep:
            batch.results.append(result)
        if result.status != RIGHT:
            on_failure(result)
    batch.took_s = time.perf_counter() - started_s
    return batch


def _results(seeds: range, jobs: int, fixed: Mapping[str, int]) -> Iterator[Result]:
    run_one = partial(_run, fixed=dict(fixed))
    if jobs == 1 or len(seeds) == 1:
        yield from map(run_one, seeds)
        return
    with multiprocessing.get_context("spawn").Pool(jobs, _ignore_interrupts) as pool:
        yield from pool.imap(run_one, seeds, CHUNK)


def _run(seed: int, fixed: dict[str, int]) -> Result:
    result = run(seed, fixed)
    result.tail = [_bare(happening) for happening in result.tail] if result.status != RIGHT else []
    return result


def _bare(happening: Happening) -> Happening:
    """Effects are a list of the core's; what travels between processes is a copy anyway."""
    now_ns, node, what, more = happening
    return now_ns, node, what, tuple(more) if isinstance(more, list) else more


def _ignore_interrupts() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
