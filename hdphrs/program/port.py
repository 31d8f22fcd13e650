"""The port of a program: plain blocking calls that any thread may make.

What lives here: the futures that the program made, and the two threads that serve its link.  The receiver fills
futures; the flusher sends sparks that a thread has spawned and not followed up, so that they leave in batches while a
program spawns in a loop, and at once when it does not.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from time import monotonic
from typing import Any, Final, TypeVar

from hdphrs.api.future import AWAY, DONE, FAILED, Future, Status, name_of, unfold
from hdphrs.api.future import get as fast_get
from hdphrs.errors import RootLostError, StartError
from hdphrs.protocol.tasks import ROOT, NodeId, Task
from hdphrs.wire import local
from hdphrs.wire.code import CodeBook
from hdphrs.wire.codec import pack_task, unpack_outcome
from hdphrs.wire.paths import PROGRAM_PATH, child_path
from hdphrs.wire.values import load_outcome

T = TypeVar("T")

ARRIVED: Final = Status("arrived")
"""The outcome is here as bytes; the first `get` unpickles it, in its own thread."""

BATCH_MAX = 32
"""Sparks that leave in one frame."""

LONELY_S = 1e-3
"""A spark that comes this long after the last frame leaves at once."""


class ProgramPort:
    """The program's end of its link to the root node."""

    def __init__(self, link: local.Link, *, describe_loss: Callable[[], str]) -> None:
        """`describe_loss` says, once the link has broken, what became of the root node."""
        self._link = link
        self._describe_loss = describe_loss
        self._lock = threading.Lock()
        self._book = CodeBook(lambda digest, data: link.send([local.CODE, digest, data]))
        self._pending: dict[int, Future[Any]] = {}
        self._waiters: dict[Future[Any], list[threading.Lock]] = {}
        self._slots = itertools.count()
        self._spawned = itertools.count()
        self._batch: list[list[Any]] = []
        self._flushed_s = 0.0
        self._flush_wanted = threading.Event()
        self._begun = threading.Event()
        self._refusal: str | None = None
        self._lost = False
        self._closed = False
        self._nodes: list[NodeId] = [ROOT]
        self._reliable = True

    def start(self) -> None:
        """Start the threads, and wait until the run may begin.

        Raises:
            StartError: it may not; the message says why.
        """
        for body, name in ((self._receive, "hdphrs-receiver"), (self._flush_when_wanted, "hdphrs-flusher")):
            threading.Thread(target=body, name=name, daemon=True).start()
        self._begun.wait()
        if self._refusal is not None:
            raise StartError(self._refusal)
        if self._lost:
            raise StartError(self._describe_loss())

    # ---- the port --------------------------------------------------------------------------------------------

    def spawn(
        self,
        function: Callable[..., T],
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
        supervised: bool | None,
    ) -> Future[T]:
        with self._lock:
            future, slot, task = self._make(function, args, kwargs, supervised)
            self._batch.append([slot, pack_task(task)])
            count = len(self._batch)
            if count >= BATCH_MAX or (count == 1 and monotonic() - self._flushed_s > LONELY_S):
                self._flush()
            elif count == 1:
                self._flush_wanted.set()
        return future

    def place(
        self, node: NodeId, function: Callable[..., T], args: tuple[Any, ...], supervised: bool | None
    ) -> Future[T]:
        with self._lock:
            future, slot, task = self._make(function, args, {}, supervised)
            self._send([local.PLACE, slot, node, pack_task(task)])
        return future

    def wait(self, future: Future[T]) -> T:
        with self._lock:
            self._flush()
            if future._status is AWAY:
                arrival = threading.Lock()
                arrival.acquire()
                self._waiters.setdefault(future, []).append(arrival)
            else:
                arrival = None
        if arrival is not None:
            arrival.acquire()
        with self._lock:
            if future._status is ARRIVED:
                succeeded, future._content = load_outcome(unpack_outcome(future._content))
                future._status = DONE if succeeded else FAILED
        return fast_get(future)

    def poll(self, future: Future[Any]) -> bool:
        with self._lock:
            self._flush()
        return future._status is not AWAY

    def export(self) -> None:
        """A program keeps no sparks to itself."""

    def nodes(self) -> Sequence[NodeId]:
        return self._nodes

    def run(self, main: Callable[..., T], args: tuple[Any, ...]) -> T:
        return self.wait(self.place(ROOT, main, args, None))

    def close(self) -> None:
        """Tell the root node that the program has ended."""
        with self._lock:
            self._closed = True
            with suppress(OSError):  # the node may have ended before us
                self._link.send([local.BYE])

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
    ) -> tuple[Future[T], int, Task]:
        if self._lost:
            raise RootLostError(self._describe_loss())
        name = name_of(function)
        called, keywords = unfold(function)
        code, payload = self._book.encode(name, called, args, {**keywords, **kwargs})
        path = child_path(PROGRAM_PATH, next(self._spawned))
        task = Task(name, path, code, payload, self._reliable if supervised is None else supervised)
        future: Future[T] = Future()
        future._function = None
        future._content = None
        future._status = AWAY
        slot = next(self._slots)
        self._pending[slot] = future
        return future, slot, task

    # ---- the link --------------------------------------------------------------------------------------------

    def _flush(self) -> None:
        if self._batch:
            batch, self._batch = self._batch, []
            self._flushed_s = monotonic()
            self._send([local.EXPORT, batch])

    def _send(self, message: list[Any]) -> None:
        with suppress(OSError):  # the receiver sees the end of the link too, and fails every future
            self._link.send(message)

    def _flush_when_wanted(self) -> None:
        while True:
            self._flush_wanted.wait()
            self._flush_wanted.clear()
            with self._lock:
                self._flush()

    def _receive(self) -> None:
        while (messages := self._link.receive(block=True)) is not None:
            for message in messages:
                match message:
                    case [local.DELIVER, slot, outcome]:
                        self._fill(self._pending.pop(slot), ARRIVED, outcome)
                    case [local.NODES, nodes]:
                        self._nodes = nodes
                    case [local.READY, reliable]:
                        self._reliable = reliable
                        self._begun.set()
                    case [local.FAILED, sentence]:
                        self._refusal = sentence
                    case _:
                        raise AssertionError(f"not a message for a program: {message!r}")
        if not self._closed:
            self._lose()

    def _lose(self) -> None:
        with self._lock:
            self._lost = True
            lost, self._pending = self._pending, {}
        self._begun.set()
        if lost:
            error = RootLostError(self._describe_loss())
            for future in lost.values():
                self._fill(future, FAILED, error)

    def _fill(self, future: Future[Any], status: Status, content: Any) -> None:
        with self._lock:
            future._content = content
            future._status = status
            waiters = self._waiters.pop(future, ())
        for waiter in waiters:
            waiter.release()
