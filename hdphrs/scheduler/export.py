"""What leaves a scheduler: sparks that somebody hungry is to run, and threads for other nodes.

What lives here: the way out of the private deque.  Two threads take it, the main one when a spawn finds the demand byte
set, and the helper on behalf of a task that neither spawns nor gets for long; a lock makes it exclusive.  How many may
leave is decided in `pace.py`.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterable, Iterator
from time import thread_time
from typing import Any

from hdphrs.api import future as fast
from hdphrs.api.future import AWAY, FAILED, Future, context_of, name_of, take, unfold
from hdphrs.api.memo import Wish, wish_of
from hdphrs.api.options import options_of, options_of_task, use
from hdphrs.api.places import Roster
from hdphrs.errors import Cancelled, CannotTravelError, UsageError
from hdphrs.protocol.pieces import check_of
from hdphrs.protocol.tasks import FAIR, KEEN, NodeId, Outcome, Task
from hdphrs.scheduler.assigned import Assigned, is_below, path_of, root_of
from hdphrs.scheduler.away import Away, Gatherer, Taken
from hdphrs.scheduler.held import Held
from hdphrs.scheduler.note import plain
from hdphrs.scheduler.pace import EXPORT_MAX, Pace
from hdphrs.scheduler.reuse import Later, fill
from hdphrs.wire import local
from hdphrs.wire.bundle import Packed
from hdphrs.wire.code import CodeBook
from hdphrs.wire.items import pack_task
from hdphrs.wire.page import Line, Reading, label
from hdphrs.wire.values import dump_arguments

FIRST = 8
"""Sparks that leave before the rest of an export has been encoded: somebody waits for them."""


class Exporter:
    """Encodes tasks, and keeps those that are away."""

    def __init__(
        self,
        tell: Callable[..., None],
        line: Line,
        book: CodeBook,
        roster: Roster,
        *,
        reliable: bool,
        ledger: bool = False,
        explain: bool = False,
    ) -> None:
        """
        Args:
            tell: sends messages to the node.
            ledger: whether tasks have memos.
            explain: whether something is to be known about each of them.
        """
        self._tell = tell
        self.pace: Pace = Pace()
        self.on_rest: Callable[[], None] = lambda: None
        """Called when a rest begins or is cut short, at the end of which demand is to be answered."""
        self._line = line
        self._book = book
        self._roster = roster
        self._reliable = reliable
        self._ledger = ledger
        self._slots = itertools.count()
        self._away: dict[int, Away] = {}
        self.held: Held = Held(roster)
        self._gatherer = Gatherer(book, roster, reliable=reliable, refuses=ledger or explain)
        self._exclusive = threading.RLock()
        """Held while user code pickles, which may, oddly but lawfully, spawn and get: the same thread passes."""

    def export(self) -> None:
        """Give sparks to the node, the oldest half at most, unless it is time to rest."""
        with self._exclusive:
            self._line.demand = False  # before the node hears of it, who may set it again at once
            most = self.pace.allow()
            if most == 0:
                return
            if self.held.is_full:
                self.pace.pause()
                self.on_rest()
                return
            most *= self._gatherer.room()  # pickles a function that is new, which is no part of what each export takes
            began_s = thread_time()
            slots = self._give(_take_old(most), together=True)
            if slots is None:
                self._line.demand = self._line.wanted
            elif slots:
                self.pace.left(slots, thread_time() - began_s)
                if self.held.is_full:
                    self.pace.pause()
                self.pace.forget(slot for slot in slots if slot not in self._away)  # the other thread has opened them
                if self.pace.rest_until_s:
                    self.on_rest()

    def give_back(self, but: int) -> None:
        """Return the tasks that the node has handed over, and that nobody has begun, but for so many of the newest
        sparks."""
        if not isinstance(_oldest(), Assigned):  # which are older than what was made here, unless that was before
            return
        with self._exclusive:
            self._give(_take_unbegun(but))

    def export_new(self) -> None:
        """Give all new sparks of a task that runs carefully."""
        with self._exclusive:
            self._line.demand = False
            if self._give(_take_new()) is None:
                self._line.demand = self._line.wanted

    def export_youngest(self) -> None:
        """Give the spark that has just been made to the node, which knows better than to run it."""
        with self._exclusive:
            self._give(_take_youngest())

    def export_one(self, future: Future[Any]) -> None:
        """Give this spark to the node, unless somebody has taken it."""
        with self._exclusive:
            function = take(future)
            if function is not None:
                self._give([(future, function)])

    def came_back(self, slot: int, cost_s: float) -> None:
        """An outcome has been read, not yet delivered; it may be said twice."""
        self.held.drop(slot)
        if self.pace.came_back(slot, cost_s):
            self.on_rest()

    def export_marked(self) -> bool:
        """Give the spark that has just been made to the node if its task must not share its parent's process; whether
        it must not."""
        try:
            function = fast.sparks[-1]._function
        except IndexError:  # the helper thread has taken it
            return False
        options = None if function is None else options_of(plain(function))
        if options is None or not options.stealable:
            return False
        self.export_youngest()
        return True

    def _give(self, taken: Taken, *, together: bool = False) -> list[int] | None:
        """The slots of what has left, of small sparks several `together`; None if the node was told nothing.

        What is given `together`, on demand, stays here if enough is away.
        """
        returned: list[list[Any]] = []
        own: Taken = []
        for future, function in taken:
            if not isinstance(future, Assigned):
                own.append((future, plain(function)))
            elif (item := future.give_back()) is not None:
                returned.append(item)
        exported: list[list[Any]] = []
        slots: list[int] = []
        units = self._gatherer.gather(own, len(fast.sparks) + len(own)) if together else _alone(own)
        for away, function in units:
            if together and self.held.is_full:
                _put_back(taken)
                break
            task = away.task or self._encode_lone(away.futures[0], function)
            if task is not None:
                slots.append(self._send_away(away, task))
                exported.append([slots[-1], pack_task(task)])
                if len(slots) == FIRST:
                    self._tell(*_exports(exported))
                    exported = []
        messages = _exports(exported)
        if returned:
            messages.append([local.RETURN, returned])
        if messages:
            self._tell(*messages)
        return slots if slots or len(own) < len(taken) else None

    def _encode_lone(self, future: Future[Any], function: Callable[..., Any]) -> Task | None:
        """The task of a spark that leaves alone; None if it cannot, and its future is full of that."""
        try:
            priority = root_of(future).assigned.spark.task.priority
            context = context_of(future)
            return self._encode(function, future._content, path_of(future), future.supervised, context, priority)
        except (CannotTravelError, UsageError) as error:
            future._content = error
            future._status = FAILED
            return None

    def place(
        self,
        node: NodeId,
        function: Callable[..., Any],
        args: tuple[Any, ...],
        path: bytes,
        supervised: bool | None,
        priority: int,
    ) -> Future[Any]:
        """Send a thread to a node.

        Raises:
            CannotTravelError: function or arguments do not pickle.
        """
        with self._exclusive:
            future: Future[Any] = Future()
            future._function = None
            if fast.isolates:
                future._context = fast.isolation.snapshot()
            task = self._encode(function, args, path, supervised, context_of(future), priority, is_placed=True)
            self._tell([local.PLACE, self._send_away(Away([future], None), task), node, pack_task(task)])
            return future

    def check(
        self, function: Callable[..., Any], args: tuple[Any, ...], path: bytes, context: bytes = b""
    ) -> bytes | None:
        """The digest of a call, by which a piece knows it again; None if it does not pickle."""
        function, kwargs = unfold(function)
        with self._exclusive:
            try:
                code, payload = self._book.encode(name_of(function), function, args, kwargs, context)
            except CannotTravelError:
                return None
            return check_of(code, payload, self._memo(function, code, payload, args, kwargs, path))

    def check_later(self, function: Callable[..., Any], args: tuple[Any, ...], wish: Wish) -> Later | None:
        """`check` of a call with arguments that are all `PLAIN`, to be asked later for the path; None if it must be
        asked now, since its function has not been asked about before, or has changed since."""
        with self._exclusive:
            if self._ledger and wish is not Wish.NEVER:
                known = self._book.known(function)
                return None if known is None else lambda path: _memo(wish, known.key(args, path))
            code = self._book.known_code_of(function)
            if code is None or not code[0]:
                return None
            digest, chance = code[0], self._book.chance
            return lambda path: check_of(digest, dump_arguments("", args, {}, chance))

    def large_away(self) -> list[Future[Any]]:
        """A future of each task that is away with large arguments."""
        return [away.futures[0] for slot in self.held if (away := self._away.get(slot)) is not None]

    def finish(self) -> None:
        """Wait until no export is under way: what it has taken has a status then."""
        with self._exclusive:
            pass

    def arrived(self, slot: int, outcome: Outcome) -> tuple[Future[Any] | None, list[Future[Any]]]:
        """The outcome of what was away has come.

        Returns:
            A future of those that were away together, for the work behind them, and those that are full now; None and
            nothing if it was cancelled meanwhile.
        """
        away = self._away.pop(slot, None)
        self.held.drop(slot)
        self.pace.forget((slot,))  # when it was read, the other thread was perhaps about to say that it has left
        if away is None:
            return None, []
        full, again = away.open(outcome, self.fill)
        self._send_again(away, again)
        return away.futures[0], full

    def is_any(self, slot: int, is_wanted: Callable[[Future[Any]], bool]) -> bool:
        """Whether one of the futures that went away under this slot is wanted."""
        away = self._away.get(slot)
        return away is not None and any(map(is_wanted, away.futures))

    def hear_of(self, slot: int, parts: Iterable[tuple[int, Packed | None]]) -> list[Future[Any]]:
        """This has come of a bundle before it has come back itself (`local.PARTS`): the futures that are full now."""
        with self._exclusive:
            away = self._away.get(slot)
            if away is None:
                return []
            full, again = away.hear(parts, self.fill)
            self._send_again(away, again)
            return full

    def fill(self, future: Future[Any], outcome: Outcome, label: bytes) -> None:
        """Fill a future that has been taken; the page says whose value that is, for the case that it kills."""
        before = self._line.unpickle(label)
        try:
            fill(future, outcome)
        finally:
            self._line.unpickle(before)

    def cancel(self, future: Future[Any]) -> bool:
        """Give up a future that is away; whether it was."""
        with self._exclusive:
            away = self._away.pop(future._content, None) if future._status is AWAY else None
            if away is None:
                return False
            _fail(future)
            self._forget([away.slot])
            self._send_again(away, away.empty)  # those that were with it
            return True

    def _send_again(self, away: Away, places: Iterable[int]) -> None:
        """These calls of a bundle leave once more, each alone, unless the other thread has sent them again."""
        with self._exclusive:
            exported = []
            for place in places:
                future = away.futures[place]
                if away.is_empty(future):
                    task = away.lone(place)
                    exported.append([self._send_away(Away([future], away.expected), task), pack_task(task)])
            if exported:
                self._tell(*_exports(exported))

    def cancel_below(self, task: Future[Any]) -> None:
        """Give up all futures of a task and of those that run in place of it: those that wait here and those away."""
        with self._exclusive:
            for future in list(fast.sparks):
                if is_below(future, task) and take(future) is not None:
                    _fail(future)
            self._give_up([slot for slot, away in list(self._away.items()) if is_below(away.futures[0], task)])

    def _give_up(self, slots: list[int]) -> None:
        """Whoever takes something out of `_away` fills its futures: its outcome may arrive at the same time."""
        taken = [away for slot in slots if (away := self._away.pop(slot, None)) is not None]
        for away in taken:
            for place in away.empty:
                _fail(away.futures[place])
        if taken:
            self._forget([away.slot for away in taken])

    def _forget(self, slots: list[int]) -> None:
        """Nobody waits for these any more."""
        self.pace.forget(slots)
        for slot in slots:
            self.held.drop(slot)
        self._tell([local.CANCEL, slots])

    def _encode(
        self,
        function: Callable[..., Any],
        args: tuple[Any, ...],
        path: bytes,
        supervised: bool | None,
        context: bytes,
        inherited: int,
        *,
        is_placed: bool = False,
    ) -> Task:
        name = name_of(function)
        function, kwargs = unfold(function)
        code, payload = self._book.encode(name, function, args, kwargs, context)
        supervised = self._reliable if supervised is None else supervised
        memo = self._memo(function, code, payload, args, kwargs, path)
        options = options_of_task(function, self._roster, inherited, is_placed=is_placed)
        return Task(name, path, code, payload, supervised, memo, *options)

    def _memo(
        self,
        function: Callable[..., Any],
        code: bytes,
        payload: bytes,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        path: bytes,
    ) -> bytes:
        """How the ledger knows a call; what a skeleton spawns down here is as good as anything else."""
        if not self._ledger:
            return b""
        wish = wish_of(function)
        key = b"" if wish is Wish.NEVER else self._book.key(function, code, payload, args, kwargs, path)
        return key and _memo(wish, key)

    def _send_away(self, away: Away, task: Task) -> int:
        slot = away.slot = next(self._slots)
        if away.calls is None:
            away.label = label(Reading.VALUE, task.path, task.name)
        self._away[slot] = away
        self.held.add(slot, len(task.payload))
        for future in away.futures:
            future._content = slot
            future._status = AWAY
        return slot


def _memo(wish: Wish, key: bytes) -> bytes:
    return (KEEN if wish is Wish.ALWAYS else FAIR) + key


def _put_back(taken: Taken) -> None:
    """Those of the oldest sparks that were taken and have not left are what they were."""
    for future, function in reversed(taken):
        if not isinstance(future, Assigned) and not hasattr(future, "_status"):
            future._function = function
            fast.sparks.appendleft(future)


def _alone(taken: Taken) -> Iterator[tuple[Away, Callable[..., Any]]]:
    for future, function in taken:
        yield Away([future], None), function


def _exports(items: list[list[Any]]) -> list[list[Any]]:
    return [[local.EXPORT, chunk] for chunk in local.chunks(items, local.exported_bytes)]


def _fail(future: Future[Any]) -> None:
    future._content = Cancelled("the task was cancelled")
    future._status = FAILED


def _take_old(most: int) -> Taken:
    """The oldest half, of the sparks that were made here so many at most."""
    taken: Taken = []
    own = 0
    wanted = min(max(EXPORT_MAX, most), (len(fast.sparks) + 1) // 2)
    if use.begun:
        return _take_stealable(list(fast.sparks), wanted, most)
    while fast.sparks and len(taken) < wanted and own < most:
        try:
            future = fast.sparks.popleft()
        except IndexError:  # the last one went to the main thread meanwhile
            break
        function = take(future)
        if function is not None:
            own += not isinstance(future, Assigned)
            taken.append((future, function))
    return taken


def _oldest() -> Future[Any] | None:
    try:
        return fast.sparks[0]
    except IndexError:
        return None


def _take_unbegun(but: int) -> Taken:
    """The oldest sparks, as long as they are tasks that the node has handed over, and of which nothing has begun; so
    many of the newest stay in any case."""
    taken: Taken = []
    while len(fast.sparks) > but and isinstance(oldest := _oldest(), Assigned) and not oldest.has_begun:
        try:
            future = fast.sparks.popleft()
        except IndexError:  # the last one went to the main thread meanwhile
            break
        if future is not oldest:  # that one did, and there are others
            fast.sparks.appendleft(future)
            break
        function = take(future)
        if function is not None:
            taken.append((future, function))
    return taken


def _take_stealable(futures: Iterable[Future[Any]], wanted: int, most: int) -> Taken:
    """As `_take_old`, where some may not leave.  What stays is in the deque all the time, since somebody may look there
    for it; those that are taken remain as tombstones."""
    taken: Taken = []
    own = 0
    for future in futures:
        function = future._function
        if len(taken) == wanted or own == most:
            break
        options = None if function is None else options_of(plain(function))
        if function is not None and (options is None or options.stealable) and take(future) is not None:
            own += not isinstance(future, Assigned)
            taken.append((future, function))
    return taken


def _take_youngest() -> Taken:
    try:
        future = fast.sparks.pop()
    except IndexError:
        return []
    function = take(future)
    return [] if function is None else [(future, plain(function))]


def _take_new() -> Taken:
    """All sparks that are newer than the tasks that the node has handed over."""
    taken: Taken = []
    if use.begun:
        new = list(itertools.takewhile(lambda future: not isinstance(future, Assigned), reversed(list(fast.sparks))))
        return _take_stealable(new[::-1], len(new), len(new))
    while fast.sparks:
        try:
            future = fast.sparks.pop()
        except IndexError:
            break
        if isinstance(future, Assigned):
            fast.sparks.append(future)
            break
        function = take(future)
        if function is not None:
            taken.append((future, function))
    taken.reverse()
    return taken
