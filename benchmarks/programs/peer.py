"""Runs one job on one system: `python peer.py SYSTEM JOB`, where JOB is JSON; leaves a report in the job's folder.

It is run by the system's own Python, or by the launcher that comes with the system.
"""

from __future__ import annotations

import sys
from importlib import import_module

from benchmarks.compare.job import ComparedJob


def main() -> None:
    system, job = sys.argv[-2:]
    import_module(f"benchmarks.peers.{system}").serve(ComparedJob.from_json(job))


if __name__ == "__main__":
    main()
