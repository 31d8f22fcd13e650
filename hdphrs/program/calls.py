"""The program's calls on their way: those that wait here, those that are in the cluster, alone or in bundles.

What lives here: what is sent next, and what becomes of it (decision 16).  What does not: spawn and get (`port.py`), and
who sends (`sender.py`).

Theory of operation
-------------------

Calls wait in the order of their spawns until there is room in the cluster: for so many tasks a core that no core waits
for the program.  So what waits costs a future and its arguments, and when a call is sent it is known by then how long
others of its kind have taken.  Those that are short go in bundles: a bundle takes a few milliseconds, and no more than
a fair share of what waits.  A kind of which nothing is known goes alone.

A bundle comes back with all outcomes.  If it takes long, outcomes come before it, or a call comes back that has not
been made, which is sent again.  If its process or node has died, it comes back without any, and its calls are sent
alone.
"""

from __future__ import annotations

import itertools
import threading
from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Iterator, Sized
from dataclasses import fields
from operator import attrgetter
from typing import Any, Final, TypeVar

from hdphrs.api.future import AWAY, DONE, FAILED, Future, Status
from hdphrs.errors import Cancelled
from hdphrs.protocol.paths import PROGRAM_PATH, child_path, index_of
from hdphrs.protocol.tasks import Task, Verdict
from hdphrs.wire.bundle import (
    BUNDLE_BYTES_MAX,
    RETURNED,
    Arguments,
    Expectation,
    Packed,
    bundle_path,
    pack_calls,
    payload_of,
    share_of,
    unpack_answer,
)
from hdphrs.wire.bundle import Calls as Contents
from hdphrs.wire.items import pack_outcome, pack_task
from hdphrs.wire.local import outcome_of

T = TypeVar("T")

ARRIVED: Final = Status("arrived")
"""The outcome is here as bytes; the first `get` unpickles it, in its own thread."""

HERE: Final = Status("here")
"""The value is here; before the first `get` returns it, what its task has said is to be shown."""

HELD_BYTES_MAX: Final = 256 << 20
"""Arguments of calls that are large and not done yet; whoever spawns another one waits."""

TASKS_PER_CORE: Final = 32
"""That are in the cluster at a time, each with one call."""

REFILL: Final = 0.75
"""Of that room: when no more is taken, as many are sent as there is room for.  So several go together, which wakes the
node, and the sender, once."""

BUNDLE_WEIGHT: Final = 4
"""A bundle takes the room of so many of them."""

SCAN_MAX: Final = 4
"""Calls that are looked at for one of the same kind."""

_RETURNED: Final = pack_outcome(RETURNED)

_FIELDS: Final = [field.name for field in fields(Task)]
_PATH, _PAYLOAD = _FIELDS.index("path"), _FIELDS.index("payload")


class Kind(Expectation):
    """Calls of one function, which are expected to take equally long."""

    __slots__ = (
        "__weakref__",
        "_packed",
        "_solitary",
        "_whole",
        "chance",
        "code",
        "function",
        "name",
        "supervised",
    )

    def __init__(
        self,
        name: str,
        code: bytes,
        function: bytes,
        supervised: bool,
        chance: bytes,
        *,
        alone: bool = False,
        like: Kind | None = None,
    ) -> None:
        """
        Args:
            code: the digest of the function.
            function: its pickle, if it travels inline.
            chance: see `hdphrs.wire.code.CodeBook`, and the context of the calls (`code.with_context`).
            alone: each call is a task of its own, whatever it takes.
            like: the same function in no context: what calls take is learnt for both, since contexts may be many.
        """
        super().__init__(like)
        self.name: str = name
        self.code: bytes = code
        self.function: bytes = function
        self.supervised: bool = supervised
        self.chance: bytes = chance
        self._packed = pack_task(Task(name, b"", code, b"", supervised))
        # One that goes alone does not refer to itself: what it holds, which may be large, must go with its last call.
        self._solitary = None if alone else Kind(name, code, function, supervised, chance, alone=True)
        self._whole = None if alone else Kind(name, code, b"", supervised, chance, alone=True)

    @property
    def solitary(self) -> Kind:
        """The same function, of calls that must go alone."""
        return self._solitary or self

    @property
    def whole(self) -> Kind:
        """And of those whose arguments are the payload, the function included."""
        return self._whole or self

    def pack(self, path: bytes, payload: bytes) -> list[object]:
        """A task of this kind, as `items.pack_task` does it."""
        packed = self._packed.copy()
        packed[_PATH], packed[_PAYLOAD] = path, payload
        return packed

    def fit(self, share: int) -> int:
        return 1 if self._solitary is None else super().fit(share)


class CallFuture(Future[T]):
    """The future of a call that the program has spawned.

    While it is empty, `_content` says where the call is: None if it waits here, the slot of a task, or a `Bundle`.
    """

    __slots__ = ("_arguments", "_kind")

    _arguments: Arguments
    _kind: Kind


class Bundle:
    """Calls that have been sent together."""

    __slots__ = ("futures", "is_late", "kind", "number", "slot")

    def __init__(self, slot: int, number: int, kind: Kind, futures: list[CallFuture[Any]]) -> None:
        self.slot: int = slot
        self.number: int = number
        self.kind: Kind = kind
        self.futures: list[CallFuture[Any]] = sorted(futures, key=_index)
        """In the order of their spawns."""
        self.is_late: bool = False
        """Whether it has given calls back."""

    def find(self, index: int) -> CallFuture[Any] | None:
        """The future of the program's so-many-th call, if it is one of these."""
        place = bisect_left(self.futures, index, key=_index)
        future = self.futures[place] if place < len(self.futures) else None
        return future if future is not None and future._index == index else None


class Calls:
    """Those of one program."""

    def __init__(self, lock: threading.RLock, fill: Callable[[Future[Any], Status, Any], None], said: Sized) -> None:
        """
        Args:
            lock: guards the status of futures; it is taken in here, and held while `fill` is called.
            fill: fills a future.
            said: what tasks have said, and has not been shown.
        """
        self.cores: int = 0
        """Schedulers of all live nodes together."""
        self._lock = lock
        self._fill_only = fill
        self._held: dict[Future[Any], int] = {}
        """Empty futures with large arguments, and the bytes of these."""
        self.held_bytes: int = 0
        """Of all of them."""
        self._said = said
        self._waiting: deque[CallFuture[Any]] = deque()
        self._alone: dict[int, Future[Any]] = {}
        """By slot, the tasks in the cluster that are one call; those that were placed, too."""
        self._bundles: dict[int, Bundle] = {}
        self._load = 0
        """The room that they take."""
        self._slots = itertools.count()
        self._numbers = itertools.count()

    def is_full(self, size: int) -> bool:
        """Whether so many bytes more are to wait until others have been done with: not if there are too few calls."""
        return self.held_bytes + size > HELD_BYTES_MAX and len(self._held) >= 2 * max(self.cores, 1)

    def hold(self, future: Future[Any], size: int) -> None:
        """A call with arguments of so many bytes is about to be sent."""
        with self._lock:
            self._held[future] = size
            self.held_bytes += size

    def _fill(self, future: Future[Any], status: Status, content: Any) -> None:
        self._fill_only(future, status, content)
        if self._held:
            self.let_go(future)

    def let_go(self, future: Future[Any]) -> None:
        """It is full: its arguments are not needed any more."""
        size = self._held.pop(future, 0)
        if size:
            self.held_bytes -= size
            if isinstance(future, CallFuture):
                future._arguments = ()

    @property
    def are_due(self) -> bool:
        """Whether it is time to send some of those that wait."""
        return bool(self._waiting) and self._load <= REFILL * self._room

    @property
    def is_idle(self) -> bool:
        """Whether no call waits here or is in the cluster, but for those that were placed."""
        return not self._load and not self._waiting

    @property
    def _room(self) -> int:
        return TASKS_PER_CORE * max(self.cores, 1)

    def add(self, future: CallFuture[Any]) -> None:
        """It is to be sent."""
        self._waiting.append(future)

    def send(self, future: CallFuture[Any]) -> list[Any] | None:
        """The item of EXPORT of a call that need not wait for others, because there are none; None if there are."""
        with self._lock:
            if self._load or self._waiting:
                return None
            self._go_alone(future)
        return [future._content, _pack_call(future)]

    def place(self, future: Future[Any]) -> int:
        """A call that goes to a node of its own at once; its slot."""
        with self._lock:
            slot = next(self._slots)
            future._content = slot  # from here on nothing is called, so nothing interrupts
            self._alone[slot] = future
        return slot

    def cancel(self, future: Future[Any]) -> list[int] | None:
        """Give up a future: the slots that nobody wants any more; None if it is full.

        A signal handler may interrupt this, and raise: the future is full then or it is not, and `mend` does the rest.
        """
        with self._lock:
            if future._status is not AWAY:
                return None
            place = future._content
            self._fill(future, FAILED, Cancelled("the task was cancelled"))
            if isinstance(place, Bundle):
                # Those that are with it are cheap, and begin again; what is not begins to come back at once.
                return [place.slot] if self._recall(place) else []
            if place is None:
                return []  # `take` passes over it
            if self._alone.pop(place, None) is not None and isinstance(future, CallFuture):
                self._load -= 1
            return [place]

    def mend(self) -> list[int]:
        """A signal handler has interrupted something of this, and raised: what must hold holds again.

        Returns:
            The slots that nobody wants any more.
        """
        with self._lock:
            full = [slot for slot, future in self._alone.items() if future._status is not AWAY]
            empty = [
                slot for slot, one in self._bundles.items() if all(each._content is not one for each in one.futures)
            ]
            for future in [future for future in self._held if future._status is not AWAY]:
                self.let_go(future)
            for slot in full:
                del self._alone[slot]
            for slot in empty:
                del self._bundles[slot]
            alone = sum(isinstance(future, CallFuture) for future in self._alone.values())
            self._load = alone + BUNDLE_WEIGHT * len(self._bundles)
            return full + empty

    def lose(self) -> list[Future[Any]]:
        """Nothing of this will come back: the futures that are empty."""
        with self._lock:
            bundles = [future for bundle in self._bundles.values() for future in bundle.futures]
            lost = [*self._alone.values(), *bundles, *self._waiting]
            self._alone, self._bundles, self._waiting = {}, {}, deque()
            return [future for future in lost if future._status is AWAY]

    # ---- what is sent ----------------------------------------------------------------------------------------

    def take(self, tasks_max: int) -> Iterator[list[Any]]:
        """Items of EXPORT, as many as there is room for; in the sender."""
        for _ in range(tasks_max):
            with self._lock:
                unit = self._next()
            if unit is None:
                return
            yield [unit.slot, _pack_bundle(unit)] if isinstance(unit, Bundle) else [unit._content, _pack_call(unit)]

    def _next(self) -> CallFuture[Any] | Bundle | None:
        first = self._first()
        if first is None:
            return None
        kind = first._kind
        wanted = kind.fit(share_of(len(self._waiting), self.cores))
        futures = [first] if wanted < 2 else self._gather(first, wanted)
        if len(futures) < 2:
            self._go_alone(first)
            return first
        slot = next(self._slots)
        self._load += BUNDLE_WEIGHT
        bundle = self._bundles[slot] = Bundle(slot, next(self._numbers), kind, futures)
        for future in futures:
            future._content = bundle
        return bundle

    def _go_alone(self, future: CallFuture[Any]) -> None:
        slot = next(self._slots)
        self._load += 1  # from here on nothing is called, so nothing interrupts
        future._content = slot
        self._alone[slot] = future

    def _first(self) -> CallFuture[Any] | None:
        """The next one that is still wanted, if there is room for it."""
        while self._waiting and self._load < self._room:
            future = self._waiting.popleft()
            if future._status is AWAY:
                return future
        return None

    def _gather(self, first: CallFuture[Any], wanted: int) -> list[CallFuture[Any]]:
        """The first and others of its kind that come soon after."""
        kind, waiting = first._kind, self._waiting
        futures = [first]
        aside = []
        size = _size(first)
        for _ in range(SCAN_MAX * wanted):
            if len(futures) == wanted or size > BUNDLE_BYTES_MAX or not waiting:
                break
            future = waiting.popleft()
            if future._kind is not kind:
                aside.append(future)
            elif future._status is AWAY:
                futures.append(future)
                size += _size(future)
        waiting.extendleft(reversed(aside))
        return futures

    # ---- what comes back -------------------------------------------------------------------------------------

    def is_alone(self, slot: int) -> bool:
        """Whether the task is one call, whose outcome has not arrived."""
        return slot in self._alone

    def arrive(self, slot: int, packed: Packed) -> None:
        """The outcome of a task; nothing is done if it was cancelled just now.

        If it is one call a signal handler may interrupt this, and raise; then it is repeated.  Or it does the same with
        the same outcome.
        """
        with self._lock:
            future = self._alone.get(slot)
            if future is not None:
                self._fill(future, ARRIVED, packed)
                room = 0
                if isinstance(future, CallFuture):
                    parts: list[Any] = packed
                    verdict, data, _, cost_s, _ = parts
                    if verdict == Verdict.VALUE or verdict == Verdict.RAISED:
                        future._kind.learn(cost_s, len(data))
                    room = 1
                if slot in self._alone:  # from here on nothing is called, so nothing interrupts
                    self._load -= room
                    del self._alone[slot]
            elif (bundle := self._bundles.pop(slot, None)) is not None:
                self._load -= BUNDLE_WEIGHT
                self._open(bundle, packed)

    def hear_of(self, path: bytes, packed: Packed) -> None:
        """What has become of a call, before its bundle has come back."""
        index = index_of(path)
        with self._lock:
            for bundle in self._bundles.values():
                future = bundle.find(index)
                if future is None or future._content is not bundle:
                    continue
                if packed == _RETURNED:
                    if not bundle.is_late:
                        bundle.is_late = True
                        bundle.kind.jump()
                    self._send_again([future], future._kind)
                else:
                    self._fill(future, ARRIVED, packed)
                return

    def _open(self, bundle: Bundle, packed: Packed) -> None:
        outcome = outcome_of(packed)
        empty = [future for future in bundle.futures if future._content is bundle]
        if outcome.verdict is Verdict.CRASHED:
            self._send_again(empty, bundle.kind.solitary)
            return
        if outcome.verdict is not Verdict.VALUE:
            for future in empty:
                self._fill(future, ARRIVED, packed)
            return
        answer = unpack_answer(outcome.data)
        if answer is None:
            self._send_again(empty, bundle.kind.solitary)
            return
        bundle.kind.learn(outcome.cost_s, len(outcome.data), len(bundle.futures))
        others, fill = answer.others, self._fill
        status = HERE if self._said else DONE
        again = []
        for place, (future, value) in enumerate(zip(bundle.futures, answer.values, strict=True)):
            if future._content is not bundle:
                continue
            if place not in others:
                fill(future, status, value)
            elif (other := others[place]) is not None:
                fill(future, ARRIVED, other)
            else:
                again.append(future)
        self._send_again(again, bundle.kind)

    def _recall(self, bundle: Bundle) -> bool:
        """One of these was cancelled: the others are sent again; whether it was there."""
        if bundle.slot not in self._bundles:
            return False
        for future in bundle.futures:  # in this order: one that is interrupted here comes back with the bundle
            if future._content is bundle:
                future._content = None
                self._waiting.append(future)
        del self._bundles[bundle.slot]
        self._load -= BUNDLE_WEIGHT
        return True

    def _send_again(self, futures: list[CallFuture[Any]], kind: Kind) -> None:
        for future in futures:
            future._content = None
            future._kind = kind
        self._waiting.extendleft(reversed(futures))


_index = attrgetter("_index")


def _size(future: CallFuture[Any]) -> int:
    return 0 if isinstance(future._arguments, tuple) else len(future._arguments)


def _pack_call(future: CallFuture[Any]) -> list[object]:
    kind = future._kind
    payload = payload_of(kind.function, future._arguments, kind.chance)
    return kind.pack(child_path(PROGRAM_PATH, future._index), payload)


def _pack_bundle(bundle: Bundle) -> list[object]:
    kind = bundle.kind
    indices = [future._index for future in bundle.futures]
    arguments = [future._arguments for future in bundle.futures]
    payload = pack_calls(Contents(PROGRAM_PATH, indices, kind.function, kind.chance, arguments))
    return kind.pack(bundle_path(PROGRAM_PATH, bundle.number), payload)
