"""What became of the time of a run, and what to change (`--explain`, decision 23).

What lives here: from the counters of all nodes to a summary, for people and for the report.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hdphrs.node.figures import BUSY_US, CPU_US, FUNCTION, GRAIN, NODE_CPU_US, NOW_US, QUEUED_US, SMALL_RATIO, median_of
from hdphrs.records import dataclass

BAR = 20
"""Signs for a core that was busy all the time, or for the most frequent tasks."""

BUSY_ENOUGH = 0.85
"""A run that keeps this share of its cores busy is as it should be."""

QUEUED_MUCH = 0.2
"""This share of the time with tasks, for which others had the cores, is worth a line."""

THREADS_MUCH = 1.25
"""And so is this much processor time for each second with a core."""

HAD_MIN = 0.1
MORE_S_MIN = 1.0
"""Of the time with tasks, the share with a core that says something, and seconds of more for each scheduler."""

STUCK_S = 1.0
"""A task that is not done when the run ends is told of if it has run for so long."""

SHOWN_MAX = 10
"""Functions in the text."""

FEW = 4
"""Exported tasks for each core; with fewer there is nothing to share."""


@dataclass(frozen=True, slots=True)
class NodeFigures:
    """What one node has counted."""

    node: int
    host: str
    slots: int
    work_s: float
    """For how long its schedulers have run tasks; known even of a node that died."""
    counters: Mapping[str, int]

    @property
    def busy_s(self) -> list[float]:
        """By scheduler; of a node that died, all alike."""
        if not any(name.startswith(BUSY_US) for name in self.counters):
            return [self.work_s / self.slots] * self.slots
        return [self.counters.get(f"{BUSY_US}{number}", 0) / 1e6 for number in range(self.slots)]

    @property
    def grains(self) -> dict[int, int]:
        """How many tasks of the pool took how long, see `GRAIN`."""
        return {int(name[len(GRAIN) :]): count for name, count in self.counters.items() if name.startswith(GRAIN)}


@dataclass(frozen=True, slots=True)
class Dear:
    """A function of the program's, as far as a run has called it in tasks."""

    name: str
    host: str
    calls: int
    total_s: float
    """With children that ran in place."""
    own_s: float
    """Without them."""


@dataclass(frozen=True, slots=True)
class Unfinished:
    """What a scheduler is in when the run ends."""

    scheduler: str
    task: str
    for_s: float


@dataclass(frozen=True, slots=True)
class Explained:
    """A run."""

    wall_s: float
    nodes: Sequence[NodeFigures]
    work_s: float = 0.0
    """Behind the values that the program has got."""
    span_s: float = 0.0
    """The longest chain of it that cannot run side by side; 0 if nobody has looked."""

    @property
    def parallelism(self) -> float:
        """How many cores could have been busy all the time, at least."""
        return self.work_s / self.span_s if self.span_s else 0.0

    @property
    def cores(self) -> int:
        """Schedulers of all nodes."""
        return sum(node.slots for node in self.nodes)

    @property
    def busy_s(self) -> float:
        """Of all schedulers."""
        return sum(sum(node.busy_s) for node in self.nodes)

    @property
    def idle_s(self) -> float:
        """The rest of their time."""
        return max(0.0, self.wall_s * self.cores - self.busy_s)

    @property
    def utilisation(self) -> float:
        """The share of their time for which the cores had tasks."""
        return min(1.0, self.busy_s / max(1e-9, self.wall_s * self.cores))

    @property
    def grains(self) -> dict[int, int]:
        """Of all nodes."""
        grains: dict[int, int] = {}
        for node in self.nodes:
            for grain, count in node.grains.items():
                grains[grain] = grains.get(grain, 0) + count
        return dict(sorted(grains.items()))

    def sum(self, counter: str) -> int:
        """Over all nodes."""
        return sum(node.counters.get(counter, 0) for node in self.nodes)

    @property
    def exported(self) -> int:
        """Tasks that left their scheduler, or the program."""
        return self.sum("exported") + self.sum("placed")

    @property
    def shared(self) -> int:
        """Tasks that another core could have had: those of the program are that too, many of which leave together."""
        return max(self.exported, self.sum("tasks_run") - self.sum("sparks_made"))

    @property
    def cpu_s(self) -> float:
        """What the schedulers have computed, with all their threads."""
        return self._sum_of(CPU_US)

    @property
    def queued_s(self) -> float:
        """For how long they wanted a core that others had, as far as they had tasks; 0 where that is not known."""
        return min(self.busy_s, self._sum_of(QUEUED_US))

    def _sum_of(self, prefix: str) -> float:
        return sum(us for node in self.nodes for name, us in node.counters.items() if name.startswith(prefix)) / 1e6

    @property
    def is_crowded(self) -> bool:
        """Whether others had the cores for much of the time."""
        return self.busy_s > 0.0 and self.queued_s >= QUEUED_MUCH * self.busy_s

    @property
    def threads(self) -> float:
        """How many threads have computed in a scheduler that had its core."""
        had_s = self.busy_s - self.queued_s
        return self.cpu_s / had_s if had_s > HAD_MIN * self.busy_s else 0.0

    @property
    def has_many_threads(self) -> bool:
        """Whether that was more than one, beyond what starting takes."""
        more_s = self.cpu_s - (self.busy_s - self.queued_s)
        return self.threads >= THREADS_MUCH and more_s >= MORE_S_MIN * self.cores

    @property
    def dearest(self) -> list[Dear]:
        """The functions that have taken most, of their own."""
        functions = []
        for node in self.nodes:
            prefix = f"{FUNCTION}own_"
            for name in [key[len(prefix) :] for key in node.counters if key.startswith(prefix)]:
                calls, us, own = (node.counters.get(f"{FUNCTION}{kind}_{name}", 0) for kind in ("calls", "us", "own"))
                functions.append((node.host, name, calls, us, own))
        merged: dict[tuple[str, str], list[int]] = {}
        for host, name, *figures in functions:
            known = merged.setdefault((host, name), [0, 0, 0])
            merged[host, name] = [one + other for one, other in zip(known, figures, strict=True)]
        dear = [Dear(name, host, calls, us / 1e6, own / 1e6) for (host, name), (calls, us, own) in merged.items()]
        return sorted(dear, key=lambda one: (-one.own_s, one.host, one.name))

    @property
    def unfinished(self) -> list[Unfinished]:
        """What the schedulers are in still, those first that are for longest."""
        found = []
        for node in self.nodes:
            for key, us in node.counters.items():
                if key.startswith(NOW_US):
                    number, _, name = key[len(NOW_US) :].partition("_")
                    found.append(Unfinished(f"{node.host}:{number} (node {node.node})", name, us / 1e6))
        return sorted(found, key=lambda one: -one.for_s)

    @property
    def way_s(self) -> float:
        """What the node processes have computed for each of those."""
        return self.sum(NODE_CPU_US) / 1e6 / max(1, self.exported)

    @property
    def task_s(self) -> float:
        """What a task has taken on the average, those that run in place included."""
        return self.busy_s / max(1, self.sum("tasks_run"))

    @property
    def is_alone(self) -> bool:
        """Whether one core did it all, though there were others."""
        return self.cores > 1 and self.exported <= 1 and self.sum("sparks_made") == 0

    def as_json(self) -> dict[str, Any]:
        """For the report."""
        return {
            "cores": self.cores,
            "busy_s": round(self.busy_s, 6),
            "idle_s": round(self.idle_s, 6),
            "utilisation": round(self.utilisation, 4),
            "busy_s_by_core": {
                f"{node.node}:{number}": round(busy_s, 6)
                for node in self.nodes
                for number, busy_s in enumerate(node.busy_s)
            },
            "cpu_s": round(self.cpu_s, 6),
            "queued_s": round(self.queued_s, 6),
            "threads": round(self.threads, 3),
            "work_s": round(self.work_s, 6),
            "span_s": round(self.span_s, 6),
            "parallelism": round(self.parallelism, 3),
            "exported": self.exported,
            "shared": self.shared,
            "moved": self.sum("stolen"),
            "way_s": round(self.way_s, 9),
            "task_s": round(self.task_s, 9),
            "grains": {f"{2**grain / 1e6:g}": count for grain, count in self.grains.items()},
            "functions": [
                {
                    "name": one.name,
                    "host": one.host,
                    "calls": one.calls,
                    "total_s": round(one.total_s, 6),
                    "own_s": round(one.own_s, 6),
                }
                for one in self.dearest
            ],
            "unfinished": [
                {"scheduler": one.scheduler, "task": one.task, "for_s": round(one.for_s, 3)} for one in self.unfinished
            ],
            "advice": self.advice(),
        }

    def advice(self) -> list[str]:
        """What to change."""
        stuck = [one for one in self.unfinished if one.for_s >= STUCK_S]
        if stuck:
            longest = stuck[0]
            where = f"{longest.scheduler} was in {longest.task} for {_time(longest.for_s)}"
            remedy = "if that is too long, look with py-spy at what it does, or give tasks a timeout"
            return [f"the run ended before its tasks: {where}; {remedy}"]
        if self.sum("tasks_run") == 0:
            return ["the program has made no task: all that it did, it did in its own process; begin with hdphrs.run"]
        advice = []
        median_s = median_of(self.grains)
        if self.is_alone:
            advice.append(
                f"nothing was spawned: {self.cores - 1} of {self.cores} cores had nothing to do; spawn parts of it"
            )
        elif self.has_many_threads:
            advice.append(self._too_many_threads())
        elif self.is_crowded:
            advice.append(
                f"others had the cores for {_time(self.queued_s)} of the {_time(self.busy_s)} with tasks: give the run "
                "cores of its own, or start fewer schedulers (--cores); what is said here tells more on an idle machine"
            )
        elif self.utilisation >= BUSY_ENOUGH:
            advice.append("nothing: the cores were busy")
        elif 0.0 < self.parallelism < self.cores:
            advice.append(
                f"the longest chain of tasks that wait for each other takes {_time(self.span_s)}, which is enough for "
                f"{self.parallelism:.1f} of {self.cores} cores: split what is in it, and spawn before you compute"
            )
        elif self.exported > FEW * self.cores and 0.0 < median_s < SMALL_RATIO * self.way_s:
            advice.append(
                f"half of the tasks that were exported took less than {_time(median_s)}, and the way of each through "
                f"the node {_time(self.way_s)}: make them larger (a higher threshold, chunks), or spawn them in a task"
            )
        elif self.shared < FEW * self.cores:
            advice.append(
                f"{self.shared} tasks were there to share among {self.cores} cores: spawn smaller parts, and spawn "
                "them before the work that does not need them"
            )
        else:
            advice.append(
                "cores were idle while others worked: split tasks that take far longer than the rest, spawn the long "
                "ones first, and get results as late as possible"
            )
        return advice

    def _too_many_threads(self) -> str:
        return (
            f"tasks have computed with {self.threads:.1f} threads for each core: let libraries use one thread in tasks "
            "(OMP_NUM_THREADS=1, threadpoolctl), since the tasks have the cores already"
        )

    def sentences(self) -> list[str]:
        """For people."""
        busy = f"{100 * self.utilisation:.0f} % of their time busy, {self.idle_s:.2f} s idle"
        lines = [f"explained: {self.wall_s:.2f} s on {self.cores} cores, {busy}"]
        for node in self.nodes:
            for number, busy_s in enumerate(node.busy_s):
                share = min(1.0, busy_s / max(1e-9, self.wall_s))
                lines.append(f"  {node.host}:{number} (node {node.node})  {busy_s:8.2f} s  {share:4.0%}  {_bar(share)}")
        if self.cpu_s > 0.0:
            lines.append(
                f"  processors: {_time(self.cpu_s)} computed, {_time(self.queued_s)} waited for a core that others had"
            )
        lines.append(
            f"  tasks: {self.sum('tasks_run'):,} run, {_time(self.task_s)} each; {self.exported:,} of them exported, "
            f"{self.sum('stolen'):,} moved between nodes, {self.sum('fish_sent'):,} fish; "
            f"the way through a node: {_time(self.way_s)}"
        )
        if self.span_s:
            lines.append(
                f"  critical path: {_time(self.span_s)} of {_time(self.work_s)} of work: "
                f"{self.parallelism:.1f} cores can be kept busy"
            )
        grains = self.grains
        if grains:
            lines.append("  tasks that had been exported took less than")
            most = max(grains.values())
            lines += [
                f"    {_time(2**grain / 1e6):>8}  {count:9,}  {_bar(count / most)}" for grain, count in grains.items()
            ]
        dearest = self.dearest[:SHOWN_MAX]
        if dearest:
            lines.append("  the dearest functions: calls, seconds, seconds of their own")
            lines += [
                f"    {one.calls:9,}  {one.total_s:9.3f}  {one.own_s:9.3f}  {one.name}  ({one.host})" for one in dearest
            ]
        for one in self.unfinished:
            if one.for_s >= STUCK_S:
                lines.append(f"  not done: {one.scheduler} has been in {one.task} for {_time(one.for_s)}")
        lines += [f"  what to change: {sentence}" for sentence in self.advice()]
        return lines


def _bar(share: float) -> str:
    return "#" * round(BAR * share)


def _time(seconds: float) -> str:
    for unit, name in ((1.0, "s"), (1e-3, "ms")):
        if seconds >= unit:
            return f"{seconds / unit:.3g} {name}"
    return f"{seconds / 1e-6:.3g} µs"
