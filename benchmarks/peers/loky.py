"""loky, the executor of joblib.  `joblib.Parallel` itself makes batches of small tasks: not what is compared here."""

from __future__ import annotations

from joblib.externals.loky import get_reusable_executor

from benchmarks.peers.executor import ExecutorPeer
from benchmarks.peers.peer import Job


def serve(job: Job) -> None:
    """The executor that joblib uses."""
    with get_reusable_executor(max_workers=job.workers) as executor:
        job.run(ExecutorPeer(executor))
