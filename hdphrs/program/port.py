"""The port of a program: plain blocking calls that any thread may make.

What lives here: the futures that the program made, and the two threads that serve its link.  The receiver fills
futures.  The sender sends what the calls have put into its queue, in batches while a program spawns in a loop; no other
thread ever writes to the link, so that a Ctrl-C cannot cut a frame in two.  Nothing of the user's is pickled or
unpickled while a lock is held.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import replace
from queue import Empty, SimpleQueue
from typing import Any, Final, TypeVar

from hdphrs.api import seeds
from hdphrs.api.future import AWAY, DONE, FAILED, Future, Status, name_of, unfold
from hdphrs.api.future import get as fast_get
from hdphrs.api.memo import Wish, wish_of
from hdphrs.api.options import options_of_task
from hdphrs.api.port import Bell
from hdphrs.api.seeds import Indices
from hdphrs.errors import Cancelled, RootLostError, StartError, UsageError
from hdphrs.program.listener import LOOK_S, Listener
from hdphrs.protocol.paths import PROGRAM_PATH, child_path
from hdphrs.protocol.tasks import FAIR, KEEN, ROOT, NodeId, Task
from hdphrs.wire import local
from hdphrs.wire.code import CodeBook
from hdphrs.wire.codec import pack_task, unpack_outcome
from hdphrs.wire.values import load_outcome

T = TypeVar("T")

ARRIVED: Final = Status("arrived")
"""The outcome is here as bytes; the first `get` unpickles it, in its own thread."""

FAREWELL_S = 2.0
"""How long the end of a program waits until the node has been told."""

PART_S = 0.5
"""How long it waits then for what tasks have said."""

BATCH_MAX = 4096
"""Messages that leave together at most."""


class _Bell:
    """Any thread may ring."""

    def __init__(self) -> None:
        self._rung = threading.Semaphore(0)

    def ring(self) -> None:
        self._rung.release()

    def wait(self, for_s: float | None = None) -> bool:
        return self._rung.acquire(timeout=for_s)


class ProgramPort:
    """The program's end of its link to the root node."""

    is_scheduler: bool = False

    def __init__(self, link: local.Link, *, describe_loss: Callable[[], str], number: int = 0) -> None:
        """
        Args:
            describe_loss: says, once the link has broken, what became of the root node.
            number: 0 for the cluster of this program; any other for a node of an executor's own, whose tasks have the
                same paths, and are to draw other random numbers.
        """
        self._link = link
        self._describe_loss = describe_loss
        self._lock = threading.RLock()
        """Guards `_waiters` and the status of futures against the receiver; a signal handler may take it again."""
        self._outgoing: SimpleQueue[list[Any] | None] = SimpleQueue()
        self._book = CodeBook(lambda digest, data: self._outgoing.put([local.CODE, digest, data]))
        self._pending: dict[int, Future[Any]] = {}
        self._waiters: dict[Future[Any], list[Callable[[], object]]] = {}
        self._receiver = threading.Thread(target=self._receive, name="hdphrs-receiver", daemon=True)
        self._slots = itertools.count()
        self._indices = seeds.indices if number == 0 else Indices()
        self._number = number
        self._begun = threading.Event()
        self._sent = threading.Event()
        self._parted = threading.Event()
        self._listener = Listener()
        self._refusal: str | None = None
        self._lost = False
        self._closed = False
        self._nodes: list[NodeId] = [ROOT]
        self.cores: int = 0
        """Schedulers of all live nodes together."""
        self._reliable = True
        self._ledger = False

    def start(self) -> None:
        """Start the threads, and wait until the run may begin.

        Raises:
            StartError: it may not; the message says why.
        """
        threading.Thread(target=self._send, name="hdphrs-sender", daemon=True).start()
        self._receiver.start()
        self._begun.wait()
        if self._refusal is not None:
            raise StartError(self._refusal)
        if self._lost:
            raise StartError(self._describe_loss())

    @property
    def is_lost(self) -> bool:
        """Whether the root node is gone."""
        return self._lost

    # ---- the port --------------------------------------------------------------------------------------------

    def spawn(
        self,
        function: Callable[..., T],
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
        supervised: bool | None,
        *,
        index: int | None = None,
    ) -> Future[T]:
        index = self.take_index() if index is None else index
        future, slot, task = self._make(function, args, kwargs, supervised, index)
        self._outgoing.put([local.EXPORT, [[slot, pack_task(task)]]])
        return future

    def place(
        self, node: NodeId, function: Callable[..., T], args: tuple[Any, ...], supervised: bool | None
    ) -> Future[T]:
        future, slot, task = self._make(function, args, {}, supervised, self.take_index())
        self._outgoing.put([local.PLACE, slot, node, pack_task(replace(task, pin=()))])
        return future

    def wait(self, future: Future[T]) -> T:
        arrival = threading.Lock()
        arrival.acquire()
        self.watch(future, arrival.release)
        arrival.acquire()
        self._listener.show()
        status, content = future._status, future._content
        if status is ARRIVED:
            succeeded, value = load_outcome(unpack_outcome(content))
            with self._lock:
                if future._status is ARRIVED:  # else another thread was faster
                    future._content = value
                    future._status = DONE if succeeded else FAILED
        return fast_get(future)

    def watch(self, future: Future[Any], call: Callable[[], object]) -> None:
        """Have `call()` made when the outcome is here: at once if it is, else by the receiver, which it must not block.

        Raises:
            UsageError: there will never be one, for the program has ended, or the future is not of this process.
        """
        if future._parent is not self:
            raise UsageError("get: this future belongs to another process, of which this one is a fork, or to a task")
        with self._lock:
            if future._status is AWAY:
                if self._closed:
                    raise UsageError("get: the program has ended, and its node with it")
                self._waiters.setdefault(future, []).append(call)
                return
        call()

    def poll(self, future: Future[Any]) -> bool:
        return future._status is not AWAY

    def unwatch(self, future: Future[Any], call: Callable[[], object]) -> None:
        with self._lock, suppress(ValueError):
            self._waiters.get(future, []).remove(call)

    def bell(self) -> Bell:
        return _Bell()

    def cancel(self, future: Future[Any]) -> bool:
        with self._lock:
            if future._status is not AWAY or self._pending.pop(future._content, None) is None:
                return False
            slot = future._content
            waiters = self._full(future, FAILED, Cancelled("the task was cancelled"))
        for call in waiters:
            call()
        self._outgoing.put([local.CANCEL, [slot]])
        return True

    def export(self) -> None:
        """A program keeps no sparks to itself."""

    def topic(self) -> bytes:
        return child_path(PROGRAM_PATH, self.take_index())

    def key(self) -> bytes:
        if not self._book.chance:
            self._book.chance = seeds.run_key(self._number)
        return self._book.chance

    def aside(self) -> AbstractContextManager[None]:
        return self._indices.aside()

    def take_index(self) -> int:
        """For a task that is spawned later: its path is known from now on."""
        return self._indices.take()

    def tell(self, topic: bytes, rank: float, find: object) -> None:
        """A program runs no task of a search."""

    def best(self, topic: bytes) -> tuple[float, Any] | None:
        return None

    def nodes(self) -> Sequence[NodeId]:
        return self._nodes

    def run(self, main: Callable[..., T], args: tuple[Any, ...]) -> T:
        future, slot, task = self._make(main, args, {}, None, self.take_index())
        self._listener.begin_main(task.path)
        self._outgoing.put([local.PLACE, slot, ROOT, pack_task(task)])
        try:
            return self.wait(future)
        except KeyboardInterrupt:  # nobody else has the future, so nobody could cancel it
            self.cancel(future)
            raise
        finally:
            self._listener.end_main(task.path)

    def close(self) -> None:
        """Tell the root node that the program has ended."""
        self._closed = True
        self._outgoing.put(None)
        if self._sent.wait(FAREWELL_S) and not self._lost:
            self._parted.wait(PART_S)
        self._listener.close()

    def release(self) -> None:
        """Close the link, whose other end has been closed, when the receiver has seen that."""
        if self._receiver.ident is not None:
            self._receiver.join()
        self._link.close()

    def abandon(self) -> None:
        """Close the link without a word: in a fork of the program, to which it does not belong."""
        self._closed = True
        self._link.close()

    def _make(
        self,
        function: Callable[..., T],
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
        supervised: bool | None,
        index: int,
    ) -> tuple[Future[T], int, Task]:
        if self._lost:
            raise RootLostError(self._describe_loss())
        if self._closed:
            raise UsageError("spawn: the program has ended, and its node with it")
        self.key()
        name = name_of(function)
        called, keywords = unfold(function)
        code, payload = self._book.encode(name, called, args, {**keywords, **kwargs})
        path = child_path(PROGRAM_PATH, index)
        supervised = self._reliable if supervised is None else supervised
        memo = self._memo(called, code, payload, args, {**keywords, **kwargs}, path) if self._ledger else b""
        task = Task(name, path, code, payload, supervised, memo, *options_of_task(called, ROOT))
        future: Future[T] = Future()
        slot = next(self._slots)
        future._function = None
        future._content = slot
        future._parent = self
        future._status = AWAY
        self._pending[slot] = future
        return future, slot, task

    def _memo(
        self,
        function: Callable[..., Any],
        code: bytes,
        payload: bytes,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        path: bytes,
    ) -> bytes:
        """How the ledger knows a call.  All results come here anyway, so that a skeleton's are kept whatever they
        have cost."""
        wish = wish_of(function)
        key = b"" if wish is Wish.NEVER else self._book.key(function, code, payload, args, kwargs, path)
        return key and (FAIR if wish is Wish.FAIR else KEEN) + key

    # ---- the link --------------------------------------------------------------------------------------------

    def _send(self) -> None:
        """The body of the sender."""
        queue = self._outgoing
        ended = False
        while not ended:
            batch = []
            with suppress(Empty):
                batch.append(queue.get(timeout=LOOK_S if self._listener.unsure else None))
                while len(batch) < BATCH_MAX:
                    batch.append(queue.get_nowait())
            messages = [message for message in batch if message is not None]
            ended = len(messages) < len(batch)
            wanted = self._listener.wanted()
            if wanted is not None:
                messages.insert(0, wanted)
            if ended:
                messages.append([local.BYE])
            if not messages:
                continue
            with suppress(OSError):  # the receiver sees the end of the link too, and fails every future
                self._link.send(*_together(messages))
            del messages[:], batch[:]  # as in `_receive`
        self._sent.set()

    def _receive(self) -> None:
        """The body of the receiver."""
        try:
            while (messages := self._link.receive(block=True)) is not None:
                for message in messages:
                    self._hear(message)
                del message, messages[:]  # they may be large, and the next ones far
        finally:
            self._parted.set()
            if not self._closed:
                self._lose()

    def _hear(self, message: list[Any]) -> None:
        match message:
            case [local.DELIVER, slot, outcome]:
                self._arrive(slot, outcome)
            case [local.NODES, nodes, cores]:
                self._nodes, self.cores = nodes, cores
            case [local.SAID, bundle]:
                self._listener.take(bundle)
            case [local.BYE]:
                self._parted.set()
            case [local.READY, reliable, ledger]:
                self._reliable = reliable
                self._ledger = ledger
                self._begun.set()
            case [local.FAILED, sentence]:
                self._refusal = sentence
            case _:
                raise AssertionError(f"not a message for a program: {message!r}")

    def _lose(self) -> None:
        with self._lock:
            self._lost = True
            lost, self._pending = self._pending, {}
        self._begun.set()
        if lost:
            error = RootLostError(self._describe_loss())
            for future in lost.values():
                self._fill(future, FAILED, error)

    def _arrive(self, slot: int, outcome: list[Any]) -> None:
        with self._lock:
            future = self._pending.pop(slot, None)
            waiters = self._full(future, ARRIVED, outcome) if future is not None else []  # it was cancelled just now
        for call in waiters:
            call()

    def _fill(self, future: Future[Any], status: Status, content: Any) -> None:
        with self._lock:
            waiters = self._full(future, status, content)
        for call in waiters:
            call()

    def _full(self, future: Future[Any], status: Status, content: Any) -> list[Callable[[], object]]:
        """Fill a future, under the lock; who has waited for that."""
        future._content = content
        future._status = status
        return self._waiters.pop(future, [])


def _together(messages: list[list[Any]]) -> Iterator[list[Any]]:
    """The same, with exports that follow each other in one message."""
    for kind, group in itertools.groupby(messages, lambda message: message[0]):
        if kind == local.EXPORT:
            items = (item for _, [item] in group)
            yield from ([local.EXPORT, chunk] for chunk in local.chunks(items, local.exported_bytes))
        elif kind == local.CANCEL:
            yield [local.CANCEL, [slot for _, slots in group for slot in slots]]
        else:
            yield from group
