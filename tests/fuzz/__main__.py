"""`python -m tests.fuzz`: every target under every engine, a million inputs with fixed seeds, and a table.

What lives here: the plan, the processes (as many at a time as there are cores), the table, and how one input is tried
again.  Exit status 0: nothing found; 1: a finding; 2: a wrong call.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import time
import traceback
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

PLAN: Final[dict[str, dict[str, int]]] = {
    "codec": {"atheris": 180_000, "mutations": 25_000, "hypothesis": 6_000},
    "framing": {"atheris": 150_000, "mutations": 20_000, "hypothesis": 6_000},
    "pieces": {"atheris": 5_000, "mutations": 3_000, "hypothesis": 1_000},
    "session": {"atheris": 150_000, "mutations": 20_000, "hypothesis": 6_000},
    "handshake": {"atheris": 120_000, "mutations": 20_000, "hypothesis": 6_000},
    "sealing": {"atheris": 40_000, "mutations": 10_000, "hypothesis": 4_000},
    "greeting": {"atheris": 60_000, "mutations": 15_000, "hypothesis": 6_000},
    "settings": {"atheris": 60_000, "mutations": 15_000, "hypothesis": 6_000},
    "outcome": {"atheris": 60_000, "mutations": 15_000, "hypothesis": 6_000},
    "trace": {"atheris": 40_000, "mutations": 10_000, "hypothesis": 4_000},
    "core": {"atheris": 40_000, "mutations": 5_000, "hypothesis": 2_000},
    "listener": {"mutations": 3_000, "hypothesis": 1_000},
}
"""How many inputs of which engine."""

JOB_S_MAX: Final = 900
"""A job takes 20 seconds on a machine of its own."""


@dataclass(frozen=True, slots=True)
class Job:
    """One line of the table, before and after."""

    target: str
    engine: str
    count: int

    def run(self) -> dict[str, Any]:
        """The report of a worker; one about its death if it makes none."""
        with tempfile.TemporaryDirectory() as place:
            command = [sys.executable, "-m", "tests.fuzz.worker", self.target, self.engine, str(self.count)]
            environment = os.environ | {"PYTHONPATH": os.getcwd(), "PYTHONHASHSEED": "0"}
            try:
                done = subprocess.run(
                    command, capture_output=True, text=True, timeout=JOB_S_MAX, cwd=place, env=environment, check=False
                )
            except subprocess.TimeoutExpired:
                return {"what": f"no end within {JOB_S_MAX} seconds", "data": ""}
            if done.stdout.startswith("{"):
                report: dict[str, Any] = json.loads(done.stdout.splitlines()[0])
                return report
            left = [file.read_bytes() for file in sorted(Path(place).glob("*-*"))]  # libFuzzer leaves the input
        how = f"the process ended with status {done.returncode}: {done.stderr[-2000:]}"
        return {"what": how, "data": left[0].hex() if left else ""}


def _plan(only: str | None, share: float) -> list[Job]:
    guided = importlib.util.find_spec("atheris") is not None
    if not guided:
        print("atheris is not installed (no wheel for this Python): its share goes to our own mutations, unguided")
    jobs = [
        Job(target, engine if guided or engine != "atheris" else "unmeasured", max(int(count * share), 1))
        for target, counts in PLAN.items()
        for engine, count in counts.items()
        if only in (None, target)
    ]
    return sorted(jobs, key=lambda job: job.target not in ("listener", "core"))  # the slow ones first


def _run_all(only: str | None, share: float) -> int:
    begun = time.perf_counter()
    line = "{:<10} {:<10} {:>9} {:>9} {:>9} {:>6} {:>9} {:>7}"
    print(line.format("target", "engine", "inputs", "accepted", "refused", "kinds", "growth", "cpu"))
    inputs, found = 0, []
    jobs = _plan(only, share)
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for job, report in zip(jobs, pool.map(Job.run, jobs), strict=True):
            if "inputs" in report:
                inputs += report["inputs"]
                numbers = [report["inputs"], report["accepted"], report["inputs"] - report["accepted"]]
                growth, duration = f"{report['growth_bytes'] / 1e6:.0f} MB", f"{report['cpu_s']:.1f} s"
                print(line.format(job.target, job.engine, *numbers, report["kinds"], growth, duration), flush=True)
            if report["what"] is not None:
                found.append((job, report))
    print(f"{inputs:,} inputs in {time.perf_counter() - begun:.0f} s, {len(found)} findings")
    for job, report in found:
        print(f"\n{job.target} under {job.engine}: {report['what']}\n  input: {report['data']}")
        print(f"  rerun with: python -m tests.fuzz --target {job.target} --input {report['data']}")
    return 1 if found else 0


def _run_one(name: str, data: bytes) -> int:
    from tests.fuzz import tripwire
    from tests.fuzz.target import Finding, examine
    from tests.fuzz.targets import TARGETS

    target = TARGETS[name]
    with tripwire.laid():
        for seed in target.seeds():
            target.run(seed)
        tripwire.sprung.clear()
        try:
            outcome = examine(target, data, measured=True)
        except Finding as finding:
            print(finding)
            if finding.__cause__ is not None:
                traceback.print_exception(finding.__cause__)
            return 1
    print(f"{'accepted' if outcome.accepted else 'refused'}: {outcome.what}")
    return 0


def main() -> int:
    """Parse the command line, and run."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz")
    parser.add_argument("--target", choices=PLAN, help="only this one")
    parser.add_argument("--input", type=bytes.fromhex, metavar="HEX", help="try this input again; needs --target")
    parser.add_argument("--share", type=float, default=1.0, help="of the inputs of each (default %(default)s)")
    options = parser.parse_args()
    if options.input is None:
        return _run_all(options.target, options.share)
    if options.target is None:
        parser.error("--input needs --target")
    return _run_one(options.target, options.input)


if __name__ == "__main__":
    sys.exit(main())
