"""What a node knows of its tasks and cores, for `--explain` and for advice (decision 23).

What lives here: counting, from messages that come anyway, and the hints that follow from it.  What does not: the
summary of a run, see `explain.py`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from time import perf_counter, process_time
from typing import Any

from hdphrs.protocol.tasks import Spark
from hdphrs.wire.page import Line

GRAIN = "grain_"
"""Counters: how many tasks of the pool took less than 2 to this power microseconds, and not less than half of that."""

BUSY_US = "busy_us_"
"""Counters: for how long the scheduler of this number has run tasks."""

CPU_US = "cpu_us_"
"""Counters: what the scheduler of this number has computed, with all its threads."""

QUEUED_US = "queued_us_"
"""Counters: for how long it has wanted a core, and others had it (Linux)."""

NOW_US = "now_us_"
"""Counters: for how long, by now, the scheduler of this number is in the task whose name follows."""

FUNCTION = "function_"
"""Counters: calls, microseconds, and microseconds of its own, of the function whose name follows (`--explain`)."""

FUNCTIONS_MAX = 20
"""Functions of a node that are told of, the dearest."""

NODE_CPU_US = "node_cpu_us"
"""Counter: processor time of the node process since the run began."""

LARGE_BYTES = 16 << 20
"""Arguments, with what the function captures, that are worth a word."""

SMALL_MIN = 1000
"""Exported tasks of which one can say that they are small."""

SMALL_RATIO = 2.0
"""And they are if half of them take less than so many times what the way through the node costs."""

WAITED_S = 2.0
"""A core that has waited so long within tasks is worth a word,"""

WAITED_SHARE = 0.5
"""if it was for this share of the time for which it had tasks."""

LOOK_S = 0.25
"""Of a core's work, between two looks at its processor time."""

Advise = Callable[[str, str], None]
"""Takes a kind, and a sentence."""


class Figures:
    """Those of one node."""

    def __init__(self, advise: Advise) -> None:
        self._advise = advise
        self._grains: dict[int, int] = {}
        self._results = 0
        self._buried_s: dict[int, float] = {}
        self._cores: dict[int, _Core] = {}
        self._cpu_s = process_time()
        self._small_at = SMALL_MIN
        self._large = False
        self._last = ""
        self._processes: dict[int, _Process] = {}
        self._calls: dict[str, list[float]] = {}

    def called(self, rows: Iterable[list[Any]]) -> None:
        """Items of CALLS."""
        for name, *more in rows:
            known = self._calls.setdefault(name, [0.0, 0.0, 0.0])
            self._calls[name] = [one + other for one, other in zip(known, more, strict=True)]

    def at_work(self, number: int, pid: int, spark: Spark | None) -> None:
        """What the scheduler of this number is in, and how much its process has computed so far."""
        process = self._processes.get(number)
        if process is None:
            process = self._processes[number] = _Process(pid)
        process.look(pid, None if spark is None else spark.task.name)

    def exported(self, items: Iterable[list[Any]]) -> None:
        """Items of EXPORT."""
        if self._large:
            return
        for _, (name, _, _, payload, *_) in items:
            size = len(payload)
            if size >= LARGE_BYTES:
                self._large = True
                self._advise(
                    "large",
                    f"a task {name} takes {size / (1 << 20):.1f} MiB along, its arguments and what its function "
                    f"captures (a word above {LARGE_BYTES >> 20} MiB); let tasks read large data themselves, or make "
                    "them of smaller parts",
                )
                break

    def finished(self, name: str, own_s: float) -> None:
        """A task of the pool has run here for so long."""
        grain = int(own_s * 1e6).bit_length()
        self._grains[grain] = self._grains.get(grain, 0) + 1
        self._results += 1
        self._last = name
        if self._results >= self._small_at:
            self._small_at *= 2
            self._look_for_small()

    def looked(self, number: int, pid: int, line: Line) -> None:
        """A scheduler has just answered: if it has worked for a while, see whether it has computed or waited."""
        core = self._cores.get(number)
        if core is None or core.pid != pid:
            core = self._cores[number] = _Core(pid)
        core.look(line.busy_up_to(perf_counter()))
        if core.waited_s >= WAITED_S and core.waited_s >= WAITED_SHARE * core.seen_s:
            self._advise(
                "waits",
                f"a core has waited for {core.waited_s:.1f} of {core.seen_s:.1f} s in tasks, now in {self._last}; what "
                "waits (for a disk, the network, a sleep) holds its core: give each node more schedulers (--cores), or "
                "let threads within a task wait",
            )

    def bury(self, number: int, line: Line) -> None:
        """The scheduler of this number has died."""
        self._buried_s[number] = self._buried_s.get(number, 0.0) + line.busy_up_to(perf_counter())

    def tally(self, lines: Mapping[int, Line], counters: dict[str, int]) -> None:
        """Put it among the counters of the node."""
        now_s = perf_counter()
        for number, line in lines.items():
            busy_s = self._buried_s.get(number, 0.0) + line.busy_up_to(now_s)
            counters[f"{BUSY_US}{number}"] = int(busy_s * 1e6)
        for grain, count in self._grains.items():
            counters[f"{GRAIN}{grain}"] = count
        for stale in [name for name in counters if name.startswith((NOW_US, FUNCTION))]:
            del counters[stale]
        for number, process in self._processes.items():
            counters[f"{CPU_US}{number}"] = int(process.cpu_s * 1e6)
            counters[f"{QUEUED_US}{number}"] = int(process.queued_s * 1e6)
            if process.task is not None and number in lines and lines[number].since_s:
                counters[f"{NOW_US}{number}_{process.task}"] = int(max(0.0, now_s - lines[number].since_s) * 1e6)
        dearest = sorted(self._calls.items(), key=lambda item: -item[1][2])[:FUNCTIONS_MAX]
        for name, (calls, all_s, own_s) in dearest:
            figures = {"calls": int(calls), "us": int(all_s * 1e6), "own": int(own_s * 1e6)}
            counters.update({f"{FUNCTION}{kind}_{name}": figure for kind, figure in figures.items()})
        counters[NODE_CPU_US] = int((process_time() - self._cpu_s) * 1e6)

    def _look_for_small(self) -> None:
        each_s = (process_time() - self._cpu_s) / self._results
        median_s = median_of(self._grains)
        if median_s < SMALL_RATIO * each_s:
            self._advise(
                "small",
                f"the median task that leaves its scheduler takes {median_s * 1e6:.0f} µs, the way through the node "
                f"{each_s * 1e6:.0f} µs ({self._last} was the last of {self._results}); make them larger (a higher "
                "threshold, par_map_chunked), or spawn them inside a task, where they cost nothing until stolen",
            )


class _Process:
    """What the processes of one scheduler, one after the other, have computed."""

    def __init__(self, pid: int) -> None:
        self.task: str | None = None
        self._pid = pid
        self._before = (0.0, 0.0)
        self._last = (0.0, 0.0)

    @property
    def cpu_s(self) -> float:
        """All its threads."""
        return self._before[0] + self._last[0]

    @property
    def queued_s(self) -> float:
        """In which its main thread wanted a core, and had none."""
        return self._before[1] + self._last[1]

    def look(self, pid: int, task: str | None) -> None:
        """It runs this task."""
        self.task = task
        if pid != self._pid:
            self._before, self._last, self._pid = (self.cpu_s, self.queued_s), (0.0, 0.0), pid
        with suppress(OSError, ValueError, IndexError), open(f"/proc/{pid}/stat") as stat:
            ticks = stat.read().rpartition(")")[2].split()[11:13]
            self._last = sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK"), self._last[1]
        with suppress(OSError, ValueError), open(f"/proc/{pid}/schedstat") as schedstat:
            self._last = self._last[0], int(schedstat.read().split()[1]) / 1e9


class _Core:
    """One scheduler process, and what it has done with its time."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.seen_s = 0.0
        self.waited_s = 0.0
        self._busy_s = 0.0
        self._had_s = 0.0

    def look(self, busy_s: float) -> None:
        """It has had tasks for so long."""
        for_s = busy_s - self._busy_s
        if for_s < LOOK_S or (had_s := had_core_s(self.pid)) is None:
            return
        self.seen_s += for_s
        self.waited_s += max(0.0, for_s - (had_s - self._had_s))
        self._busy_s, self._had_s = busy_s, had_s


def had_core_s(pid: int) -> float | None:
    """For how long the main thread of a process has computed, or would have if others had not had the core."""
    with suppress(OSError, ValueError), open(f"/proc/{pid}/schedstat") as file:
        computed_ns, queued_ns, _ = file.read().split()
        return (int(computed_ns) + int(queued_ns)) / 1e9
    return None


def median_of(grains: Mapping[int, int]) -> float:
    """The median of what tasks took, in seconds, as far as the buckets tell: the middle of one."""
    half = sum(grains.values()) / 2
    seen = 0
    for grain in sorted(grains):
        seen += grains[grain]
        if seen >= half:
            return 0.75e-6 * float(1 << grain)
    return 0.0
