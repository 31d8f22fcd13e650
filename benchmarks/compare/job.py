"""One job: one workload, done once by one system; measured in the system's own process, by the same code for all.

What lives here: building the workload, timing it, checking the answer, the report.  Not here: what must be seen from
outside, deaths and hangs (`launch.py`).
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median, quantiles
from typing import TypeVar

from benchmarks.compare.processes import busy_s, cpu_s, members, memory_bytes
from benchmarks.compare.workloads import Flat, Nested, Poison, Recovery, RoundTrip, StartUp, Waiting, build
from benchmarks.kernels.small import noop, paced, paced_or_poison
from benchmarks.peers.peer import Peer, UnsupportedError

RIGHT = "right"

REPORT_FILE = "report.json"
LOG_FILE = "log"

WARM_UPS = 20
BLOCKER_S = 60.0
"""Longer than anybody looks at tasks that wait."""
SETTLE_S = 1.0
BLOCKED_WITHIN_S = 2.0
MESSAGE_CHARS_MAX = 200

Figures = dict[str, float]

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ComparedJob:
    """What a system is to do; it pickles."""

    workload: str
    size: str
    workers: int
    folder: str
    launched_at: float
    memory: str = ""
    """Folder of what is known before; nothing if nothing is."""

    @classmethod
    def from_json(cls, text: str) -> ComparedJob:
        """What `to_json` has made."""
        return cls(**json.loads(text))

    def to_json(self) -> str:
        """As the argument of a program."""
        return json.dumps(asdict(self))

    @property
    def log(self) -> str:
        """The file in which tasks leave word."""
        return str(Path(self.folder, LOG_FILE))

    def run(self, peer: Peer) -> None:
        """Measure, and leave a report."""
        figures: Figures = {}
        try:
            figures, outcome = self._measure(peer)
        except UnsupportedError as refusal:
            outcome = f"skipped: {refusal}"
        except Exception as error:
            lines = str(error).splitlines() or [""]
            outcome = f"failed: {type(error).__name__}: {lines[0]}"[:MESSAGE_CHARS_MAX]
        report = {"outcome": outcome, "figures": figures, "ended_at": time.time()}
        draft = Path(self.folder, f"{REPORT_FILE}.{os.getpid()}")
        draft.write_text(json.dumps(report))
        draft.rename(Path(self.folder, REPORT_FILE))

    def _measure(self, peer: Peer) -> tuple[Figures, str]:
        match build(self.workload, self.size):
            case Flat() as flat:
                return self._measure_flat(peer, flat)
            case Nested() as nested:
                return self._measure_nested(peer, nested)
            case RoundTrip(count):
                figures, seen = self._observe(lambda: _measure_round_trip(peer, count))
                return figures | {"others_cores": seen["others_cores"]}, RIGHT
            case StartUp(idle_s):
                return self._measure_startup(peer, idle_s), RIGHT
            case Waiting(count):
                return self._measure_waiting(peer, count), RIGHT
            case Recovery(count, seconds, _):
                return self._recover(peer, count, seconds)
            case Poison() as poison:
                return self._poison(peer, poison)

    def _measure_flat(self, peer: Peer, flat: Flat) -> tuple[Figures, str]:
        peer.rehearse_map(flat.function, flat.items)
        figures, values = self._time(peer, lambda: peer.map(flat.function, flat.items), len(flat.items))
        return figures, RIGHT if sum(values) == flat.answer else f"wrong: {sum(values)}"

    def _measure_nested(self, peer: Peer, nested: Nested) -> tuple[Figures, str]:
        peer.rehearse_tree(nested.visit, nested.problem)
        figures, value = self._time(peer, lambda: peer.tree(nested.visit, nested.problem), nested.tasks)
        return figures, RIGHT if value == nested.answer else f"wrong: {value}"

    def _time(self, peer: Peer, work: Callable[[], T], tasks: int) -> tuple[Figures, T]:
        """By the wall, and the processor time of all processes, which others on the machine disturb less."""
        _warm_up(peer)
        value, figures = self._observe(work)
        if tasks:
            seconds = figures["seconds"]
            figures |= {"us_per_task": seconds / tasks * 1e6, "tasks_per_s": tasks / seconds}
            figures["cpu_us_per_task"] = figures["cpu_s"] / tasks * 1e6
        return figures, value

    def _observe(self, work: Callable[[], T]) -> tuple[T, Figures]:
        """How long it takes, what all processes of this job use meanwhile, and what others do."""
        ours_s, all_s, started_s = cpu_s(self.folder), busy_s(), time.perf_counter()
        value = work()
        seconds = time.perf_counter() - started_s
        ours_s, all_s = cpu_s(self.folder) - ours_s, busy_s() - all_s
        return value, {"seconds": seconds, "cpu_s": ours_s, "others_cores": max(0.0, all_s - ours_s) / seconds}

    def _measure_startup(self, peer: Peer, idle_s: float) -> Figures:
        peer.result(peer.submit(noop, 0))
        seconds = time.time() - self.launched_at
        for handle in [peer.submit(noop, number) for number in range(WARM_UPS)]:
            peer.result(handle)
        time.sleep(SETTLE_S)
        _, seen = self._observe(lambda: time.sleep(idle_s))
        return {
            "seconds": seconds,
            "memory_mb": memory_bytes(self.folder) / 1e6,
            "idle_cpu_percent": 100 * seen["cpu_s"] / seen["seconds"],
            "others_cores": seen["others_cores"],
            "processes": len(members(self.folder)),
        }

    def _measure_waiting(self, peer: Peer, count: int) -> Figures:
        for handle in [peer.submit(noop, number) for number in range(WARM_UPS)]:
            peer.result(handle)
        handles = [peer.submit(paced, self.log, BLOCKER_S, number) for number in range(self.workers)]
        give_up_s = time.perf_counter() + BLOCKED_WITHIN_S
        while not self._blocked() and time.perf_counter() < give_up_s:
            time.sleep(0.01)
        before_bytes = memory_bytes(self.folder)
        started_s = time.perf_counter()
        handles += [peer.submit(noop, number) for number in range(count)]
        submitted_s = time.perf_counter() - started_s
        time.sleep(SETTLE_S)
        occupied_bytes = memory_bytes(self.folder) - before_bytes
        return {
            "memory_mb": occupied_bytes / 1e6,
            "bytes_per_task": occupied_bytes / count,
            "submit_us": submitted_s / count * 1e6,
        }

    def _blocked(self) -> bool:
        log = Path(self.log)
        return log.exists() and len(log.read_text().splitlines()) >= self.workers

    def _recover(self, peer: Peer, count: int, seconds: float) -> tuple[Figures, str]:
        """What took how long is seen from outside: the one who measures may be killed too."""
        handles = [peer.submit(paced, self.log, seconds, number) for number in range(count)]
        values = [peer.result(handle) for handle in handles]
        return {}, RIGHT if values == list(range(count)) else "wrong"

    def _poison(self, peer: Peer, poison: Poison) -> tuple[Figures, str]:
        handles, lost, contained = {}, 0, False
        for number in range(poison.count):
            try:
                handles[number] = peer.submit(paced_or_poison, self.log, poison.seconds, poison.poison, number)
            except Exception:  # a pool that is broken takes nothing more
                lost += 1
        for number, handle in handles.items():
            try:
                peer.result(handle)
            except Exception:
                contained |= number == poison.poison
                lost += number != poison.poison
        if not contained:
            return {"innocent_lost": lost}, "wrong: the poison has not failed"
        return {"innocent_lost": lost}, RIGHT if not lost else f"{lost} other tasks lost"


def _warm_up(peer: Peer) -> None:
    """All workers are there and have imported what they need."""
    try:
        handles = [peer.submit(noop, number) for number in range(WARM_UPS)]
    except UnsupportedError:
        return
    for handle in handles:
        peer.result(handle)


def _measure_round_trip(peer: Peer, count: int) -> Figures:
    for _ in range(WARM_UPS):
        peer.result(peer.submit(noop, 0))
    trips_us = []
    for number in range(count):
        started_s = time.perf_counter()
        peer.result(peer.submit(noop, number))
        trips_us.append((time.perf_counter() - started_s) * 1e6)
    return {"median_us": median(trips_us), "p95_us": quantiles(trips_us, n=20)[-1]}
