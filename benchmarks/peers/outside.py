"""hdphrs, used like a pool: the program makes the tasks, each of which goes to the node."""

from __future__ import annotations

from benchmarks.peers.inside import HdphrsPeer
from benchmarks.peers.peer import Job


def serve(job: Job) -> None:
    """One local node, which starts with the first task."""
    job.run(HdphrsPeer())
