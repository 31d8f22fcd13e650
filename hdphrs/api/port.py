"""What spawn and get need from the process that they run in.

What lives here: the `Port` that a scheduler, a program and sequential mode each implement, and the port of a process
that has not attached to a node yet.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from importlib import import_module
from typing import Any, Protocol, TypeVar

from hdphrs.api import seeds
from hdphrs.api.future import Future, state
from hdphrs.api.places import Roster
from hdphrs.errors import StartError, UsageError
from hdphrs.gil import why_not
from hdphrs.protocol.paths import PROGRAM_PATH, child_path
from hdphrs.protocol.tasks import NodeId

T = TypeVar("T")

NOT_OURS = "get: this future belongs to another process, of which this one is a fork, or to a task"


class Bell(Protocol):
    """Wakes one who waits for something; rung when nobody waits, it wakes the next one who does."""

    def ring(self) -> None:
        """Never blocks."""

    def wait(self, for_s: float | None = None) -> bool:
        """Suspend the calling task, or block the calling thread, until somebody rings, or for so long; whether somebody
        has rung."""


class Port(Protocol):
    """The way from user code to the node."""

    def spawn(
        self,
        function: Callable[..., T],
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
        supervised: bool | None,
    ) -> Future[T]:
        """Make a spark where there is no private deque (in a program)."""

    def place(
        self,
        node: NodeId,
        function: Callable[..., T],
        args: tuple[Any, ...],
        supervised: bool | None,
    ) -> Future[T]:
        """Make a thread on `node` (`spawn_at`)."""

    def wait(self, future: Future[T]) -> T:
        """The value of a future that somebody has taken; suspends the caller until it is there."""

    def poll(self, future: Future[Any]) -> bool:
        """Whether the outcome of a taken future is there by now, looking once."""

    def bell(self) -> Bell:
        """A new one."""

    def watch(self, future: Future[Any], call: Callable[[], object]) -> None:
        """Have `call()` made when a future is full: at once if it is, else by whoever fills it, who must not be
        blocked."""

    def unwatch(self, future: Future[Any], call: Callable[[], object]) -> None:
        """Have it not made after all, if it has not been made yet."""

    def attend(self, future: Future[Any], call: Callable[[], object]) -> None:
        """Have a future completed though nobody gets it, and `call()` made when it is full, in a thread or at once.  It
        may block in a scheduler, and in a program not."""

    def want(self, future: Future[Any]) -> None:
        """Have a future completed though nobody gets it."""

    def filled(self, future: Future[Any]) -> None:
        """A future that nobody had taken is full: it was cancelled."""

    def cancel(self, future: Future[Any]) -> bool:
        """Give up a future that somebody has taken; whether it was empty."""

    def export(self) -> None:
        """A spark has just been made, and the node asks for some, or this one may have been run before."""

    is_scheduler: bool
    """Whether what calls is a task, in another process than the program."""

    @property
    def roster(self) -> Roster:
        """All live nodes, this one first."""

    def topic(self) -> bytes:
        """A path for what is no task: a search, whose tasks tell each other under it what they find, or a stream of
        random numbers.  Another one each time, as with a spawn, and the same if the caller is run again."""

    def key(self) -> bytes:
        """What random numbers depend on beside the path (`api/seeds.py`)."""

    def aside(self) -> AbstractContextManager[None]:
        """What the block spawns counts as one: however much that is, what comes after it has the same paths."""

    def tell(self, topic: bytes, rank: float, find: object) -> None:
        """Let all others know a find, if nothing better is known here; it may be lost, and takes no time here."""

    def best(self, topic: bytes) -> tuple[float, Any] | None:
        """The best find of all that have arrived here, with its rank; the same object as long as there is no better."""

    def run(self, main: Callable[..., T], args: tuple[Any, ...]) -> T:
        """Run `main` as the first task of a program, and wait for it."""


class Unattached:
    """The port of a process that has made no call yet: the first call attaches it, and is then made again."""

    is_scheduler: bool = False

    def __init__(self, attach: Callable[[], Port]) -> None:
        self._attach = attach

    def topic(self) -> bytes:
        """Random numbers need no node."""
        return child_path(PROGRAM_PATH, seeds.indices.take())

    def key(self) -> bytes:
        """As the port's that there will be."""
        return seeds.run_key()

    def wait(self, future: Future[T]) -> T:
        """A future of a run that is over needs no other one."""
        return owner_of(future).wait(future)

    def poll(self, future: Future[Any]) -> bool:
        """As `wait`."""
        return owner_of(future).poll(future)

    def watch(self, future: Future[Any], call: Callable[[], object]) -> None:
        """As `wait`."""
        owner_of(future).watch(future, call)

    def unwatch(self, future: Future[Any], call: Callable[[], object]) -> None:
        """As `wait`."""
        owner_of(future).unwatch(future, call)

    def cancel(self, future: Future[Any]) -> bool:
        """As `wait`."""
        return owner_of(future).cancel(future)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        port = self._attach()
        if state.port is self:  # sequential mode may have been entered by another thread meanwhile
            state.port = port
        return getattr(port, name)


def unattached() -> Port:
    """The port of a process that has made no call yet."""
    return Unattached(attached)


def owner_of(future: Future[Any]) -> Port:
    """The port of the run of a program that has made this future.

    Raises:
        UsageError: it was made by a task.
    """
    owner = getattr(future, "_parent", None)
    if owner is None or isinstance(owner, Future):
        raise UsageError(NOT_OURS)
    port: Port = owner
    return port


def attached() -> Port:
    """The port of this process, which is a program, and has a node from now on.

    Raises:
        HdphrsError: it can have none.
    """
    if (sentence := why_not()) is not None:
        raise StartError(sentence)
    port: Port = import_module("hdphrs.program.attach").attach()  # by name: only programs attach, a layer above
    return port
