"""The scheduler processes of a node: their start, their links, their deaths.

What lives here: `Crew`, the schedulers as the driver sees them, on real processes.  Tests put another one in its place.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Sequence
from functools import partial
from time import perf_counter
from typing import Any

import trio

from hdphrs.api.board import Board
from hdphrs.config import EXIT_S
from hdphrs.lookout import leaves_room
from hdphrs.node.books import Books, Work
from hdphrs.node.coroner import Coroner
from hdphrs.node.exchange import Exchange
from hdphrs.node.figures import LOOK_S, Figures
from hdphrs.node.fork import Fork
from hdphrs.node.hunger import Hunger
from hdphrs.node.links import FROM_SCHEDULER, MALFORMED, SPOILT, check, end_without_link
from hdphrs.node.process import SchedulerProcess
from hdphrs.node.scheduler import Behind, Named, Scheduler
from hdphrs.node.starts import Starts
from hdphrs.node.stopped import Watch
from hdphrs.node.threads import run_in_thread
from hdphrs.node.tracker import tracker
from hdphrs.node.voices import Voices
from hdphrs.protocol.events import (
    Begun,
    Cancelled,
    Event,
    Exported,
    Finished,
    GivenBack,
    Hungry,
    Kept,
    Learned,
    Placed,
    Released,
    SchedulerUp,
)
from hdphrs.protocol.tasks import NodeId, Origin, Outcome, Payload, Piece, Spark, TaskRef
from hdphrs.wire import local
from hdphrs.wire.items import pack_outcome, pack_spark, unpack_piece
from hdphrs.wire.page import LOOK, Page, Reading
from hdphrs.wire.settings import NodeSettings, usable_cores

STOP_S = 0.25
"""How long schedulers may take to end by themselves."""

LOOK_AGAIN_S = 0.02
"""How often to look whether a process has ended, if the kernel cannot tell."""

Handle = Callable[[Sequence[Event]], None]
Spread = Callable[[bytes, float, bytes], None]


class Crew:
    """The schedulers of a node, one a core; a dead one is replaced."""

    def __init__(
        self,
        page: Page,
        processes: Sequence[SchedulerProcess],
        *,
        settings: NodeSettings,
        say: Callable[[str], None],
    ) -> None:
        """Take over processes that are starting.

        Args:
            say: prints a line for the user.
        """
        self._page = page
        self._settings = settings
        self._next_serial = 1
        self._started: TaskRef | None = None
        """Has been sent to its scheduler, and the core is asked next."""
        self._starts = Starts(page, settings, say)
        self._coroner = Coroner(settings.host, settings.slots)
        self._nodes: list[list[Any]] = []
        self._leaves_room = True
        """Whether looking out takes the core from nobody."""
        self.exchange: Exchange = Exchange(self._has_time, self._has_core)
        """Serves the links of the schedulers, and others; somebody has to run it."""
        self.peers_have_time: Callable[[], bool] = lambda: True
        """Whether nothing of the links to other nodes waits for a turn of trio's."""
        self.glance: Callable[[list[list[Any]]], None] = lambda messages: None
        """Sees what a scheduler says before the core hears of it."""
        self._books = Books(page.totals)
        self.voices: Voices = Voices(settings.host, settings.prefixed)
        self.figures: Figures = Figures(self.voices.advise if settings.advice else lambda kind, sentence: None)
        self._nursery: trio.Nursery | None = None
        self._handle: Handle | None = None
        self._spread: Spread | None = None
        self._finished: list[tuple[str, float]] = []
        """What is to be noted of tasks that have been answered: name, and for how long it has run."""
        self._board: Board[bytes] = Board()
        self._counters: dict[str, int] = {}
        self._stopping = False
        self._schedulers: dict[Origin, Scheduler] = {}
        self._hunger = Hunger(self._schedulers.values())
        self._watch = Watch(
            self._schedulers.values(), host=settings.host, replace_after_s=settings.detect_stopped_s, say=say
        )
        self._unsent: dict[Scheduler, None] = {}
        """Those to whom something was posted since the last flush."""
        self._next_origin = 1
        for process in processes:
            self._add(process)

    # ---- what the driver asks for ----------------------------------------------------------------------------

    def teach(self, origin: Origin, digest: bytes, data: Payload) -> None:
        """Effect `Teach`."""
        self._post(self._schedulers[origin], [local.CODE, digest, data])

    def unlearn(self, origin: Origin, digest: bytes) -> None:
        """Effect `Unlearn`."""
        self._post(self._schedulers[origin], [local.FORGET, digest])

    def start(self, origin: Origin, sparks: Sequence[Spark]) -> None:
        """Effect `Start`."""
        scheduler = self._schedulers[origin]
        self._hunger.feed(scheduler)
        if self._watch.sleeps:
            self._watch.wake()
        first, self._next_serial = self._next_serial, self._next_serial + len(sparks)
        if self._started is not None:
            assert sparks[0].ref == self._started, f"{self._started} was started before the core was asked"
            self._started = None
        elif len(sparks) == 1:
            scheduler.link.post([local.START, [[first, pack_spark(sparks[0])]]])
            scheduler.link.flush()  # its caller may wait for it alone, so the rest of the step comes after it
        else:
            for chunk in local.chunks(enumerate(sparks, first), _payload_bytes):
                self._post(scheduler, [local.START, [[serial, pack_spark(spark)] for serial, spark in chunk]])
        for serial, spark in enumerate(sparks, first):
            scheduler.hand(serial, spark)

    def start_first(self, origin: Origin, sparks: Sequence[Spark]) -> None:
        """Effect `Start` before what runs: its helper thread is asked to look."""
        scheduler = self._schedulers[origin]
        serials = range(self._next_serial, self._next_serial + len(sparks))
        self._next_serial += len(sparks)
        numbered = list(zip(serials, sparks, strict=True))
        self._post(scheduler, [local.START, [[serial, pack_spark(spark)] for serial, spark in numbered], True])
        for serial, spark in numbered:
            scheduler.hand(serial, spark)
        scheduler.is_asked = True

    def start_ahead(self, origin: Origin, ref: TaskRef, spark: list[Any]) -> None:
        """The effect `Start` with this one spark, packed, is sure to come next."""
        self._started = ref
        link = self._schedulers[origin].link
        link.post([local.START, [[self._next_serial, spark]]])
        link.flush()

    def deliver(self, origin: Origin, slot: int, outcome: Outcome) -> None:
        """Effect `Deliver`; to a dead scheduler it is lost."""
        scheduler = self._schedulers.get(origin)
        if scheduler is not None:
            scheduler.begin()
            self._post(scheduler, self._books.deliver(origin, slot, pack_outcome(outcome)))

    def deliver_ahead(self, origin: Origin, slot: int, outcome: list[Any]) -> None:
        """The effect `Deliver` with an outcome from another node, packed, is sure to come next, and is not to come."""
        scheduler = self._schedulers[origin]
        scheduler.begin()
        scheduler.link.post([local.DELIVER, slot, outcome, 0.0, 0.0])
        scheduler.link.flush()

    def cancel(self, origin: Origin, copies: Sequence[tuple[TaskRef, int]]) -> None:
        """Effect `Cancel`: its helper thread is asked to look, should it be deep in a task."""
        scheduler = self._schedulers[origin]
        self._post(scheduler, [local.STOP, [[list(ref), replica] for ref, replica in copies]])
        scheduler.unwanted.update(copies)
        scheduler.is_asked = True
        scheduler.begin()

    def replace(self, origin: Origin, copies: Sequence[tuple[TaskRef, int]]) -> None:
        """Effect `Replace`: if one of these has its core, the process is ended; what follows is as after a death."""
        scheduler = self._schedulers.get(origin)
        if scheduler is not None and (task := scheduler.runs(copies)) is not None:
            scheduler.replace(Named(task.name, task.path))

    def demand(self, wanted: bool) -> None:
        """Effect `Demand`."""
        self._hunger.demand(wanted)

    def kept(self, pieces: Sequence[Piece]) -> None:
        """These go to the root."""
        self._books.keep(pieces)

    def collect(self) -> None:
        """Hear what the schedulers have laid down: pieces, all in one step."""
        kept: list[Piece] = []
        for scheduler in self._schedulers.values():
            if scheduler.tray.finds:
                try:
                    for _, pieces, own_s, here_s in scheduler.tray.among([]):
                        self._books.give(scheduler.origin, own_s, here_s)
                        kept += map(unpack_piece, pieces)
                except MALFORMED:
                    scheduler.tray.is_spoilt = True
        if kept:
            self._coroner.got_on(kept)
            assert self._handle is not None
            self._handle([Kept(tuple(kept))])
            self._books.settle()

    def work(self) -> Work:
        """What the schedulers have done so far; the counters are up to date then."""
        lines = {scheduler.process.number: scheduler.process.line for scheduler in self._schedulers.values()}
        for each in self._schedulers.values():
            self.figures.at_work(each.process.number, each.process.pid, each.handed.get(each.process.line.running))
        self.figures.tally(lines, self._counters)
        return self._books.work(lines.values())

    def tell_nodes(self, nodes: list[list[Any]]) -> None:
        """Who is alive, self first: id, host, and how many schedulers; the host is empty if it is not known yet."""
        self._nodes = nodes
        self._leaves_room = leaves_room(nodes, usable_cores())
        self._books.me = nodes[0][0]
        self.voices.meet(*(tuple(node) for node in nodes))
        for scheduler in self._schedulers.values():
            self._post(scheduler, [local.NODES, nodes])

    def tell(self, topic: bytes, rank: float, find: bytes) -> bool:
        """Let the schedulers know what a task has found, if it is better than what was known here; whether it was."""
        if not self._board.improve(topic, rank, find):
            return False
        for scheduler in self._schedulers.values():
            scheduler.link.post([local.FOUND, topic, rank, find])
            scheduler.link.flush()
        return True

    def _close(self, topic: bytes) -> None:
        """What was found in this search has taken a scheduler down: the others are to do without."""
        self._board.close(topic)
        for scheduler in self._schedulers.values():
            scheduler.link.post([local.CLOSED, topic])
            scheduler.link.flush()

    def found(self) -> list[tuple[bytes, float, bytes]]:
        """The best of what tasks have found, search by search."""
        return self._board.all()

    def flush(self) -> None:
        """Send what has been posted."""
        self._hunger.sent()
        for scheduler in self._unsent:
            scheduler.link.flush()
            if scheduler.is_asked:
                scheduler.is_asked = False
                scheduler.ask(LOOK)
        self._unsent.clear()

    def _post(self, scheduler: Scheduler, message: list[Any]) -> None:
        self._unsent[scheduler] = None
        scheduler.link.post(message)

    def drain(self) -> None:
        """Pass on what tasks have said by now."""
        for scheduler in self._schedulers.values():
            self._hear(scheduler, scheduler.tray.among(scheduler.link.drain()))
            scheduler.speaker.drain()

    # ---- life ------------------------------------------------------------------------------------------------

    async def run(self, handle: Handle, counters: dict[str, int], spread: Spread) -> None:
        """Serve all schedulers, and replace those that die, until cancelled.

        Args:
            handle: takes their events.
            counters: where to count what only the schedulers know.
            spread: takes what their tasks have found.
        """
        self._spread = spread
        self._handle = handle
        self._counters = counters
        counters.update(sparks_made=0, tasks_run=0, pieces_used=0, pieces_mismatched=0)
        async with trio.open_nursery() as nursery:
            self._nursery = nursery
            for scheduler in list(self._schedulers.values()):
                nursery.start_soon(self._attend, scheduler)
            taken = {scheduler.process.number for scheduler in self._schedulers.values()}
            for number in range(self._settings.slots):
                if number not in taken:  # there was no room for it
                    nursery.start_soon(self._fill, number, 0.0)
            nursery.start_soon(self._hunger.nudges.run)
            nursery.start_soon(self._watch.run)
            nursery.start_soon(self._await_reports)

    async def _await_reports(self) -> None:
        """Start the resource tracker when a task has made the first thing that it is to track."""
        if (reports := tracker.reading) is not None:
            await trio.lowlevel.wait_readable(reports)
            tracker.start()

    async def stop(self) -> None:
        """Ask all processes to end, and wait for those that do, at most `EXIT_S`; those that run a task may still do so
        after `STOP_S`, see `kill`."""
        self._stopping = True
        for scheduler in self._schedulers.values():
            scheduler.link.post([local.QUIT])
            scheduler.link.flush()
        with trio.move_on_after(STOP_S):
            for scheduler in self._schedulers.values():
                await _wait(scheduler.process.process)
        with trio.move_on_after(EXIT_S):
            for scheduler in list(self._schedulers.values()):
                if scheduler.process.line.leaving:
                    await _wait(scheduler.process.process)

    def kill(self) -> None:
        """End and reap all processes, whatever they do, and close every descriptor."""
        for scheduler in self._schedulers.values():
            scheduler.kill()
        self._schedulers.clear()
        self.exchange.close()
        self._page.close()

    def _add(self, process: SchedulerProcess) -> Scheduler:
        origin = Origin(self._next_origin)
        self._next_origin += 1
        scheduler = self._schedulers[origin] = Scheduler(origin, process, self.voices)
        self._hunger.join(scheduler)
        self._watch.wake()
        return scheduler

    async def _attend(self, scheduler: Scheduler) -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(scheduler.link.pump)
            nursery.start_soon(self._serve, scheduler)
            for end in (scheduler.process.control, scheduler.process.tray):
                nursery.start_soon(self._await_end, scheduler, end.fileno())
            nursery.start_soon(scheduler.speaker.relay)
            await _wait(scheduler.process.process)
            nursery.cancel_scope.cancel()
        self._hear(scheduler, scheduler.tray.rest(scheduler.link.drain()))  # what it said before it died still counts
        if not self._stopping:
            self._bury(scheduler)

    async def _serve(self, scheduler: Scheduler) -> None:
        await self.exchange.serve(scheduler.link, partial(self._listen, scheduler))
        if scheduler.link.is_spoilt:
            scheduler.spoil(SPOILT)
        await end_without_link(scheduler)

    async def _await_end(self, scheduler: Scheduler, descriptor: int) -> None:
        await self.exchange.await_end(descriptor)
        await end_without_link(scheduler)

    def _listen(self, scheduler: Scheduler, messages: list[list[Any]]) -> bool:
        self._hear(scheduler, scheduler.tray.among(messages))
        return scheduler.fault is None

    def _hear(self, scheduler: Scheduler, messages: list[Any]) -> None:
        assert self._handle is not None
        events: list[Event] = []
        try:
            if messages:
                check(messages, FROM_SCHEDULER)
                self.glance(messages)
            for message in messages:
                event = self._understand(scheduler, message)
                if event is not None:
                    events.append(event)
        except MALFORMED:
            scheduler.link.is_spoilt = True
        if scheduler.link.is_spoilt or scheduler.tray.is_spoilt:
            scheduler.spoil(SPOILT)
        self._handle(events)
        self._books.settle()
        if self._finished:  # after somebody has got them
            for name, own_s in self._finished:
                self.figures.finished(name, own_s)
            self._finished.clear()
            now_s = perf_counter()
            if now_s >= scheduler.look_s:
                scheduler.look_s = now_s + LOOK_S
                self.figures.looked(scheduler.process.number, scheduler.process.pid, scheduler.process.line)

    def _understand(self, scheduler: Scheduler, message: list[Any]) -> Event | None:
        origin = scheduler.origin
        match message:
            case [local.RESULTS, results]:
                finished = []
                for ref, replica, outcome, own_s, here_s in results:
                    named = local.ref_of(ref)
                    task = scheduler.take_back(named, replica)
                    self._books.finish(origin, named, task.path, own_s, here_s)
                    self._finished.append((task.name, own_s))
                    finished.append((named, replica, local.outcome_of(outcome)))
                self._counters["tasks_run"] += len(results)
                return Finished(origin, tuple(finished))
            case [local.HUNGRY, room, ran, how]:
                self._counters["sparks_made"] += ran
                self._counters["tasks_run"] += ran
                return Hungry(origin, room) if self._hunger.starves(scheduler, how) else None
            case [local.CALLED, more, made]:
                self._counters["tasks_run"] += more
                self._counters["sparks_made"] += made
                return None
            case [local.CALLS, rows]:
                self.figures.called(rows)
                return None
            case [local.EXPORT, items]:
                self._counters["sparks_made"] += len(items)
                self.figures.exported(items)
                return understand(origin, message)
            case [local.RETURN, sparks]:
                returned = [(local.ref_of(ref), replica) for ref, replica in sparks]
                for named, replica in returned:
                    scheduler.take_back(named, replica)
                return GivenBack(origin, tuple(returned))
            case [local.BEGUN, ref, replica]:
                return Begun(origin, local.ref_of(ref), replica)
            case [local.STUCK, serial, name, path]:
                if scheduler.process.line.running == serial:
                    scheduler.replace(Named(name, path))
                return None
            case [local.BEHIND, serial, bundle, path]:
                if serial in scheduler.handed:  # else it has just ended
                    scheduler.behind[serial] = Behind(bundle, path)
                return None
            case [local.ABOUT, serial, summary]:
                scheduler.arguments[serial] = summary
                return None
            case [local.FOUND, topic, rank, find]:
                assert self._spread is not None
                self._spread(topic, rank, find)
                return None
            case [local.IMPORTED, *_]:
                if self._leaves_room:
                    for other in self._schedulers.values():
                        if other is not scheduler:
                            self._post(other, message)
                return None
            case [local.SAID, items]:
                scheduler.speaker.said(items)
                return None
            case [local.REUSED, used, mismatched]:
                self._counters["pieces_used"] += used
                self._counters["pieces_mismatched"] += mismatched
                return None
            case [local.PARTS, [_, maker, slot], parts]:
                if maker in self._schedulers:
                    self._post(self._schedulers[maker], [local.PARTS, slot, parts])
                return None
            case [local.KEEP, pieces, own_s, here_s]:
                self._books.give(origin, own_s, here_s)
                kept = tuple([unpack_piece(piece) for piece in pieces])
                self._coroner.got_on(kept)
                return Kept(kept)
            case [local.READY]:
                scheduler.ready = scheduler.speaker.ready = True
                scheduler.ready_s = perf_counter()
                self._starts.succeeded()
                self._post(scheduler, [local.NODES, self._nodes])
                for find in self.found():
                    self._post(scheduler, [local.FOUND, *find])
                for topic in self._board.closed:
                    self._post(scheduler, [local.CLOSED, topic])
                return SchedulerUp(origin)
            case _:
                return understand(origin, message)

    def _bury(self, scheduler: Scheduler) -> None:
        assert self._handle is not None
        assert self._nursery is not None
        process = scheduler.process
        del self._schedulers[scheduler.origin]
        self._unsent.pop(scheduler, None)
        self._books.bury(scheduler.origin, process.line)
        self.figures.bury(process.number, process.line)
        scheduler.kill()
        what, death = self._coroner.inquire(scheduler, self._schedulers.values())
        if (label := process.line.unpickles).reading is Reading.FIND:
            self._close(label.path)
        scheduler.forget()
        lived_s = perf_counter() - scheduler.began_s
        pause_s = self._starts.pause_s(process, what, ready=scheduler.ready, lived_s=lived_s, words=death.crash.words)
        heir = None if pause_s else self._starts.start(process.number)
        if heir is None:
            self._nursery.start_soon(self._fill, process.number, pause_s)
        else:
            self._nursery.start_soon(self._attend, self._add(heir))
        self._handle([death])

    async def _fill(self, number: int, pause_s: float) -> None:
        """Have a scheduler at this place, after a pause or as soon as there is room."""
        await self._attend(self._add(await self._starts.start_later(number, pause_s)))

    def _has_time(self) -> bool:
        """Whether nothing but what the exchange serves is to be done just now."""
        return self.peers_have_time() and not self._hunger.nudges.are_due

    def _has_core(self) -> bool:
        """Whether the core of a scheduler can be had for a moment."""
        return self._leaves_room and any(one.is_idle for one in self._schedulers.values())


def _payload_bytes(numbered: tuple[int, Spark]) -> int:
    return len(numbered[1].task.payload)


def understand(origin: Origin, message: list[Any]) -> Event:
    """The messages that schedulers and the program have in common."""
    match message:
        case [local.EXPORT, items]:
            return Exported(origin, tuple([(slot, local.task_of(task)) for slot, task in items]))
        case [local.CODE, digest, data]:
            return Learned(digest, data, origin)
        case [local.RELEASE, digests]:
            return Released(origin, tuple(digests))
        case [local.CANCEL, slots]:
            return Cancelled(origin, tuple(slots))
        case [local.PLACE, slot, node, task]:
            return Placed(origin, slot, local.task_of(task), NodeId(node))
        case _:
            raise AssertionError(f"not a message for a node: {message!r}")


async def _wait(process: subprocess.Popen[bytes] | Fork) -> None:
    """Wait until a child has ended, and reap it."""
    if hasattr(os, "pidfd_open"):
        try:
            descriptor = os.pidfd_open(process.pid)
        except ProcessLookupError:
            process.wait()
        except OSError:  # there is no room for a descriptor now
            while process.poll() is None:
                await trio.sleep(LOOK_AGAIN_S)
        else:
            try:
                await trio.lowlevel.wait_readable(descriptor)
            finally:
                os.close(descriptor)
            process.wait()
    else:
        await run_in_thread(process.wait, abandon_on_cancel=True)
