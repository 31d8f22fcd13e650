"""mpi4py.futures: one rank makes tasks, the others are workers; started by mpiexec and `-m mpi4py.futures`."""

from __future__ import annotations

from mpi4py.futures import MPIPoolExecutor

from benchmarks.peers.executor import ExecutorPeer
from benchmarks.peers.peer import Job


def serve(job: Job) -> None:
    """The ranks are there already."""
    with MPIPoolExecutor(max_workers=job.workers) as executor:
        job.run(ExecutorPeer(executor))
