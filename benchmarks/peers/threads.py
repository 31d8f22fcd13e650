"""concurrent.futures.ThreadPoolExecutor: no process more, and one core for all of them but where C code lets it go."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from benchmarks.peers.executor import ExecutorPeer
from benchmarks.peers.peer import Job


def serve(job: Job) -> None:
    """Workers are threads of the program."""
    with ThreadPoolExecutor(job.workers) as executor:
        job.run(ExecutorPeer(executor))
