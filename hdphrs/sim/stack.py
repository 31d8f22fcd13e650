"""Tasks that have begun, and the futures of their children, inside one virtual scheduler.

What lives here: data.  Who moves it is `scheduler.py`.
"""

from __future__ import annotations

from hdphrs.protocol.tasks import Spark

WAITING, RUNNING, AWAY, DONE = range(4)

BEGIN, SPAWN, GET, END = range(4)


class Future:
    """A child, as its parent sees it."""

    __slots__ = ("contribution", "number", "root", "status", "waiter")

    def __init__(self, number: int, root: Spark) -> None:
        self.number: int = number
        self.root: Spark = root
        """The assigned task that it descends from."""
        self.status: int = WAITING
        self.contribution: int | None = None
        self.waiter: Stack | None = None


class Frame:
    """A task that has begun."""

    __slots__ = ("began_ns", "contributions", "future", "gets", "number", "phase")

    def __init__(self, number: int, future: Future | None, began_ns: int) -> None:
        self.number: int = number
        self.began_ns: int = began_ns
        self.future: Future | None = future
        """None for an assigned task."""
        self.phase: int = BEGIN
        self.gets: list[Future] = []
        """Children that it has not got yet, the next one last."""
        self.contributions: list[int | None] = []


class Stack:
    """An assigned task or a spark of this scheduler's own, with all that runs in place on top of it."""

    __slots__ = ("frames", "root")

    def __init__(self, root: Spark, frame: Frame) -> None:
        self.root: Spark = root
        """Who is to blame if the process dies."""
        self.frames: list[Frame] = [frame]
