"""Bundles in a scheduler: many short calls of the program, or of a task, that have come as one (decisions 16, 30).

What lives here: running the calls, one after the other on one stack, each as a task of its own for whatever it spawns;
and their outcomes.  What does not: which calls make a bundle; that is the business of whoever has spawned them
(`hdphrs/program/calls.py`, `away.py`).

Theory of operation
-------------------

A bundle is expected to take a few milliseconds, and is answered when all of its calls are.  If it takes longer, nobody
waits for it: the helper thread, whom the node asks, sends the outcomes that there are, and gives the calls that have
not begun back.  To the program both travel as pieces (`local.KEEP`), each under the path of its call; to a task, whose
scheduler is of the same node, as `local.PARTS`.

A call that waits leaves its stack, like any task, and the rest of the bundle goes on the deque again.

A bundle whose node has died, or its process, if that is charged to it, is not run again here: its maker is told so,
and sends the calls alone, which then find what is left of them, and are blamed alone.  So it is with a task's bundle
that another node has got.

The helper thread only moves calls from `unstarted` to `returned`; each step of it is atomic, and so is whose task it is
to answer (`_settle`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from time import perf_counter
from typing import Any

from hdphrs.api import future as fast
from hdphrs.api.places import Roster
from hdphrs.errors import CannotTravelError
from hdphrs.protocol.paths import first_index, index_of
from hdphrs.protocol.pieces import check_of
from hdphrs.protocol.tasks import PROGRAM, Outcome, Piece, Spark, Verdict
from hdphrs.scheduler.answers import DATA
from hdphrs.scheduler.assigned import Assigned, Copy, Root, undecoded
from hdphrs.scheduler.meter import Account, Meter
from hdphrs.scheduler.notice import notice
from hdphrs.wire import local
from hdphrs.wire.bundle import RETURNED, SMALL, Answer, Calls, is_bundle, pack_answer, unpack_calls
from hdphrs.wire.code import CodeBook, CodeShelf, parted
from hdphrs.wire.items import pack_outcome, pack_piece, unpack_outcome
from hdphrs.wire.pickling import dump_plain
from hdphrs.wire.values import PAYLOAD_BYTES_MAX, dump_error, dump_result

OVERDUE_S = 40e-3
"""A bundle that has run for so long gives back what it has not begun."""

NO_KEYWORDS: Mapping[str, Any] = {}

OUTCOME_BYTES_MAX = 1 << 20
"""And one whose outcomes have become so many bytes."""


class Bundle(Assigned):
    """The task."""

    __slots__ = (
        "begun",
        "calls",
        "context",
        "cost_s",
        "finished",
        "function",
        "here_s",
        "left",
        "look_at",
        "others",
        "outcome_bytes",
        "own_s",
        "queued",
        "returned",
        "runs",
        "since_s",
        "unstarted",
        "values",
    )

    def __init__(self, serial: int, spark: Spark) -> None:
        super().__init__(serial, spark)
        self.begun: bool = False
        self.calls: Calls = Calls(b"", (), b"", b"", ())
        self.context: bytes = b""
        """That of its calls, packed."""
        self.function: Callable[..., Any] | None = None
        """None if it travels inline: each call gets its own."""
        self.unstarted: deque[int] = deque()
        """By their places in the bundle."""
        self.left: dict[int, None] = {}
        """Those that have neither ended nor been given back."""
        self.values: list[Any] = []
        self.others: dict[int, list[object] | None] = {}
        self.outcome_bytes: int = 0
        self.finished: deque[int] = deque()
        """Of whose outcomes nobody has been told."""
        self.returned: deque[int] = deque()
        """Given back, and its maker has not been told."""
        self.look_at: int = 0
        """When so many have not begun, it is to be looked whether it will soon be over."""
        self.runs: int = 0
        """Stacks on which its calls run."""
        self.queued: bool = False
        """Whether it is in the deque once more."""
        self.since_s: float = 0.0
        """When it went on last."""
        self.cost_s: float = 0.0
        self.own_s: float = 0.0
        self.here_s: float = 0.0
        """Of the stacks that are done with it, as in `Account`."""

    @property
    def has_begun(self) -> bool:
        return self.begun

    def give_back(self) -> list[object] | None:
        """What has not begun; its maker is told with the next flush."""
        if not self.begun:
            return super().give_back()
        with suppress(IndexError):
            while True:
                place = self.unstarted.pop()
                self.others[place] = None
                self.returned.append(place)
                self.left.pop(place, None)
        return None

    @property
    def rest_s(self) -> float:
        """How long it will take from here, if it goes on like this."""
        left = len(self.unstarted)
        return (perf_counter() - self.since_s) * left / max(1, len(self.values) - left)

    @property
    def is_late(self) -> bool:
        """Whether it has been running for too long."""
        return self.runs > 0 and self.since_s < perf_counter() - OVERDUE_S

    @property
    def has_news(self) -> bool:
        """Whether its maker is to be told something before it is answered: else that would be soon."""
        return bool(self.returned or self.finished) and (not self.unstarted or self.is_late)

    def outcome(self, place: int) -> Outcome:
        """That of a call which has ended."""
        other = self.others.get(place)
        if other is not None:
            return unpack_outcome(other)
        return Outcome(Verdict.VALUE, dump_plain(self.values[place]))


class Call(Root):
    """One call of a bundle, while it runs."""

    __slots__ = ("bundle", "place")

    def __init__(self, bundle: Bundle, place: int) -> None:
        self._function = None
        self._parent = None
        self._spawned = 0
        self.bundle: Bundle = bundle
        self.place: int = place

    @property
    def path(self) -> bytes:
        return self.bundle.calls.path(self.place)

    @property
    def copy(self) -> Copy:
        return self.bundle.copy

    @property
    def is_supervised(self) -> bool:
        return self.bundle.is_supervised

    @property
    def assigned(self) -> Assigned:
        return self.bundle


def assigned(serial: int, spark: Spark) -> Assigned:
    """The future of a task that the node has handed over."""
    return (Bundle if is_bundle(spark.task.path) else Assigned)(serial, spark)


class Bundles:
    """Those of one scheduler that have begun."""

    def __init__(
        self,
        book: CodeBook,
        shelf: CodeShelf,
        meter: Meter,
        *,
        enter: Callable[[Assigned | None, Account | None], None],
        answer: Callable[[list[Any]], None],
        after: Callable[[Call], bool],
        refuses: bool,
        roster: Roster,
    ) -> None:
        """
        Args:
            enter: a stack begins to run, or ends.
            answer: takes the result of an assigned task.
            after: to be called after each call; whether the bundle is to let others go first.
            refuses: whether every call is to come alone, since something is to be known about each.
            roster: knows which node this is.
        """
        self._book = book
        self._shelf = shelf
        self._meter = meter
        self._enter = enter
        self._answer = answer
        self._after = after
        self._refuses = refuses
        self._roster = roster
        self._begun: dict[Bundle, None] = {}
        self._more: deque[tuple[int, int]] = deque()
        """See `local.CALLED`."""

    # ---- in the main thread ----------------------------------------------------------------------------------

    def run(self, bundle: Bundle) -> None:
        """Run the calls, but for what others have taken or taken over by then."""
        if not bundle.begun and not self._begin(bundle):
            return
        bundle.queued = False
        bundle.runs += 1
        bundle.since_s = perf_counter()
        account = Account()
        self._enter(bundle, account)
        # GIL: moving the calls of a bundle
        with suppress(IndexError):  # the helper thread has given back the rest
            while bundle.unstarted:
                call = Call(bundle, bundle.unstarted.popleft())
                self._meter.lend(call, account)
                self._run(bundle, call)
                bundle._spawned = call._spawned
                self._meter.close(call)
                if self._after(call):
                    break
        self._enter(None, None)
        bundle.cost_s += account.cost_s
        bundle.own_s += account.own_s
        bundle.here_s += account.here_s
        bundle.runs -= 1
        self.pass_on(bundle)
        self._settle(bundle)

    def pass_on(self, bundle: Bundle) -> None:
        """The stack on which it runs is left: the rest waits for another one, or somebody hungry."""
        if bundle.unstarted and not bundle.queued:
            bundle.queued = True
            bundle._function = undecoded
            fast.sparks.append(bundle)

    def _begin(self, bundle: Bundle) -> bool:
        spark = bundle.spark
        task = spark.task
        is_foreign = spark.ref.origin != PROGRAM and spark.ref.node != self._roster.ids[0]
        if self._refuses or is_foreign or spark.replica or spark.crashes:
            self._reply(bundle, Outcome(Verdict.VALUE, pack_answer(None)), 0)
            return False
        calls = bundle.calls = unpack_calls(task.payload)
        try:
            bundle.function = None if calls.function else self._shelf.function(task.name, task.code)
        except CannotTravelError as refusal:
            self._reply(bundle, dump_error(task.name, refusal), 0)
            return False
        self._book.chance, bundle.context = parted(calls.chance)
        count = len(calls.indices)
        bundle.values = [None] * count
        bundle.left = dict.fromkeys(range(count))
        bundle.look_at = count // 2
        bundle.unstarted.extend(range(count))
        bundle.begun = True
        self._begun[bundle] = None
        return True

    def _run(self, bundle: Bundle, call: Call) -> None:
        place = call.place
        function, arguments = bundle.function, bundle.calls.arguments[place]
        try:
            if function is not None and type(arguments) is tuple:
                args, kwargs = arguments, NO_KEYWORDS
            else:
                function, args, kwargs = self._decode(bundle, place)
            if bundle.context:
                call._context = notice.received(bundle.context)
            fast.here.task = call
            try:
                value = fast.isolation.run(call, function, args, kwargs) if fast.isolates else function(*args, **kwargs)
            finally:
                if fast.isolates and not hasattr(call, "_context"):
                    fast.isolation.renew()
        except BaseException as error:  # whatever it raises is its outcome, SystemExit too
            fast.here.task = None
            self._keep(bundle, place, dump_error(bundle.spark.task.name, error))
        else:
            fast.here.task = None
            if type(value) in SMALL:
                bundle.values[place] = value
            else:
                self._keep(bundle, place, dump_result(bundle.spark.task.name, value))
        bundle.finished.append(place)
        del bundle.left[place]

    def _decode(self, bundle: Bundle, place: int) -> tuple[Callable[..., Any], tuple[Any, ...], Any]:
        task = bundle.spark.task
        return self._shelf.decode(task.name, task.code, bundle.calls.payload(place))

    def _keep(self, bundle: Bundle, place: int, outcome: Outcome) -> None:
        bundle.others[place] = pack_outcome(replace(outcome, data=bytes(outcome.data)))
        bundle.outcome_bytes += len(outcome.data)
        if bundle.outcome_bytes > OUTCOME_BYTES_MAX:
            bundle.give_back()

    # ---- in either thread ------------------------------------------------------------------------------------

    def look(self) -> None:
        """Bundles that take too long give back what they have not begun."""
        for bundle in list(self._begun):
            if bundle.is_late:
                bundle.give_back()

    def may_be_late(self, *, somebody_waits: bool) -> bool:
        """Whether one has begun some time ago, or at all if somebody waits, and has not been answered."""
        since_s = perf_counter() - (0.0 if somebody_waits else OVERDUE_S / 2)
        return any(bundle.since_s < since_s for bundle in list(self._begun))

    @property
    def have_news(self) -> bool:
        """Whether there is something to tell."""
        return any(bundle.has_news for bundle in list(self._begun))

    def stop(self, wanted: Iterable[Copy]) -> None:
        """Nobody wants these any more: what they have not begun vanishes, what runs is not dealt with here."""
        for bundle in list(self._begun):
            if bundle.copy in wanted:
                bundle.give_back()
                bundle.returned.clear()
                self._settle(bundle)

    def behind(self, path: bytes) -> tuple[int, bytes]:
        """The nearest call above a task: the serial of its bundle, and its path; 0 and nothing if there is none."""
        above = [(0, b"")]
        for bundle in list(self._begun):
            parent, indices, *_ = bundle.calls
            if path.startswith(parent):
                index = first_index(path[len(parent) :])
                if parent + index != path and index_of(index) in indices:
                    above.append((bundle.serial, parent + index))
        return max(above, key=lambda one: len(one[1]))

    def parts(self) -> list[list[Any]]:
        """What their makers are to know of bundles that have not been answered, as messages, and counts."""
        messages: list[list[Any]] = []
        if not self._begun and not self._more:
            return messages
        for bundle in list(self._begun):
            if bundle.has_news:
                messages += self._news_of(bundle)
            self._settle(bundle)
        more = made = 0
        with suppress(IndexError):
            while True:
                ran, sparks = self._more.popleft()
                more += ran
                made += sparks
        if more or made:
            messages.append([local.CALLED, more, made])
        return messages

    def _news_of(self, bundle: Bundle) -> Iterable[list[Any]]:
        news = [*_drained(bundle.returned, lambda place: None), *_drained(bundle.finished, bundle.outcome)]
        ref = bundle.spark.ref
        if ref.origin == PROGRAM:
            pieces = [self._piece(bundle, place, outcome) for place, outcome in news]
            return [[local.KEEP, chunk, 0.0, 0.0] for chunk in local.chunks(pieces, local.kept_bytes)]
        parts = [[place, outcome and pack_outcome(outcome)] for place, outcome in news]
        return [[local.PARTS, list(ref), chunk] for chunk in local.chunks(parts, _part_bytes)]

    def _piece(self, bundle: Bundle, place: int, outcome: Outcome | None) -> list[Any]:
        """What the program knows a call by, and what has become of it."""
        calls = bundle.calls
        check = b"" if outcome is None else check_of(bundle.spark.task.code, calls.payload(place))
        return pack_piece(Piece(calls.path(place), check, outcome or RETURNED))

    def _settle(self, bundle: Bundle) -> None:
        """Answer it, if all of it has ended, and nobody else does."""
        if bundle.left or bundle.runs or bundle not in self._begun:
            return
        try:
            del self._begun[bundle]
        except KeyError:
            return  # the other thread does
        data = pack_answer(Answer(bundle.values, bundle.others))
        if len(data) > PAYLOAD_BYTES_MAX:
            data = pack_answer(None)
        ran = sum(other is not None for other in bundle.others.values()) + len(bundle.values) - len(bundle.others)
        self._reply(bundle, Outcome(Verdict.VALUE, data, (), bundle.cost_s), ran)

    def _reply(self, bundle: Bundle, outcome: Outcome, ran: int) -> None:
        self._more.append((ran - 1, 0 if bundle.spark.ref.origin == PROGRAM else ran - 1))
        packed = pack_outcome(replace(outcome, cost_s=bundle.cost_s))
        self._answer([list(bundle.spark.ref), bundle.spark.replica, packed, bundle.own_s, bundle.here_s])


def _drained(places: deque[int], of: Callable[[int], Outcome | None]) -> Iterable[tuple[int, Outcome | None]]:
    """All that are there; the other thread may do the same."""
    with suppress(IndexError):
        while True:
            place = places.popleft()
            yield place, of(place)


def _part_bytes(part: list[Any]) -> int:
    return 0 if part[1] is None else len(part[1][DATA])
