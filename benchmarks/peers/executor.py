"""What all systems with the interface of `concurrent.futures` have in common."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Executor, Future
from typing import Any

from benchmarks.peers.peer import Peer


class ExecutorPeer(Peer):
    """With chunks of one task, which is the default."""

    def __init__(self, executor: Executor) -> None:
        self._executor = executor

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Future[Any]:
        return self._executor.submit(function, *arguments)

    def result(self, handle: Future[Any]) -> Any:
        return handle.result()

    def map(self, function: Callable[[Any], Any], items: Sequence[Any]) -> list[Any]:
        return list(self._executor.map(function, items))
