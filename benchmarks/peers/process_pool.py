"""concurrent.futures.ProcessPoolExecutor."""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor

from benchmarks.peers.executor import ExecutorPeer
from benchmarks.peers.peer import Job


def serve(job: Job) -> None:
    """Workers forked on demand."""
    with ProcessPoolExecutor(job.workers) as executor:
        job.run(ExecutorPeer(executor))
