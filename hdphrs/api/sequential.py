"""Sequential mode: everything in this process, in spawn order, with no other process.

For pdb, and the oracle of every test: what a program computes here is what it must compute on any cluster.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from itertools import count
from typing import TYPE_CHECKING, Any, TypeVar

from hdphrs.api import future as fast
from hdphrs.api.board import Board
from hdphrs.api.depth import sequentially_deep
from hdphrs.api.failures import detach
from hdphrs.api.future import DONE, FAILED, Future, state
from hdphrs.api.places import NodeInfo, Roster
from hdphrs.api.port import Bell
from hdphrs.api.seeds import Indices, run_key
from hdphrs.api.threads import FIRST_THREAD, Body, on_start
from hdphrs.errors import UsageError
from hdphrs.protocol.paths import PROGRAM_PATH, child_path
from hdphrs.protocol.tasks import ROOT, NodeId

if TYPE_CHECKING:
    from hdphrs.api.isolation import Isolation

T = TypeVar("T")


class SequentialPort:
    """Runs each task when it is spawned; an exception waits in the future for `get`, as elsewhere."""

    is_scheduler: bool = False

    def __init__(self) -> None:
        from hdphrs.api.isolation import Isolation  # loads what a scheduler, which imports this module, may not need
        from hdphrs.contexts.aspects import aspects

        self.roster: Roster = Roster([NodeInfo(ROOT, "localhost", 1)])
        self._board: Board[object] = Board()
        self._program = Indices()
        self._here = threading.local()
        """The running task of a thread: its path, its indices, and the numbers of its threads."""
        self._lock = threading.Lock()
        self._nesting = 0
        """Threads of the program that run tasks."""
        self._limit = self._deep = 0
        """The recursion limit of the program, and that of its tasks."""
        self.isolation: Isolation = Isolation(*aspects())

    def take_over(self) -> Callable[[], None]:
        """From now on the tasks of this process run in here; what is returned ends that."""
        before = state.port, fast.isolation, fast.isolates
        fast.isolation, fast.isolates, state.port = self.isolation, True, self
        undo = on_start(self.of_its_task)

        def end() -> None:
            undo()
            state.port, fast.isolation, fast.isolates = before

        return end

    def spawn(
        self,
        function: Callable[..., T],
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
        supervised: bool | None,
    ) -> Future[T]:
        future: Future[T] = Future()
        future._function = None
        handled = sys.exception()
        here, outer = self._here, self._task()
        here.task = child_path(outer[0], outer[1].take()), Indices(), count()
        if outer[1] is self._program:
            self._descend()
            self.isolation.aspects.rebase()  # the program's streams are those of its tasks
        try:
            future._content = self.isolation.call(self.isolation.snapshot(), function, args, kwargs)
            future._status = DONE
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt):  # meant for the program, which this is
                raise
            detach(error, handled)  # elsewhere a task does not know what its parent is handling
            future._content = error
            future._status = FAILED
        finally:
            here.task = outer
            if outer[1] is self._program:
                self._ascend()
        return future

    def place(
        self, node: NodeId, function: Callable[..., T], args: tuple[Any, ...], supervised: bool | None
    ) -> Future[T]:
        if node != ROOT:
            raise UsageError(f"spawn_at: there is no node {node}; in sequential mode the only one is {ROOT}")
        return self.spawn(function, args, {}, supervised)

    def wait(self, future: Future[T]) -> T:
        raise UsageError("get: this future belongs to a run with processes, and sequential mode has none")

    def poll(self, future: Future[Any]) -> bool:
        return False

    def bell(self) -> Bell:
        return _Bell()

    def watch(self, future: Future[Any], call: Callable[[], object]) -> None:
        call()

    def unwatch(self, future: Future[Any], call: Callable[[], object]) -> None:
        """It has been made."""

    def attend(self, future: Future[Any], call: Callable[[], object]) -> None:
        threading.Thread(target=self.of_its_task(call), name="hdphrs-callback", daemon=True).start()

    def want(self, future: Future[Any]) -> None:
        """It is full."""

    def filled(self, future: Future[Any]) -> None:
        """Nobody waits."""

    def cancel(self, future: Future[Any]) -> bool:
        return False

    def export(self) -> None:
        """Nobody is hungry: there is nobody else."""

    def topic(self) -> bytes:
        path, indices, _ = self._task()
        return child_path(path, indices.take())

    def key(self) -> bytes:
        return run_key()

    def aside(self) -> AbstractContextManager[None]:
        return self._task()[1].aside()

    def tell(self, topic: bytes, rank: float, find: object) -> None:
        self._board.improve(topic, rank, find)

    def best(self, topic: bytes) -> tuple[float, Any] | None:
        return self._board.best(topic)

    def run(self, main: Callable[..., T], args: tuple[Any, ...]) -> T:
        if self._task()[1] is not self._program:
            return main(*args)
        return fast.get(self.spawn(main, args, {}, None))

    def of_its_task(self, body: Body) -> Body:
        """The body of a thread that a task starts: the thread's tasks are below that one, as in a scheduler."""
        path, indices, threads = self._task()
        if indices is self._program:
            return body
        below = child_path(path, FIRST_THREAD + next(threads)), Indices(), count()

        def run_thread(*args: Any, **kwargs: Any) -> None:
            self._here.task = below
            body(*args, **kwargs)

        return run_thread

    def _task(self) -> tuple[bytes, Indices, Iterator[int]]:
        return getattr(self._here, "task", (PROGRAM_PATH, self._program, count()))

    def _descend(self) -> None:
        """The program calls its first task, below which calls nest as deep as in a scheduler."""
        with self._lock:
            if not self._nesting:
                self._limit = sys.getrecursionlimit()
                self._deep = sequentially_deep(self._limit)
                sys.setrecursionlimit(self._deep)
            self._nesting += 1

    def _ascend(self) -> None:
        """It has come back; what a task has set instead of our limit stays."""
        with self._lock:
            self._nesting -= 1
            if not self._nesting and sys.getrecursionlimit() == self._deep:
                sys.setrecursionlimit(self._limit)


class _Bell:
    """For callbacks, which are called in a thread here too."""

    def __init__(self) -> None:
        self._rung = threading.Event()

    def ring(self) -> None:
        self._rung.set()

    def wait(self, for_s: float | None = None) -> bool:
        rung = self._rung.wait(for_s)
        self._rung.clear()
        return rung


@contextmanager
def sequential() -> Iterator[None]:
    """Run every task of the block in this process, in the order of their spawns.

    Raises:
        UsageError: inside a task, which has a scheduler already.
    """
    if fast.here.task is not None:
        raise UsageError("sequential(): not inside a task; enter it in the program")
    end = SequentialPort().take_over()
    try:
        yield
    finally:
        end()
