"""Parsl: the executor for many tasks, with its workers on this host, and retries as its users set them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import parsl
from parsl.config import Config
from parsl.executors import HighThroughputExecutor
from parsl.providers import LocalProvider

from benchmarks.peers.peer import Job, Peer

RETRIES = 3


@parsl.python_app
def call(function: Callable[..., Any], *arguments: Any) -> Any:
    """The task."""
    return function(*arguments)


class ParslPeer(Peer):
    """One app for all."""

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Any:
        return call(function, *arguments)

    def result(self, handle: Any) -> Any:
        return handle.result()


def serve(job: Job) -> None:
    """One block of workers."""
    executor = HighThroughputExecutor(
        max_workers_per_node=job.workers,
        address="127.0.0.1",
        loopback_address="127.0.0.1",
        provider=LocalProvider(init_blocks=1, max_blocks=1),
    )
    config = Config(executors=[executor], retries=RETRIES, run_dir=f"{job.folder}/parsl", usage_tracking=0)
    with parsl.load(config):
        job.run(ParslPeer())
