"""The helper thread: speaks for a task that does not come to it.

What lives here: what is done while a task neither spawns nor gets for long: looking at what runs, stopping what was
cancelled, answering demand, and sending what has gathered.

The thread waits for the node's requests, and has a rhythm of its own (`rhythm.py`), so that the node need not wake up
for what happens here.
"""

from __future__ import annotations

import os
import select
import socket
import threading
from collections.abc import Callable
from math import ceil, inf
from time import perf_counter
from typing import Protocol

from hdphrs.api import future as fast
from hdphrs.room import OwnThread
from hdphrs.scheduler.answers import COST, Answers
from hdphrs.scheduler.bundles import Bundles
from hdphrs.scheduler.end import leave
from hdphrs.scheduler.export import Exporter
from hdphrs.scheduler.habits import SOON_S, Habits
from hdphrs.scheduler.keep import Keeper
from hdphrs.scheduler.links import Links
from hdphrs.scheduler.mail import Mail
from hdphrs.scheduler.note import Noter
from hdphrs.scheduler.rhythm import Rhythm
from hdphrs.scheduler.stop import Stopper
from hdphrs.scheduler.timers import Timers
from hdphrs.scheduler.voice import Voice
from hdphrs.wire import local
from hdphrs.wire.files import out_of_the_way
from hdphrs.wire.page import LOOK, SPEAK, Line


class Turn(Protocol):
    """What is needed of that (`turn.py`, which imports this)."""

    @property
    def owed(self) -> int: ...
    def end(self) -> bool: ...
    def interrupt(self) -> None: ...


ASKED_BYTES = 64
"""Requests that are read at once; those of one kind are one."""

RING = b"."
"""What the main thread writes to wake this one."""

TICK_S = 30e-3
"""How often the thread comes by while tasks come and go, and something waits for that."""


class Helper:
    """That of one scheduler."""

    def __init__(
        self,
        control: socket.socket,
        line: Line,
        links: Links,
        mail: Mail,
        exporter: Exporter,
        keeper: Keeper,
        noter: Noter | None,
        stopper: Stopper,
        answers: Answers,
        voice: Voice,
        timers: Timers,
        bundles: Bundles,
        habits: Habits,
        flush: Callable[[], None],
        turn: Turn,
        somebody_idles: Callable[[], bool],
        *,
        looks: bool,
    ) -> None:
        """
        Args:
            control: where the node's requests come in.
            flush: sends what has gathered.
            turn: may have the running task let others go on at its next spawn.
            somebody_idles: whether another scheduler of this node runs nothing.
            looks: whether it is to look at what runs.
        """
        self._control = control
        self._line = line
        self._links = links
        self._mail = mail
        self._exporter = exporter
        self._keeper = keeper
        self._noter = noter
        self._stopper = stopper
        self._answers = answers
        self._voice = voice
        self._timers = timers
        self._bundles = bundles
        self._habits = habits
        self._flush = flush
        self._turn = turn
        self._somebody_idles = somebody_idles
        self._ident = 0
        self._woken, self._bell = map(out_of_the_way, os.pipe())
        os.set_blocking(self._bell, False)
        links.guard(control.fileno(), self._woken, self._bell)
        exporter.on_rest = self._rest
        keeper.watcher.on_change = self.stir
        self._rhythm = Rhythm(self._state)
        self._looks = looks
        self._look_s = 0.0 if looks else inf
        """When it is time to look again."""
        self._has_ended_turn = False
        """At the last tick others waited for their turn."""

    def start(self) -> None:
        """Begin.

        Raises:
            RuntimeError: there is no room for a thread.
        """
        OwnThread(self._run, "hdphrs-helper").start()

    def stir(self) -> None:
        """The main thread begins with something else."""
        if self._rhythm.is_slow:
            self._wake()

    def hurry(self) -> None:
        """In the main thread: something waits for the thread, and is not to wait for a tick that is far."""
        if self._rhythm.is_later_than(TICK_S):
            self._wake()

    def _wake(self) -> None:
        self._rhythm.change()
        try:
            os.write(self._bell, RING)
        except BlockingIOError:  # it has been woken often enough
            pass
        except OSError:
            self._links.lost()

    def _rest(self) -> None:
        """A rest has begun, or is over, in whichever thread."""
        if threading.get_ident() != self._ident:
            self._wake()

    def _run(self) -> None:
        self._ident = threading.get_ident()
        ready = select.poll()
        ready.register(self._control, select.POLLIN)
        ready.register(self._woken, select.POLLIN)
        try:
            while True:
                events = ready.poll(self._pause_ms())
                self._end_rest()
                self._answer_demand()  # before what else lets go of the interpreter, which it takes long to get again
                for descriptor, _ in events:
                    if descriptor == self._woken:
                        if not os.read(self._woken, ASKED_BYTES).startswith(RING):
                            self._links.lost()
                    elif asked := self._control.recv(ASKED_BYTES):
                        self._obey(asked)
                    else:
                        leave()
                self._tick()
        except BaseException as error:
            self._links.fail(error)

    def _pause_ms(self) -> int | None:
        """How long to wait for the next request; None for ever."""
        look_s = self._keeper.look_s
        tick_s = TICK_S if self._look_s == inf else look_s / max(1, int(look_s / TICK_S))
        patient = self._noter is None  # that counts tasks between looks
        pause_s = self._rhythm.pause_s(tick_s, patient=patient, useful=self._is_useful())
        if self._line.demand and self._mail.holds_tasks:
            pause_s = min(pause_s, SOON_S)
        if rest_until_s := self._exporter.pace.rest_until_s:
            pause_s = min(pause_s, max(0.0, rest_until_s - perf_counter()))
        if timer_s := self._timers.left_s():
            pause_s = min(pause_s, timer_s)
        return None if pause_s == inf else ceil(pause_s * 1000)

    @property
    def _results_are_due(self) -> bool:
        return self._answers.are_due_at_a_tick(nobody_waits=self._keeper.nodes <= 1 and not self._line.wanted)

    def _is_useful(self) -> bool:
        """Whether something here waits for a tick, or for the next look."""
        waits = self._results_are_due or self._voice or self._has_ended_turn or self._timers.left_s() == 0.0
        bundles = self._bundles.may_be_late(somebody_waits=self._line.wanted)
        return bool(waits or bundles or self._stopper.stopping or (self._looks and self._keeper.needs_looks))

    def _state(self) -> tuple[int, ...]:
        task = fast.here.task
        return self._line.running, id(task), fast.here.ran, 0 if task is None else task._spawned

    def _obey(self, asked: bytes) -> None:
        if LOOK in asked:
            self._read_mail()
            self._flush()
        if SPEAK in asked:
            self._bundles.look()
            self._flush()

    def _tick(self) -> None:
        now_s = perf_counter()
        if self._timers.left_s() == 0.0:
            self._line.again()  # so that the running task gives way at its next spawn
        self._has_ended_turn = self._turn.end()
        if now_s >= self._look_s:
            self._look_s = now_s + self._keeper.look_s
            self._look()
        if stuck := self._stopper.stuck():
            self._mail.tell(*stuck)
        self._bundles.look()
        if self._habits.is_overdue():
            self._send_all_back()
        if self._results_are_due or self._bundles.have_news or self._voice:
            self._flush()

    def _look(self) -> None:
        """At what runs."""
        self._keeper.watcher.look()
        if self._noter is not None and self._noter.look():
            self._line.again()
        self._keeper.send_due()

    def _end_rest(self) -> None:
        pace = self._exporter.pace
        if pace.rest_until_s and not pace.is_resting:
            pace.rest_until_s = 0.0
            if self._line.mail:
                self._read_mail()  # first, if late: what seems to be dear, since it is away for long, may be in there
            self._line.demand = self._line.wanted

    def _answer_demand(self) -> None:
        """Whatever the thread was woken for: the node asks once, and may have asked between two tasks."""
        if self._line.demand:
            self._exporter.export()
            self._read_mail()
            if self._rhythm.quiet_s() >= SOON_S or (self._habits.goes_on() and self._somebody_idles()):
                self._send_back()

    def _send_back(self, *, urgent: bool = True) -> None:
        """What the main thread has asked for too early (decision 29); also what is to run next, if that is `urgent`."""
        sparks = [local.spark_of(spark) for _, spark in self._mail.take_back(urgent=urgent)]
        if sparks:
            self._mail.tell([local.RETURN, [[list(spark.ref), spark.replica] for spark in sparks]])

    def _send_all_back(self) -> None:
        """What runs takes much longer than was expected, so what waits here for its end goes back, though nobody has
        asked for it: only the node knows whether a call of the program's waits for that, and has no core."""
        if self._line.mail:
            self._read_mail()
        self._exporter.give_back(but=self._turn.owed)
        if self._mail.holds_tasks:
            self._send_back(urgent=False)

    def _read_mail(self) -> None:
        """Stop what has been cancelled, hear what tasks have cost, send again what comes back; the main thread gets it
        all."""
        for message in self._mail.glance():
            if message[0] == local.STOP:
                self._stopper.stop_copies(message[1])
            elif message[0] == local.START and len(message) > 2:
                self._turn.interrupt()
            elif message[0] == local.DELIVER:
                self._exporter.came_back(message[1], message[2][COST])
            elif message[0] == local.PARTS:
                self._exporter.hear_of(message[1], [part for part in message[2] if part[1] is None])
