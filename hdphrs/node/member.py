"""What the process of a node that is not the root does: one life after the other.

What lives here: joining, serving, leaving, and coming back.  A node that has lost the root, or was declared dead, drops
everything: its id will never be used again, and the root has its tasks computed elsewhere.  Then it tries to join again
as a new node, with new schedulers, for as long as `--rejoin-for` says (decision 46).
"""

from __future__ import annotations

import gc
import os
import random
from collections.abc import Callable
from functools import partial

import trio

from hdphrs.config import REJOIN_PAUSE_MAX_S, REJOIN_PAUSE_MIN_S, TERM_DEADLINE_S
from hdphrs.console import say
from hdphrs.node.ahead import Ahead
from hdphrs.node.career import core_of, crew_of, transport_of, unwrapped
from hdphrs.node.crew import Crew
from hdphrs.node.driver import Driver
from hdphrs.node.life import start_crew
from hdphrs.node.orders import Orders
from hdphrs.node.process import SchedulerProcess
from hdphrs.protocol.effects import Halt
from hdphrs.protocol.tasks import ROOT
from hdphrs.transport.interface import Transport
from hdphrs.wire.page import Page
from hdphrs.wire.settings import JOINED_AGAIN, NodeSettings

STEADY_S = 2 * REJOIN_PAUSE_MAX_S
"""A node that has been a member for so long comes back without a pause."""


class Comeback:
    """When a node that is out of the run tries to join again, and until when; all times are seconds of one clock.

    Args:
        within_s: how long it tries after each loss.
        chance: gives a number from 0 to 1, so that nodes which were lost together do not come back together.
    """

    def __init__(self, within_s: float, chance: Callable[[], float]) -> None:
        self._within_s = within_s
        self._chance = chance
        self._until_s: float | None = None
        self._pause_s = 0.0

    @property
    def under_way(self) -> bool:
        """It was a member, or nearly so, and is none now."""
        return self._until_s is not None

    def lose(self, now_s: float, member_s: float) -> bool:
        """It is out of the run, after `member_s` seconds in it, 0 for a newcomer that was never let in; whether this
        is a new loss, and not the failure of an attempt to come back."""
        longer_s = min(max(2 * self._pause_s, REJOIN_PAUSE_MIN_S), REJOIN_PAUSE_MAX_S)
        self._pause_s = 0.0 if member_s >= STEADY_S else longer_s
        if self._until_s is not None and not member_s:
            return False
        self._until_s = now_s + self._within_s
        return True

    def succeed(self) -> None:
        """It is a member again."""
        self._until_s = None

    def left_s(self, now_s: float) -> float:
        """For how long it may go on trying."""
        return 0.0 if self._until_s is None else max(0.0, self._until_s - now_s)

    def pause_s(self) -> float:
        """How long to rest before it tries: longer after each short life."""
        return self._pause_s * (1 + self._chance()) / 2


class Member:
    """A node that is not the root, through all its lives."""

    def __init__(self, settings: NodeSettings) -> None:
        self._settings = settings
        self._driver: Driver | None = None
        """Of the present life, or the last one."""
        self._orders = Orders(lambda: self._driver, settings.grace_s)
        self._comeback = Comeback(settings.rejoin_s, random.Random(f"{settings.seed} {os.getpid()}").random)

    async def run(self, page: Page, processes: list[SchedulerProcess]) -> int:
        """Live until there is no other life to come; the exit status.

        Raises:
            StartError: it could not join, or not join again.
        """
        with unwrapped():
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._orders.watch_leash)
                nursery.start_soon(self._orders.obey_signals)
                halt = await self._live(page, processes)
                nursery.cancel_scope.cancel()
        if halt.reason is None:
            return 0
        if not (self._comeback.under_way and self._orders.is_orphan):  # of that the launcher itself has told
            self._say(f"ends: {halt.reason}")
        return 1

    async def _live(self, page: Page, processes: list[SchedulerProcess]) -> Halt:
        """How the last life has ended."""
        within_s = self._settings.rejoin_s
        if self._settings.comeback:
            self._comeback.lose(trio.current_time(), STEADY_S)
        while True:
            halt, member_s = await self._life(page, processes)
            if not halt.rejoin or self._orders.to_go or not within_s:
                return halt
            if self._comeback.lose(trio.current_time(), member_s):
                self._say(f"{_told(halt)}; it tries to join again, as a new node, for at most {within_s:g} s")
            gc.collect()  # the old page is part of cycles, and the root would read it for the new one
            page, processes = start_crew(self._settings)

    async def _life(self, page: Page, processes: list[SchedulerProcess]) -> tuple[Halt, float]:
        """How this life has ended, and for how long it was that of a member, in seconds."""
        settings = self._settings
        with crew_of(page, processes, settings) as crew, core_of(settings) as (core, feed):
            ahead = Ahead(core, crew)
            self._driver = driver = Driver(
                core,
                crew,
                feed=feed,
                here=(settings.host, settings.slots),
                root=(settings.root_host, settings.root_slots),
                glance=ahead.message,
                has_filled=ahead.has_filled,
            )
            crew.exchange.begin, crew.exchange.end = driver.begin_turn, driver.end_turn
            async with trio.open_nursery() as nursery:
                nursery.start_soon(crew.exchange.run)
                transport = transport_of(settings, crew, driver, None)
                await nursery.start(transport.serve)
                await self._join(transport, driver)
                joined_s = trio.current_time()
                if driver.halt is None and self._comeback.under_way:
                    self._comeback.succeed()
                    self._say(f"{JOINED_AGAIN.decode()}{core.me}")
                if driver.halt is None:
                    await self._serve(transport, crew, driver)
                nursery.cancel_scope.cancel()
            assert driver.halt is not None, "nothing else ends a life"
            return driver.halt, 0.0 if core.me is None else trio.current_time() - joined_s

    async def _join(self, transport: Transport, driver: Driver) -> None:
        """Become a member, unless this node is to end before it has come to that."""
        settings = self._settings
        async with trio.open_nursery() as nursery:

            async def join() -> None:
                rest = partial(transport.join, settings.root_addresses, settings.host, settings.slots, os.getpid())
                if self._comeback.under_way:
                    await trio.sleep(self._comeback.pause_s())
                    await rest(self._comeback.left_s(trio.current_time()), REJOIN_PAUSE_MAX_S)
                else:
                    await rest(settings.join_deadline_s)
                while driver.core.me is None:
                    await driver.changed.wait()
                nursery.cancel_scope.cancel()

            nursery.start_soon(join)
            await driver.halted.wait()
            nursery.cancel_scope.cancel()

    async def _serve(self, transport: Transport, crew: Crew, driver: Driver) -> None:
        """Be a member until `halted`."""
        async with trio.open_nursery() as nursery:
            crew.voices.forward = partial(transport.say, ROOT)
            nursery.start_soon(driver.tick)
            nursery.start_soon(crew.run, driver.handle, driver.core.counters, driver.spread)
            nursery.start_soon(driver.keep_telling)
            await driver.halted.wait()
            if driver.halt == Halt():
                transport.retire()
                await crew.stop()
                await _take_leave(transport, driver)
            nursery.cancel_scope.cancel()

    def _say(self, what: str) -> None:
        say(f"this node ({self._settings.host}) {what}")


async def member(settings: NodeSettings, page: Page, processes: list[SchedulerProcess]) -> int:
    """The career of a node that is not the root; the exit status."""
    return await Member(settings).run(page, processes)


def _told(halt: Halt) -> str:
    """Why a life has ended, as the rest of a sentence about the node."""
    return (halt.reason or "").removeprefix("it ")


async def _take_leave(transport: Transport, driver: Driver) -> None:
    """See the acknowledgement of TERM, or BYE, off; the root, when it has them all, may be gone before it says so."""
    async with trio.open_nursery() as nursery:

        async def flush() -> None:
            await transport.flush(ROOT, TERM_DEADLINE_S)
            nursery.cancel_scope.cancel()

        nursery.start_soon(flush)
        await driver.root_gone.wait()
        nursery.cancel_scope.cancel()
