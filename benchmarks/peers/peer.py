"""What a system can be asked to do, and the job that does the asking."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeAlias

Visit: TypeAlias = Callable[[Any], tuple[int, Sequence[Any]]]
"""A problem's own share of the sum, and the problems below it."""


class UnsupportedError(Exception):
    """The system cannot do this at all; the message says why."""


class Peer(ABC):
    """A system that has been started."""

    @abstractmethod
    def submit(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Make one task, and return what `result` takes."""

    @abstractmethod
    def result(self, handle: Any) -> Any:
        """Wait for a task: its value; raises what it raised."""

    def map(self, function: Callable[[Any], Any], items: Sequence[Any]) -> list[Any]:
        """One task an item, in no batches: the values in the items' order."""
        handles = [self.submit(function, item) for item in items]
        return [self.result(handle) for handle in handles]

    def tree(self, visit: Visit, problem: Any) -> int:
        """One task a problem, each made by the task above: the sum of all shares.

        Raises:
            UnsupportedError: tasks cannot make tasks and wait for them.
        """
        raise UnsupportedError("its tasks cannot wait for tasks of their own")

    def rehearse_map(self, function: Callable[[Any], Any], items: Sequence[Any]) -> None:
        """What a system may do with the work before the clock starts; only the ideal does anything."""
        return

    def rehearse_tree(self, visit: Visit, problem: Any) -> None:
        """The same for trees."""
        return


class Job(Protocol):
    """What an adapter is given; it pickles."""

    @property
    def workers(self) -> int:
        """How many tasks are to run at once."""

    @property
    def folder(self) -> str:
        """Where the system may leave files; it is removed afterwards."""

    @property
    def memory(self) -> str:
        """Where the ideal keeps its rehearsal for the next job of the same work; nothing if there is none."""

    def run(self, peer: Peer) -> None:
        """Measure, and leave a report."""
