"""The port of a program: plain blocking calls that any thread may make.

What lives here: the futures that the program made, who waits for them, and the receiver, the thread that fills them.
What does not: which calls are sent when (`calls.py`), who sends them (`sender.py`), and who reads (`reader.py`).
Nothing of the user's is pickled or unpickled while a lock is held.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, suppress
from queue import Empty, SimpleQueue
from typing import Any, TypeVar
from weakref import WeakValueDictionary

from hdphrs.api import seeds
from hdphrs.api.future import AWAY, DONE, FAILED, Future, is_outcome, name_of, state, unfold
from hdphrs.api.future import get as fast_get
from hdphrs.api.memo import Wish, wish_of
from hdphrs.api.options import options_of, options_of_task, use
from hdphrs.api.places import NodeInfo, Roster
from hdphrs.api.port import NOT_OURS, Bell, Port, attached, owner_of
from hdphrs.api.seeds import Indices
from hdphrs.contexts.travel import packed
from hdphrs.errors import Cancelled, HdphrsError, RootLostError, StartError, UsageError
from hdphrs.program.calls import ARRIVED, HERE, CallFuture, Calls, Kind
from hdphrs.program.listener import Listener
from hdphrs.program.reader import Reader
from hdphrs.program.sender import Sender
from hdphrs.program.surroundings import Outlook
from hdphrs.program.waiters import Waiters
from hdphrs.protocol.paths import PROGRAM_PATH, child_path
from hdphrs.protocol.tasks import FAIR, KEEN, ROOT, NodeId, Task
from hdphrs.room import OwnThread, start_thread
from hdphrs.wire import local
from hdphrs.wire.bundle import SMALL, WHOLE_BYTES_MIN
from hdphrs.wire.code import INLINE_BYTES_MAX, CodeBook, Digest, with_context
from hdphrs.wire.items import pack_task
from hdphrs.wire.reloads import reloads
from hdphrs.wire.values import arguments_of, dump_arguments, load_packed

T = TypeVar("T")

_KindKey = tuple[bytes, bytes, bool, bytes]
"""Digest and inline pickle of a function, whether its calls are supervised, and their packed context."""

FAREWELL_S = 2.0
"""How long the end of a program waits until the node has been told."""

PART_S = 0.5
"""How long it waits then for what tasks have said."""

LOOK_S = 0.05
"""How often a thread that waits for the beginning of a run looks whether another has been told of it."""

CLOSED = (
    "this program has closed or replaced the descriptor of its link to the root node, and lost all its tasks by that; "
    "close only descriptors that the program has opened itself: os.closerange closes those of libraries too"
)

HELD_BYTES_MIN = 1 << 16
"""Smaller arguments are not counted."""

HOLD_LOOK_S = 0.05
"""How often a thread that waits for room looks again."""

KINDS_MAX = 1024
KINDS_BYTES_MAX = 16 << 20
"""Kinds of calls that are remembered, and the code of these."""


class _Bell:
    """Any thread may ring.

    It waits in one step.  What a signal handler raises in the midst of a `threading.Condition`, on which semaphores and
    events wait, may become a `RuntimeError`, here or in the thread that rings: the lock is not taken again, but let go.
    """

    def __init__(self) -> None:
        self._rung: SimpleQueue[None] = SimpleQueue()

    def ring(self) -> None:
        self._rung.put(None)

    def wait(self, for_s: float | None = None) -> bool:
        try:
            self._rung.get(timeout=for_s)
        except Empty:
            return False
        return True


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
        """Guards the status of futures against the receiver; a signal handler may take it again."""
        self._listener = Listener()
        self._waiters = Waiters(self._lock)
        self._calls = Calls(self._lock, self._waiters.fill, self._listener)
        reloads.notice()
        self._book = CodeBook(lambda digest, data: self._sender.post([local.CODE, digest, data]))
        self._sender = Sender(link, self._calls, self._listener, Outlook(), self._book.released, self._tidy, self._lose)
        self._kinds: dict[_KindKey, Kind] = {}
        self._kinds_bytes = 0
        self._large_kinds: WeakValueDictionary[_KindKey, Kind] = WeakValueDictionary()
        self._is_disturbed = False
        """A signal handler has raised in the midst of something."""
        self._reader = Reader(
            link,
            self._hear,
            self._take,
            is_needed=lambda: bool(self._waiters),
            nudge=lambda: self._sender.post([local.CANCEL, []]),
        )
        self._receiver = OwnThread(self._receive, "hdphrs-receiver")
        self._indices = seeds.indices if number == 0 else Indices()
        self._number = number
        self._may_begin = False
        self._begun = _Bell()
        self._room = _Bell()
        self._parted = threading.Event()
        self._refusal: str | None = None
        self._lost = False
        self._closed = False
        self._is_foreign = False
        """Whether this process is a fork of the one that it belongs to."""
        self.roster: Roster = Roster([NodeInfo(ROOT, "localhost", 1)])
        self._reliable = True
        self._ledger = False

    def start(self) -> None:
        """Start the threads, and wait until the run may begin; if a signal handler has raised, it may be called again.

        Raises:
            StartError: it may not; the message says why.
        """
        try:
            self._sender.start()
            if self._receiver.ident is None:
                start_thread(self._receiver)
        except RuntimeError as error:
            raise StartError(f"the program cannot start the threads that it needs: {error}") from error
        while not self._may_begin:
            self._begun.wait(LOOK_S)  # another thread may be told instead of this one
        if self._refusal is not None:
            raise StartError(self._refusal)
        if self._lost:
            raise StartError(str(self._loss()))

    @property
    def is_lost(self) -> bool:
        """Whether the root node is gone."""
        return self._lost

    @property
    def cores(self) -> int:
        """Schedulers of all live nodes together."""
        return self._calls.cores

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
        if not callable(function):
            raise UsageError(f"spawn: the first argument is the function, as in spawn(f, x); {function!r} is none")
        if self._lost or self._closed:
            return self._successor().spawn(function, args, kwargs, supervised)
        if index is None:
            index = self._indices.take()
        called, keywords = unfold(function)
        kwargs = {**keywords, **kwargs} if keywords else kwargs
        if self._ledger or (use.begun and options_of(called) is not None):
            return self._send(self._encode(called, args, kwargs, supervised, index))
        self._book.chance or self.key()
        kind = self._kind_of(called, self._reliable if supervised is None else supervised, packed())
        future: CallFuture[T] = CallFuture()
        large = 0
        if not kwargs and SMALL.issuperset(map(type, args)):
            future._arguments = args
        elif len(payload := dump_arguments(kind.name, args, kwargs, kind.chance, kind.function)) < WHOLE_BYTES_MIN:
            future._arguments = arguments_of(kind.code, payload)
        else:
            kind = kind.whole
            future._arguments = payload
            large = len(payload)
        future._function = None
        future._content = None
        future._parent = self
        future._index = index
        future._kind = kind
        future._status = AWAY
        try:
            if large >= HELD_BYTES_MIN:
                self._hold(future, large)
            if not self._sender.send(future):
                self._sender.is_stale = True
                self._calls.add(future)
                self._sender.wake()
                self._reader.stir()
            if self._lost:
                self._lose()
        except BaseException:  # a signal handler has raised
            self._forget(future)
            raise
        return future

    def place(
        self, node: NodeId, function: Callable[..., T], args: tuple[Any, ...], supervised: bool | None
    ) -> Future[T]:
        if self._lost or self._closed:
            return self._successor().place(node, function, args, supervised)
        called, keywords = unfold(function)
        task = self._encode(called, args, keywords, supervised, self.take_index(), is_placed=True)
        return self._send(task, node)

    def wait(self, future: Future[T]) -> T:
        if future._parent is not self or self._is_foreign:
            return self._owner(future).wait(future)
        if future._status is AWAY and not self._reader.read_until(lambda: future._status is not AWAY):
            arrival = threading.Lock()
            arrival.acquire()
            try:
                self.watch(future, arrival.release)
                arrival.acquire()
            except BaseException:  # a signal handler has raised
                self.unwatch(future, arrival.release)
                raise
        self._listener.show()
        status, content = future._status, future._content
        if status is ARRIVED:
            succeeded, value = load_packed(content)  # if a signal handler raises, the bytes stay for the next time
            with self._lock:
                if future._status is ARRIVED:  # else another thread was faster
                    future._content = value
                    future._status = DONE if succeeded else FAILED
        elif status is HERE:
            future._status = DONE
        return fast_get(future)

    def watch(self, future: Future[Any], call: Callable[[], object]) -> None:
        """Have `call()` made when the outcome is here: at once if it is, else by the receiver, which it must not block.

        Raises:
            UsageError: there will never be one, for the program has ended, or the future is not of this process.
        """
        if future._parent is not self or self._is_foreign:
            self._owner(future).watch(future, call)
            return
        with self._lock:
            if future._status is AWAY:
                if self._closed:
                    raise UsageError("get: the program has ended, and its node with it")
                self._waiters.add(future, call)
                self._reader.stir()
                return
        call()

    def attend(self, future: Future[Any], call: Callable[[], object]) -> None:
        self.watch(future, call)

    def want(self, future: Future[Any]) -> None:
        """It is on its way."""

    def filled(self, future: Future[Any]) -> None:
        """There are none that nobody has taken."""

    def poll(self, future: Future[Any]) -> bool:
        self._reader.stir()
        return future._status is not AWAY

    def unwatch(self, future: Future[Any], call: Callable[[], object]) -> None:
        if future._parent is not self:
            self._owner(future).unwatch(future, call)
            return
        self._waiters.remove(future, call)

    def bell(self) -> Bell:
        return _Bell()

    def cancel(self, future: Future[Any]) -> bool:
        if future._parent is not self or self._is_foreign:
            return self._owner(future).cancel(future)
        try:
            slots = self._calls.cancel(future)
            if slots is None:
                return False
            if self._waiters.due:
                self._sender.wake()
            if slots or self._reader.is_lent:  # whoever reads may wait for this one
                self._sender.post([local.CANCEL, slots])
        except BaseException:  # a signal handler has raised
            self._disturb()
            raise
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

    def run(self, main: Callable[..., T], args: tuple[Any, ...]) -> T:
        if self._lost or self._closed:
            return self._successor().run(main, args)
        called, keywords = unfold(main)
        task = self._encode(called, args, keywords, None, self.take_index(), is_placed=True)
        self._listener.begin_main(task.path)
        future: Future[T] = self._send(task, ROOT)
        try:
            return self.wait(future)
        except BaseException as error:
            if not is_outcome(error, future):  # a Ctrl-C: nobody else has the future, so nobody could cancel it
                self.cancel(future)
            raise
        finally:
            self._listener.end_main(task.path)

    def close(self) -> None:
        """Tell the root node that the program has ended."""
        self._closed = True
        self._reader.close()
        if self._sender.end(FAREWELL_S) and not self._lost:
            self._parted.wait(PART_S)
        self._listener.close()

    def release(self) -> None:
        """Close the link, whose other end has been closed, when the receiver has seen that."""
        if self._receiver.ident is not None:
            self._receiver.join()
        with suppress(OSError):
            self._link.close()

    def abandon(self) -> None:
        """Close the link without a word: in a fork of the program, to which it does not belong."""
        self._closed = self._is_foreign = True
        with suppress(OSError):
            self._link.close()

    def give_up(self, why: str) -> None:
        """Nothing of what is under way is wanted any more: its futures raise `Cancelled`, and say this."""
        self._fail(self._calls.lose(), Cancelled(why))

    def check(self) -> None:
        """For one who wants this run and no other.

        Raises:
            HdphrsError: it is over.
        """
        if self._lost:
            raise self._loss()
        if self._closed:
            raise UsageError("spawn: the program has ended, and its node with it")

    def _successor(self) -> Port:
        """The port of the program's next run, this one being over.

        Raises:
            HdphrsError: there is none.
        """
        port = attached()
        if port is self:
            raise self._loss()
        if state.port is self:
            state.port = port
        return port

    def _owner(self, future: Future[Any]) -> Port:
        owner = owner_of(future)
        if owner is self:  # which a fork has inherited
            raise UsageError(NOT_OURS)
        return owner

    def _kind_of(self, function: Callable[..., Any], supervised: bool, context: bytes = b"") -> Kind:
        code, data = self._book.known_code_of(function) or self._book.code_of(name_of(function), function)
        inline = b"" if code else data
        key = code, inline, supervised, context
        kind = self._kinds.get(key) or self._large_kinds.get(key)
        if kind is None:
            like = self._kind_of(function, supervised) if context else None
            said = with_context(self._book.chance, context)
            kind = Kind(name_of(function), code, inline, supervised, said, like=like)
            self._remember(key, kind, code.size if isinstance(code, Digest) else len(inline))
        return kind

    def _remember(self, key: _KindKey, kind: Kind, size: int) -> None:
        """Calls of the same function are of the same kind; a large function is not kept for that alone."""
        if size > INLINE_BYTES_MAX:
            self._large_kinds[key] = kind
            return
        if len(self._kinds) >= KINDS_MAX or self._kinds_bytes > KINDS_BYTES_MAX:
            self._kinds.clear()
            self._kinds_bytes = 0
        self._kinds[key] = kind
        self._kinds_bytes += size

    def _encode(
        self,
        function: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
        supervised: bool | None,
        index: int,
        *,
        is_placed: bool = False,
    ) -> Task:
        self.key()
        name = name_of(function)
        code, payload = self._book.encode(name, function, args, kwargs, packed())
        path = child_path(PROGRAM_PATH, index)
        supervised = self._reliable if supervised is None else supervised
        memo = self._memo(function, code, payload, args, kwargs, path) if self._ledger else b""
        options = options_of_task(function, self.roster, is_placed=is_placed)
        return Task(name, path, code, payload, supervised, memo, *options)

    def _send(self, task: Task, *where: NodeId) -> Future[Any]:
        """Send a task at once, to a node or wherever."""
        future: Future[Any] = Future()
        future._function = None
        future._parent = self
        future._status = AWAY
        future._content = None
        try:
            if (size := len(task.payload)) >= HELD_BYTES_MIN:
                self._hold(future, size)
            slot = self._calls.place(future)
            packed = pack_task(task)
            self._sender.post([local.PLACE, slot, *where, packed] if where else [local.EXPORT, [[slot, packed]]])
            if self._lost:
                self._lose()
        except BaseException:  # a signal handler has raised
            self._forget(future)
            raise
        return future

    @property
    def held_bytes(self) -> int:
        """Large arguments of calls that are not done yet."""
        return self._calls.held_bytes

    def _hold(self, future: Future[Any], size: int) -> None:
        """Wait until there is room for a call with large arguments: until others are done.

        Those threads that bring that about never wait here: they may call what the user has asked them to.
        """
        calls = self._calls
        while calls.is_full(size) and not (self._lost or self._closed):
            if threading.get_ident() in (self._receiver.ident, self._sender.ident):
                break
            self._reader.stir()
            self._sender.wake()
            self._room.wait(HOLD_LOOK_S)
        calls.hold(future, size)

    def _forget(self, future: Future[Any]) -> None:
        """Its spawn was interrupted: nobody will get it, and whether it was sent is not known."""
        try:
            self.cancel(future)
        finally:
            self._disturb()

    def _disturb(self) -> None:
        """Have the sender put right what a signal handler has left half done."""
        self._is_disturbed = True
        self._sender.wake()

    def _tidy(self) -> None:
        """In the sender."""
        if self._is_disturbed:
            self._is_disturbed = False
            slots = self._calls.mend()
            self._waiters.mend()
            self._sender.post([local.CANCEL, slots])  # whoever reads may wait for one that is full
        self._waiters.call_due()

    def _memo(
        self,
        function: Callable[..., Any],
        code: bytes,
        payload: bytes,
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
        path: bytes,
    ) -> bytes:
        """How the ledger knows a call.  All results come here anyway, so that a skeleton's are kept whatever they
        have cost."""
        wish = wish_of(function)
        key = b"" if wish is Wish.NEVER else self._book.key(function, code, payload, args, kwargs, path)
        return key and (FAIR if wish is Wish.FAIR else KEEN) + key

    # ---- the receiver ----------------------------------------------------------------------------------------

    def _receive(self) -> None:
        """The body of the receiver."""
        try:
            self._reader.run()
        finally:
            self._parted.set()
            if not self._closed:
                self._lose()
                self._waiters.call_due()

    def _take(self, messages: list[list[Any]]) -> bool:
        """In a thread that waits, and that may be interrupted: what is simple, unless other threads wait too."""
        if self._waiters:
            return False
        match messages:
            case [[local.DELIVER, slot, outcome]] if self._calls.is_alone(slot):
                self._deliver(slot, outcome)
            case [[local.HEARD]]:
                pass
            case _:
                return False
        if self._calls.are_due:
            self._sender.wake()
        return not self._waiters.due

    def _hear(self, messages: list[list[Any]]) -> bool:
        """In the receiver; whether a waiting thread could have dealt with it."""
        simple = self._is_simple(messages)
        for message in messages:
            self._hear_one(message)
        self._waiters.call_due()
        if self._calls.are_due:
            self._sender.wake()
        return simple

    def _is_simple(self, messages: list[list[Any]]) -> bool:
        """Whether `_take` deals with it."""
        match messages:
            case [[local.DELIVER, slot, _]]:
                return self._calls.is_alone(slot)
            case [[local.HEARD]]:
                return True
            case _:
                return False

    def _hear_one(self, message: list[Any]) -> None:
        match message:
            case [local.DELIVER, slot, outcome]:
                self._deliver(slot, outcome)
            case [local.PARTS, parts]:
                for path, outcome in parts:
                    self._calls.hear_of(path, outcome)
            case [local.NODES, nodes]:
                self.roster.hear(nodes)
                self._calls.cores = sum(info.slots for info in self.roster.infos)
            case [local.SAID, bundle]:
                self._listener.take(bundle)
            case [local.HEARD]:
                pass
            case [local.BYE]:
                self._parted.set()
            case [local.READY, reliable, ledger]:
                self._reliable = reliable
                self._ledger = ledger
                self._begin()
            case [local.FAILED, sentence]:
                self._refusal = sentence
            case _:
                raise AssertionError(f"not a message for a program: {message!r}")

    def _deliver(self, slot: int, outcome: Any) -> None:
        held = self._calls.held_bytes
        self._calls.arrive(slot, outcome)
        if held != self._calls.held_bytes:
            self._room.ring()

    def _lose(self) -> None:
        self._lost = True
        self._begin()
        lost = self._calls.lose()
        if lost:
            self._fail(lost, self._loss())

    def _fail(self, futures: list[Future[Any]], error: HdphrsError | Cancelled) -> None:
        with self._lock:
            for future in futures:
                self._calls.let_go(future)
                self._waiters.fill(future, FAILED, error)
        self._sender.wake()

    def _begin(self) -> None:
        """Let `start` return, or raise."""
        self._may_begin = True
        self._begun.ring()

    def _loss(self) -> HdphrsError:
        return RootLostError(self._refusal or self._describe_loss()) if self._link.is_intact else UsageError(CLOSED)
