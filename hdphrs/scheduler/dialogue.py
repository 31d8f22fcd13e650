"""What a scheduler and its node say to each other.

What lives here: what leaves takes along all that has gathered, hunger is said once, or once ahead and once more, and
what comes goes to whom it is for.  What does not: what gathers (`answers.py`, `bundles.py`, `keep.py`, `voice.py`), and
the link (`mail.py`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from time import perf_counter
from typing import Any, NoReturn

from hdphrs.api import future as fast
from hdphrs.api.future import Future
from hdphrs.api.places import Roster
from hdphrs.lookout import look_out_s
from hdphrs.protocol.surroundings import is_surroundings
from hdphrs.protocol.tasks import Outcome
from hdphrs.scheduler.answers import COST, Answers
from hdphrs.scheduler.bundles import Bundles, assigned
from hdphrs.scheduler.end import flush_streams, leave
from hdphrs.scheduler.export import Exporter
from hdphrs.scheduler.finds import Finds
from hdphrs.scheduler.habits import Habits
from hdphrs.scheduler.imports import Imports
from hdphrs.scheduler.keep import Keeper
from hdphrs.scheduler.mail import Mail
from hdphrs.scheduler.meter import Meter, Share
from hdphrs.scheduler.native_threads import native_threads, schedulers_here
from hdphrs.scheduler.stop import Stopper
from hdphrs.scheduler.strands import Strands
from hdphrs.scheduler.surroundings import Adopter
from hdphrs.scheduler.timers import Timers
from hdphrs.scheduler.voice import Voice
from hdphrs.scheduler.waiting import Waiting
from hdphrs.wire import local
from hdphrs.wire.code import CodeBook, CodeShelf
from hdphrs.wire.said import WANTED
from hdphrs.wire.settings import usable_cores

POLL_S = 1e-3
"""How long a busy scheduler leaves what the node has sent unread."""


class Dialogue:
    """That of one scheduler."""

    def __init__(
        self,
        mail: Mail,
        exporter: Exporter,
        habits: Habits,
        keeper: Keeper,
        stopper: Stopper,
        answers: Answers,
        bundles: Bundles,
        waiting: Waiting,
        timers: Timers,
        meter: Meter,
        strands: Strands | None,
        book: CodeBook,
        shelf: CodeShelf,
        adopter: Adopter,
        imports: Imports,
        finds: Finds,
        voice: Voice,
        roster: Roster,
    ) -> None:
        """Who has something to say, and whom something may be said to."""
        self._mail = mail
        self._exporter = exporter
        self._habits = habits
        self._keeper = keeper
        self._stopper = stopper
        self._answers = answers
        self._bundles = bundles
        self._waiting = waiting
        self._timers = timers
        self._meter = meter
        self._strands = strands
        self._book = book
        self._shelf = shelf
        self._adopter = adopter
        self._imports = imports
        self._finds = finds
        self._voice = voice
        self._roster = roster
        self.is_hungry: bool = False
        """The node knows that there is room for more tasks here."""
        self._ahead = False
        """It has been told in time: something runs here yet."""
        self._uncredited: deque[tuple[Future[Any], Outcome, Share]] = deque()
        """What other threads have delivered: the main thread keeps the accounts."""
        self.first: int = 0
        """So many of the youngest in the deque are to be run before what runs."""
        self.on_first: Callable[[], object] = bool
        """Called when there are some, whoever has read of them."""
        self._reported = 0
        """How many own sparks have been run that the node has been told of."""
        self._read_s = 0.0
        """When the link was read last."""

    @property
    def is_due(self) -> bool:
        """Whether something has come, and a busy scheduler has not looked for a while.  (The node says so after it has
        written, so what has just been read may seem to have come once more.)"""
        return self._mail.has_come and perf_counter() - self._read_s > POLL_S

    def flush(self, *, hungry: bool = False, ahead: bool = False) -> None:
        """Send what has gathered; the helper thread may do the same at the same time.

        Pieces alone wake nobody (decision 36).

        Args:
            hungry: also that there is room for more tasks here, unless that has been said; only in the main thread.
            ahead: but something runs here yet; who has said that is hungry once more when nothing does.
        """
        parts = self._bundles.parts()  # which may answer a bundle
        answers = self._answers.take()
        hunger = self._hunger(ahead) if hungry and (not self.is_hungry or (self._ahead and not ahead)) else []
        said = self._voice.finish() if answers or parts else self._voice.gathered()
        if said or parts or answers or hunger:
            calls = [] if self._strands is None else self._strands.gathered()
            kept = self._keeper.gathered()
            self._mail.tell(*said, *kept, *parts, *calls, *answers, *hunger, *self._released())
        else:
            self._keeper.send()
        if answers:
            flush_streams()

    def _released(self) -> list[list[object]]:
        released = self._book.released()
        return [[local.RELEASE, released]] if released else []

    def _hunger(self, ahead: bool) -> list[list[object]]:
        how = local.AGAIN if self.is_hungry else local.AHEAD if ahead else local.NOW
        self.is_hungry, self._ahead = True, ahead
        ran, self._reported = fast.here.ran - self._reported, fast.here.ran
        return [[local.HUNGRY, self._habits.room, ran, how]]

    def receive(self, *, block: bool, for_s: float | None = None) -> bool:
        """In the main thread: deal with what has come; if `block`, wait for something, for so many seconds at most if
        that is said, or until a timer is due.  Returns whether something has come."""
        while self._uncredited:
            self._credit(*self._uncredited.popleft())
        if not block and not self._mail.has_come:
            return False
        timer_s = self._timers.left_s() if block and self._timers.calls else None
        if timer_s is not None:
            for_s = timer_s if for_s is None else min(for_s, timer_s)
        messages = self._mail.fetch(block=block, for_s=for_s)
        self._read_s = perf_counter()
        for message in messages:
            match message:
                case [local.DELIVER, slot, outcome, own_s, here_s]:
                    self.is_hungry = False  # the node takes it back
                    self._exporter.came_back(slot, outcome[COST])
                    self._deliver(slot, local.outcome_of(outcome), Share(own_s, here_s))
                case [local.PARTS, slot, parts]:
                    for future in self._exporter.hear_of(slot, parts):
                        self._waiting.wake(future)
                case [local.START, sparks]:
                    self.is_hungry = False
                    # Behind what waits already: it has been asked for ahead, again and again, and must not starve that.
                    fast.sparks.extendleft([assigned(serial, local.spark_of(spark)) for serial, spark in sparks])
                case [local.START, sparks, _]:
                    fast.sparks.extend([assigned(serial, local.spark_of(spark)) for serial, spark in sparks])
                    self.first += len(sparks)
                    self.on_first()
                case [local.STOP, copies]:
                    self.is_hungry = False  # as with DELIVER
                    self._stopper.stop_copies(copies)
                    self._waiting.wake_all()
                case [local.CODE, digest, data]:
                    if is_surroundings(digest):
                        self._adopter.take(bytes(data))
                    else:
                        self._shelf.teach(digest, data)
                case [local.FORGET, digest]:
                    self._shelf.forget(digest)
                    self._mail.tell(*self._released())
                case [local.NODES, nodes]:
                    self._roster.hear(nodes)
                    self._keeper.nodes = len(nodes)
                    cores = usable_cores()
                    self._mail.lookout.for_s = look_out_s(nodes, cores)
                    native_threads.divide(cores, schedulers_here(nodes))
                case [local.FOUND, topic, rank, find]:
                    if topic == WANTED:
                        self._voice.want(find)
                    else:
                        self._finds.hear(topic, rank, find)
                case [local.CLOSED, topic]:
                    self._finds.close(topic)
                case [local.IMPORTED, path, names]:
                    self._imports.hear(path, names)
                case [local.QUIT]:
                    self._end()
                case _:
                    raise AssertionError(f"not a message for a scheduler: {message!r}")
        return bool(messages)

    def receive_wanted(self, is_wanted: Callable[[Future[Any]], bool]) -> None:
        """In another thread, while the main one does not read: deliver what has become of these futures."""

        def concerns(message: list[Any]) -> bool:
            return message[0] in (local.DELIVER, local.PARTS) and self._exporter.is_any(message[1], is_wanted)

        for message in self._mail.pick(concerns):
            full: Iterable[Future[Any]] = ()
            match message:
                case [local.DELIVER, slot, packed, own_s, here_s]:
                    self.is_hungry = False
                    self._exporter.came_back(slot, packed[COST])
                    outcome = local.outcome_of(packed)
                    first, full = self._exporter.arrived(slot, outcome)
                    if first is not None:
                        self._uncredited.append((first, outcome, Share(own_s, here_s)))
                case [local.PARTS, slot, parts]:
                    full = self._exporter.hear_of(slot, parts)
            for future in full:
                self._waiting.wake(future)

    def _end(self) -> NoReturn:
        fast.here.task = None
        self._mail.conclude()
        said = self._voice.finish()
        if said:
            self._mail.tell(*said)
        leave()

    def _deliver(self, slot: int, outcome: Outcome, share: Share) -> None:
        first, full = self._exporter.arrived(slot, outcome)
        if first is not None:
            self._credit(first, outcome, share)
        for future in full:
            self._waiting.wake(future)

    def _credit(self, future: Future[Any], outcome: Outcome, share: Share) -> None:
        self._meter.credit(future, outcome.cost_s, share)
        if self._strands is not None:
            self._strands.joined(future, outcome.span_s)
