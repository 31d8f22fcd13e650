"""Sparks that are away: which have left alone, which together, and what comes back of them (decision 30).

What lives here: small sparks of one task that call one function leave as one, a *bundle*; its answer fills all of their
futures.  What does not: which sparks leave, and when (`export.py`); what a bundle is for the scheduler that gets it
(`bundles.py`).

A bundle that comes back with less than all answers leaves behind sparks that are sent again, each of them alone: it was
run again, or its process has died, or it takes too long, or one of its futures was cancelled.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

from hdphrs.api import future as fast
from hdphrs.api.future import AWAY, DONE, Future, Keywords, context_of, name_of
from hdphrs.api.options import options_of, use
from hdphrs.api.places import Roster
from hdphrs.errors import CannotTravelError
from hdphrs.protocol.tasks import Outcome, Task, Verdict
from hdphrs.scheduler.assigned import Assigned, path_of, root_of
from hdphrs.scheduler.note import plain
from hdphrs.scheduler.pace import WORTH_S
from hdphrs.scheduler.reuse import Fill
from hdphrs.wire.bundle import (
    BUNDLE_BYTES_MAX,
    SMALL,
    WHOLE_BYTES_MIN,
    Arguments,
    Calls,
    Expectation,
    Packed,
    bundle_path,
    pack_calls,
    share_of,
    unpack_answer,
)
from hdphrs.wire.code import INLINE_BYTES_MAX, CodeBook, with_context
from hdphrs.wire.items import unpack_outcome
from hdphrs.wire.page import NOTHING, Reading, label
from hdphrs.wire.values import dump_arguments

Taken = list[tuple[Future[Any], Callable[..., Any]]]

KINDS_MAX: Final = 256
"""Functions of which it is remembered how long they take."""


class Away:
    """One task that the node has got: a spark, or a bundle of them."""

    __slots__ = ("calls", "expected", "futures", "label", "slot", "task")

    def __init__(
        self,
        futures: list[Future[Any]],
        expected: Expectation | None,
        task: Task | None = None,
        calls: Calls | None = None,
    ) -> None:
        """
        Args:
            expected: what its outcome teaches; None if nobody asks.
            task: the bundle, as it travels; without its payload.
            calls: what is in it.
        """
        self.futures: list[Future[Any]] = futures
        self.expected: Expectation | None = expected
        self.task: Task | None = task
        self.calls: Calls | None = calls
        self.slot: int = -1
        """By which the node knows it."""
        self.label: bytes = NOTHING
        """Of a spark: how its value is named in the page while it is unpickled."""

    def is_empty(self, future: Future[Any]) -> bool:
        """Whether this future still waits for this task."""
        return future._status is AWAY and future._content == self.slot

    @property
    def empty(self) -> list[int]:
        """The places of the futures that do."""
        return [place for place, future in enumerate(self.futures) if self.is_empty(future)]

    def lone(self, place: int) -> Task:
        """The task that one of the calls is by itself."""
        assert self.task is not None
        assert self.calls is not None
        bundle = self.task
        return Task(
            bundle.name,
            self.calls.path(place),
            bundle.code,
            self.calls.payload(place),
            bundle.supervised,
            priority=bundle.priority,
        )

    def _label(self, place: int) -> bytes:
        """That of the value of one of the calls."""
        assert self.task is not None
        assert self.calls is not None
        return label(Reading.VALUE, self.calls.path(place), self.task.name)

    def open(self, outcome: Outcome, fill: Fill) -> tuple[list[Future[Any]], list[int]]:
        """It has come back: the futures that are full now, and the places of those that must be sent again."""
        if self.calls is None:
            if self.expected is not None and outcome.verdict in (Verdict.VALUE, Verdict.RAISED):
                self.expected.learn(outcome.cost_s, len(outcome.data))
            fill(self.futures[0], outcome, self.label)
            return self.futures, []
        empty = self.empty
        if outcome.verdict is Verdict.CRASHED:
            return [], empty
        if outcome.verdict is not Verdict.VALUE:
            for place in empty:
                fill(self.futures[place], outcome, self._label(place))
            return [self.futures[place] for place in empty], []
        answer = unpack_answer(outcome.data)
        if answer is None:
            return [], empty
        if self.expected is not None:
            self.expected.learn(outcome.cost_s, len(outcome.data), len(self.futures))
        again = []
        full = []
        for place in empty:
            future = self.futures[place]
            if place not in answer.others:
                future._content = answer.values[place]
                future._status = DONE
            elif (other := answer.others[place]) is not None:
                fill(future, unpack_outcome(other), self._label(place))
            else:
                again.append(place)
                continue
            full.append(future)
        return full, again

    def hear(self, parts: Iterable[tuple[int, Packed | None]], fill: Fill) -> tuple[list[Future[Any]], list[int]]:
        """The same for what comes of it before it has come back."""
        full = []
        again = []
        for place, packed in parts:
            future = self.futures[place]
            if not self.is_empty(future):
                continue
            if packed is None:
                again.append(place)
            else:
                fill(future, unpack_outcome(packed), self._label(place))
                full.append(future)
        if again and self.expected is not None:
            self.expected.jump()
        return full, again


class Gatherer:
    """Says which sparks of one scheduler leave together."""

    def __init__(self, book: CodeBook, roster: Roster, *, reliable: bool, refuses: bool) -> None:
        """`refuses`: whether every spark is to leave alone, since something is to be known about each."""
        self._book = book
        self._roster = roster
        self._reliable = reliable
        self._refuses = refuses
        self._expected: dict[tuple[bytes, bytes], Expectation] = {}

    def gather(self, taken: Taken, waiting: int) -> Iterator[tuple[Away, Callable[..., Any]]]:
        """Sparks as they leave, with the function of each; those of a lone one are not packed.

        Args:
            waiting: how many are there, these included.
        """
        share = self._share(waiting)
        group: list[Future[Any]] = []
        function: Callable[..., Any] = len
        expected: Expectation | None = None
        room = 0
        for future, its_function in taken:
            if len(group) < room and its_function is function and _are_alike(future, group[0]):
                group.append(future)
                continue
            yield from self._units(group, function, expected)
            group, function = [future], its_function
            expected = self._expectation(function)
            room = _fit(expected, share)
        yield from self._units(group, function, expected)

    def room(self) -> int:
        """How many sparks would leave together, if all were like the oldest."""
        try:
            oldest = fast.sparks[0]
        except IndexError:
            return 1
        function = oldest._function
        if function is None or isinstance(oldest, Assigned):
            return 1
        return _fit(self._expectation(plain(function)), self._share(len(fast.sparks)))

    def _share(self, waiting: int) -> int:
        """Of one bundle at most.  With other nodes each leaves alone: how they are to be told what comes early, nobody
        has said."""
        infos = self._roster.infos
        return 1 if self._refuses or len(self._roster.ids) != 1 or not infos else share_of(waiting, infos[0].slots)

    def _expectation(self, function: Callable[..., Any]) -> Expectation | None:
        """What is known of a function; None if its calls must go alone."""
        if self._refuses or isinstance(function, Keywords) or (use.begun and options_of(function) is not None):
            return None
        try:
            kind = self._book.code_of(name_of(function), function)
        except CannotTravelError:
            return None  # its export says so
        digest, data = kind
        if len(data) > INLINE_BYTES_MAX:
            return None
        key = bytes(digest), data  # another object, that keeps nothing registered
        expected = self._expected.get(key)
        if expected is None:
            if len(self._expected) >= KINDS_MAX:
                self._expected.clear()
            expected = self._expected[key] = Expectation()
        return expected

    def _units(
        self, group: list[Future[Any]], function: Callable[..., Any], expected: Expectation | None
    ) -> Iterator[tuple[Away, Callable[..., Any]]]:
        """A group as one bundle or more, but for those that are too large, or do not pickle."""
        together: list[Future[Any]] = []
        arguments: list[Arguments] = []
        size = 0
        for future in group if len(group) > 1 else ():
            packed = self._arguments(future._content, context_of(future))
            if packed is None:
                yield Away([future], expected), function
                continue
            together.append(future)
            arguments.append(packed)
            size += len(packed) if isinstance(packed, bytes) else 0
            if size > BUNDLE_BYTES_MAX:
                yield self._bundle(together, arguments, function, expected), function
                together, arguments, size = [], [], 0
        if len(together) > 1:
            yield self._bundle(together, arguments, function, expected), function
        else:
            for future in together if len(group) > 1 else group:
                yield Away([future], expected), function

    def _arguments(self, args: tuple[Any, ...], context: bytes) -> Arguments | None:
        """Those of one call of a bundle; None if they are not for one."""
        if SMALL.issuperset(map(type, args)):
            return args
        try:
            payload = dump_arguments("", args, {}, with_context(self._book.chance, context))
        except CannotTravelError:
            return None
        return bytes(payload) if len(payload) < WHOLE_BYTES_MIN else None

    def _bundle(
        self,
        futures: list[Future[Any]],
        arguments: list[Arguments],
        function: Callable[..., Any],
        expected: Expectation | None,
    ) -> Away:
        first = futures[0]
        parent = path_of(first._parent)
        code, data = self._book.code_of(name_of(function), function)
        said = with_context(self._book.chance, context_of(first))
        calls = Calls(parent, [future._index for future in futures], b"" if code else data, said, arguments)
        supervised = self._reliable if first.supervised is None else first.supervised
        task = Task(
            name_of(function),
            bundle_path(parent, first._index),
            code,
            pack_calls(calls),
            supervised,
            priority=root_of(first).assigned.spark.task.priority,
        )
        return Away(futures, expected, task, calls)


def _fit(expected: Expectation | None, share: int) -> int:
    return 1 if expected is None or expected.cost_s < WORTH_S else expected.fit(share)


def _are_alike(future: Future[Any], other: Future[Any]) -> bool:
    """Whether they have one parent, are supervised in the same way, and get the same context."""
    if future._parent is not other._parent or type(future) is not type(other):
        return False
    return not fast.isolates or context_of(future) == context_of(other)
