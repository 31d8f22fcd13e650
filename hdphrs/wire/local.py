"""The link between a node process and its schedulers, and between the root node and the program.

What lives here: the kinds of message and their shapes, and the blocking end that a scheduler or a program holds.  A
frame is a list of messages; a message is a list that begins with its kind.  Both ends are of one installation, and the
socket is inherited or a pair, so the shapes are not checked further.
"""

from __future__ import annotations

import fcntl
import select
import socket
import sys
import termios
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import fields
from functools import partial
from math import ceil
from typing import Any, Final, TypeVar

from hdphrs.config import FRAME_BYTES_MAX
from hdphrs.errors import MessageTooLargeError
from hdphrs.protocol.tasks import Outcome, Spark, Task, TaskRef, Verdict
from hdphrs.wire.bulk import Bulk
from hdphrs.wire.files import identity
from hdphrs.wire.framing import ITEMS_MAX, FrameDecoder, encode_frame, plain_frame
from hdphrs.wire.items import unpack_outcome, unpack_spark
from hdphrs.wire.passing import Cargo, catch, receive, send_all, send_at_once, unload
from hdphrs.wire.tray import Tray

# To the node.
READY: Final = 1  # [READY]: this process can take work; [READY, reliable, ledger] from the root node: the run begins
CODE: Final = 2  # [CODE, digest, data]
EXPORT: Final = 3  # [EXPORT, [[slot, task], ...]]
PLACE: Final = 4  # [PLACE, slot, node, task]
HUNGRY: Final = (
    5  # [HUNGRY, room, ran, how]: how many own sparks it has run since the last time; how: NOW, AHEAD, AGAIN
)
RESULTS: Final = 6  # [RESULTS, [[ref, replica, outcome, own_s, here_s], ...]]: see scheduler/meter.py
RETURN: Final = 7  # [RETURN, [[ref, replica], ...]]
BYE: Final = 8  # [BYE]: the program has ended; back: it has got all that tasks have said
KEEP: Final = 15  # [KEEP, [piece, ...], own_s, here_s]
REUSED: Final = 16  # [REUSED, used, mismatched]: pieces that a re-run has used; and that were not of the same call
CANCEL: Final = 17  # [CANCEL, [slot, ...]]: nobody waits for these futures any more
ABOUT: Final = 14  # [ABOUT, serial, summary]: the arguments of a task that has crashed before, and is tried again
BEGUN: Final = 19  # [BEGUN, ref, replica]: a task begins that may run for so long only
STUCK: Final = 20  # [STUCK, serial, name, path]: its core is kept by a cancelled child, of this name and at this path
BEHIND: Final = 35  # [BEHIND, serial, bundle, path]: a task that was cancelled while it ran descends from the call at
# this path, of the bundle with that serial; 0 and nothing if from none that has begun here
CALLED: Final = 33  # [CALLED, more, made]: calls of bundles that have been run beyond one for each bundle answered; and
# of these, the sparks of tasks
CALLS: Final = 40  # [CALLS, [[function, calls, seconds, own seconds], ...]]: for --explain, see scheduler/strands.py
FOUND: Final = 30  # [FOUND, topic, rank, find], both ways: what a task of a search has found, see api/board.py
IMPORTED: Final = 36  # [IMPORTED, path, [name, ...]], both ways: what it took to load a task, see scheduler/imports.py
SAID: Final = 31  # [SAID, [item, ...]]: what tasks say, see said.py; from the root node to the program [SAID, bundle]

# From the node.
START: Final = 9  # [START, [[serial, spark], ...]]; with True behind it, to be run before what runs
DELIVER: Final = 10  # [DELIVER, slot, outcome]; to a scheduler [DELIVER, slot, outcome, own_s, here_s]
PARTS: Final = (
    32  # [PARTS, [[path, outcome], ...]]: to the program, of bundles that have not been answered; by the node
)
# from scheduler to scheduler: [PARTS, ref, [[place, outcome or None], ...]], and then [PARTS, slot, ...] (decision 30)
NODES: Final = 11  # [NODES, [[id, host, slots], ...]]: who is alive, self first; the host is empty if not known yet
HEARD: Final = 34  # [HEARD]: to the program, of CANCEL: a thread that reads looks again whether it must wait
CLOSED: Final = 37  # [CLOSED, topic]: what is found in this search takes down who unpickles it
QUIT: Final = 12  # [QUIT]
STOP: Final = 18  # [STOP, [[ref, replica], ...]]: nobody wants these any more
FORGET: Final = 38  # [FORGET, digest]: to a scheduler, of code; and to the node:
RELEASE: Final = 39  # [RELEASE, [digest, ...]]: no more tasks come by these; once for each CODE, either way
FAILED: Final = 13  # [FAILED, sentence]: the run cannot begin, or is over

NOW: Final = 0
AHEAD: Final = 1
AGAIN: Final = 2
"""How a scheduler is hungry: it runs nothing; it will soon run nothing; it was ahead, and runs nothing now."""

CHUNK_BYTES_MAX = 16 << 20
"""Payloads that share one message: small ones travel together, large ones alone."""

CHUNK_ITEMS_MAX = 1024
"""Items of one message."""

READ_S = 1e-4
"""How often it is seen whether the other end has read."""

_PAYLOAD = [field.name for field in fields(Task)].index("payload")

T = TypeVar("T")

ref_of: Final[Callable[[list[int]], TaskRef]] = partial(tuple.__new__, TaskRef)
"""The ref that `items.pack_ref` has packed.  (Made without a step of Python, since each task's is.)"""


def chunks(items: Iterable[T], size_of: Callable[[T], int]) -> Iterator[list[T]]:
    """The items in order, in lists that are small enough for one message each (an item alone is, by its making)."""
    chunk: list[T] = []
    size = 0
    for item in items:
        item_bytes = size_of(item)
        if chunk and (size + item_bytes > CHUNK_BYTES_MAX or len(chunk) == CHUNK_ITEMS_MAX):
            yield chunk
            chunk, size = [], 0
        chunk.append(item)
        size += item_bytes
    if chunk:
        yield chunk


def exported_bytes(item: list[Any]) -> int:
    """The size of an item of EXPORT."""
    return len(item[1][_PAYLOAD])


def kept_bytes(piece: list[Any]) -> int:
    """The size of an item of KEEP."""
    return len(piece[2][1])


def task_of(packed: list[Any]) -> Task:
    """The task that `items.pack_task` has packed."""
    name, path, code, payload, supervised, memo, attempts, timeout_s, pin, priority = packed
    return Task(name, path, code, payload, supervised, memo, attempts, timeout_s, tuple(pin), priority)


def spark_of(packed: list[Any]) -> Spark:
    """The spark that `items.pack_spark` has packed."""
    ref, replica, task, crashes, placed, epoch, pieces = packed
    if crashes or pieces:
        return unpack_spark(packed)
    return Spark(ref_of(ref), replica, task_of(task), (), placed, epoch)


def first_copy(ref: TaskRef, task: list[Any]) -> list[Any]:
    """As `items.pack_spark`: the spark of a new task that is packed already."""
    return [ref, 0, task, [], False, 0, []]


def outcome_of(packed: list[Any]) -> Outcome:
    """The outcome that `items.pack_outcome` has packed."""
    verdict, data, crashes, cost_s, span_s = packed
    return unpack_outcome(packed) if verdict or crashes else Outcome(Verdict.VALUE, data, (), cost_s, span_s)


def encode_frames(messages: Sequence[list[Any]]) -> tuple[bytes, list[Bulk]]:
    """The messages as one frame, and the bulks that go beside it; as several frames if they are many, as one each if
    together they exceed a frame's size."""
    if len(messages) > ITEMS_MAX:
        return _joined([encode_frames(messages[i : i + ITEMS_MAX]) for i in range(0, len(messages), ITEMS_MAX)])
    try:
        frame = plain_frame(messages)
        if frame is not None:
            return frame, []
        cargo = Cargo()
        return encode_frame(messages, cargo.carry), cargo.bulks
    except MessageTooLargeError:
        if len(messages) == 1:
            raise
        return _joined([encode_frames([message]) for message in messages])


def _joined(parts: Sequence[tuple[bytes, list[Bulk]]]) -> tuple[bytes, list[Bulk]]:
    return b"".join(frame for frame, _ in parts), [bulk for _, bulks in parts for bulk in bulks]


def _unread_bytes(sock: socket.socket) -> int:
    """What the other end has not read, with what the system needs for it."""
    try:
        found: bytes = fcntl.ioctl(sock.fileno(), termios.TIOCOUTQ, bytes(4))
    except OSError:
        return 0
    return int.from_bytes(found, sys.byteorder)


class Link:
    """The blocking end of a local link; any thread may send, one at a time receives."""

    def __init__(self, sock: socket.socket, tray: Tray | None = None) -> None:
        """`tray` is for what the node need not hear at once; only a scheduler has one."""
        self._socket = sock
        self._tray = tray
        self._identity = identity(sock.fileno())
        self._sent = 0
        """How many messages have gone over it."""
        self._decoder = FrameDecoder(FRAME_BYTES_MAX, trusted=True)
        self._sending = threading.Lock()
        poll = select.poll()
        poll.register(sock, select.POLLIN)
        self._poll = poll.poll
        self._caught: deque[Any] = deque()
        """By `catch`, and not dropped."""

    @property
    def descriptors(self) -> list[int]:
        """Where it is open."""
        tray = [] if self._tray is None else [self._tray.descriptor]
        return [self._socket.fileno(), *tray]

    @property
    def is_intact(self) -> bool:
        """Whether its descriptor is what it was: this process may have closed it by its number, or replaced it."""
        return self._identity is not None and identity(self._socket.fileno()) == self._identity

    def send(self, *messages: list[Any]) -> None:
        """Send these messages together; blocks while the node is busy.

        Raises:
            ConnectionError: the node is gone.
        """
        frame, bulks = encode_frames(messages)
        with self._sending:
            if bulks:
                send_all(self._socket, frame, bulks)
            else:
                self._socket.sendall(frame)
            self._sent += len(messages)

    def send_at_once(self, message: list[Any]) -> bool:
        """Send this, which is small and has no bulks, if that does not block; whether it was sent.  The thread may be
        interrupted before that, or after it.

        Raises:
            ConnectionError: the node is gone.
        """
        frame = plain_frame([message]) or encode_frame([message])
        with self._sending:
            is_sent = send_at_once(self._socket, frame)
            self._sent += is_sent
            return is_sent

    def lay(self, *messages: list[Any]) -> None:
        """Have the node hear these when it comes by, in the order in which all is sent; if that cannot be, send them.

        Raises:
            ConnectionError: the node is gone.
        """
        with self._sending:
            is_laid = self._tray is not None and self._tray.lay(messages, after=self._sent)
        if not is_laid:
            self.send(*messages)

    def offer(self, gather: Callable[[], Sequence[list[Any]]]) -> None:
        """Send what `gather()` returns, unless somebody is sending just now, the caller of the caller perhaps.

        Raises:
            ConnectionError: the node is gone.
        """
        if self._sending.acquire(blocking=False):
            try:
                messages = gather()
                if messages:
                    send_all(self._socket, *encode_frames(messages))
                    self._sent += len(messages)
            finally:
                self._sending.release()

    def wait_until_read(self, within_s: float) -> None:
        """Wait until the other end has read all that was written, by whomever, or for so many seconds at most; for no
        time where the system cannot tell."""
        if sys.platform != "linux":
            return
        end_s = time.monotonic() + within_s
        while _unread_bytes(self._socket) and time.monotonic() < end_s:
            time.sleep(READ_S)

    def poll(self, for_s: float | None) -> list[tuple[int, int]]:
        """Wait until there is something to receive, for so many seconds at most; nothing if there is not."""
        return self._poll(None if for_s is None else ceil(1000 * for_s))

    def receive(self, *, block: bool) -> list[list[Any]] | None:
        """The messages that have arrived, at least one if `block`; None when the node is gone."""
        while True:
            try:
                if self._caught:
                    data = unload(self._caught.popleft(), self._decoder.bulks)
                else:
                    data = receive(self._socket, self._decoder.bulks, block=block)
            except BlockingIOError:
                return []
            except ConnectionError:
                return None
            if not data:
                return None
            messages = self._decoder.messages(data)
            if messages or not block:
                return messages

    def catch(self) -> list[list[Any]] | None:
        """Wait for what comes, in a thread that may be interrupted: `receive` and `catch` return it again until it is
        dropped.

        Returns:
            The messages, if they are a single small frame, and without bulks; otherwise None.

        Raises:
            ConnectionError: the node is gone.
        """
        if not self._caught:
            catch(self._socket, self._caught)
        data, beside, *_ = self._caught[0]
        return None if beside else self._decoder.peek(data)

    def drop(self) -> None:
        """What was caught has been dealt with."""
        self._caught.clear()

    def close(self) -> None:
        """Close the descriptor, unless this process has done so and it may be something else by now; the node takes it
        for the end of this process."""
        if self.is_intact:
            self._socket.close()
        else:
            self._socket.detach()
