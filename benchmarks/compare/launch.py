"""Starts one job in processes of its own, watches it from outside, kills a worker where that is the workload, and ends
all of it: what the job has measured, or what became of it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.compare.job import LOG_FILE, REPORT_FILE, ComparedJob, Figures
from benchmarks.compare.processes import FOLDER_PREFIX, FOLDER_VARIABLE, kill_members
from benchmarks.compare.systems import BASE, VENVS, WORKERS, System
from benchmarks.compare.workloads import FULL, Poison, Recovery, StartUp, build
from benchmarks.installed import STALE, is_stale, way
from benchmarks.launch import for_another_python

POLL_S = 0.005
FAREWELL_S = 5.0
"""What a system may take to end itself after its report; then it is killed."""
DEADLINE_S = 90.0
FAULT_DEADLINE_S = 45.0
"""A job that has left no report by then hangs."""
LAST_WORDS_CHARS_MAX = 160

HANGS = "hangs"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one job."""

    system: str
    workload: str
    size: str
    outcome: str
    figures: Figures = field(default_factory=dict)


def run_job(system: str, how: System, workload: str, size: str | None = None, memory: str = "") -> Outcome:
    """Have one system do one workload, once.

    Args:
        size: instead of the one that is usual for the system.
        memory: a folder that jobs of the same workload share.
    """
    size = size or how.sizes.get(workload, FULL)
    if reason := how.skips.get(workload) or why_not_installed(how):
        return Outcome(system, workload, size, f"skipped: {reason}")
    try:
        with tempfile.TemporaryDirectory(prefix=FOLDER_PREFIX, ignore_cleanup_errors=True) as folder:
            try:
                job = ComparedJob(workload, size, WORKERS, folder, time.time(), memory)
                outcome, figures = _watch(how, job)
            finally:
                kill_members(folder)
    except OSError as error:
        outcome, figures = f"failed: {error}", {}
    return Outcome(system, workload, size, outcome, figures)


def why_not_installed(how: System) -> str:
    """Nothing if the system is there."""
    folder = VENVS / how.venv
    if (failure := folder / "failure").exists():
        return failure.read_text().strip()
    if how.venv == BASE and is_stale(folder):
        return STALE
    return "" if (folder / "bin" / "python").exists() else "not installed (make bench-peers)"


def _watch(how: System, job: ComparedJob) -> tuple[str, Figures]:
    workload = build(job.workload, job.size) if job.workload in ("recovery", "poison", "no_recovery") else StartUp(0)
    is_fault = isinstance(workload, Recovery | Poison)
    victim = Victim(job.folder, workload.kill_after if isinstance(workload, Recovery) else 0)
    report, errors = Path(job.folder, REPORT_FILE), Path(job.folder, "stderr")
    with errors.open("wb") as stderr:
        process = subprocess.Popen(
            how.command(job.to_json()),
            stdin=subprocess.DEVNULL,
            stdout=stderr,
            stderr=stderr,
            cwd=job.folder,
            env=environment(os.environ, how, job.folder),
            start_new_session=True,
        )
    give_up_s = time.perf_counter() + (FAULT_DEADLINE_S if is_fault else DEADLINE_S)
    while not report.exists() and process.poll() is None and time.perf_counter() < give_up_s:
        victim.kill_when_due()
        time.sleep(POLL_S)
    if report.exists():
        facts = json.loads(report.read_text())
        outcome, figures = str(facts["outcome"]), dict(facts["figures"])
        if is_fault:
            figures |= _seen_from_outside(job, float(facts["ended_at"])) | victim.lost
    elif process.poll() is not None:
        words = errors.read_text(errors="replace").split("\n")
        last = next((line for line in reversed(words) if line.strip()), "")
        outcome, figures = f"ended with status {process.returncode}: {last[:LAST_WORDS_CHARS_MAX]}", {}
    else:
        outcome, figures = HANGS, {}
    if job.workload != "waiting":  # whose tasks wait for good
        with suppress(subprocess.TimeoutExpired):
            process.wait(FAREWELL_S)
    kill_members(job.folder)
    process.wait()
    return outcome, figures


def environment(ours: Mapping[str, str], how: System, folder: str) -> dict[str, str]:
    """What a system's processes get: its folder, the way to these benchmarks, and no words with the world outside."""
    path = f"{VENVS / how.venv / 'bin'}:{ours.get('PATH', '')}"
    quiet = {"RAY_USAGE_STATS_ENABLED": "0", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    return for_another_python(ours) | quiet | {"PATH": path, "PYTHONPATH": str(way()), FOLDER_VARIABLE: folder}


@dataclass(slots=True)
class Victim:
    """The worker that is killed: the one that has begun a task last when it is time."""

    folder: str
    kill_after: int
    """Tasks that are done by then; 0 if nobody is to die."""
    lost: Figures = field(default_factory=dict)
    """For how long it had worked on what it was killed with."""

    def kill_when_due(self) -> None:
        """At most once."""
        if not self.kill_after:
            return
        starts, ends = _lines(self.folder)
        running = [line for line in starts if line[1] not in {done[1] for done in ends}]
        if len(ends) >= self.kill_after and running:
            os.kill(int(running[-1][2]), signal.SIGKILL)
            self.lost = {"lost_s": time.time() - float(running[-1][3])}
            self.kill_after = 0


def _seen_from_outside(job: ComparedJob, ended_at: float) -> Figures:
    """From the log of the tasks: seconds from the first one's start to the report, and starts beyond the first."""
    starts, _ = _lines(job.folder)
    if not starts:
        return {}
    again = len(starts) - len({line[1] for line in starts})
    return {"seconds": ended_at - float(starts[0][3]), "run_again": again}


def _lines(folder: str) -> tuple[list[list[str]], list[list[str]]]:
    """Starts and ends: what, number, process, time."""
    log = Path(folder, LOG_FILE)
    lines = [line.split() for line in log.read_text().splitlines()] if log.exists() else []
    return [line for line in lines if line[0] == "start"], [line for line in lines if line[0] == "end"]
