"""What the process of the root node does with its life, and the parts of it that every other node has too.

What lives here: the order of starting, serving and ending, in structured concurrency.  What does not: the lives of the
other nodes, see `member.py`.
"""

from __future__ import annotations

import os
import random
import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import trio

from hdphrs.config import FAIR_S, LEDGER_PIECE_BYTE_COST_S, LEDGER_PIECE_COST_S, TERM_DEADLINE_S, CoreConfig
from hdphrs.console import say
from hdphrs.errors import HdphrsError, ProtocolError, StartError
from hdphrs.node.ahead import Ahead
from hdphrs.node.crew import Crew, understand
from hdphrs.node.driver import Driver, Feed
from hdphrs.node.exchange import Exchange
from hdphrs.node.life import tell_launcher
from hdphrs.node.link import NodeLink
from hdphrs.node.links import FROM_PROGRAM, MALFORMED, check
from hdphrs.node.orders import Orders
from hdphrs.node.process import SchedulerProcess
from hdphrs.node.report import Report
from hdphrs.node.voices import ToProgram
from hdphrs.protocol.events import Event, Terminate
from hdphrs.protocol.node import Node
from hdphrs.protocol.tasks import PROGRAM, Outcome
from hdphrs.transport.interface import Transport
from hdphrs.transport.listener import listening_socket
from hdphrs.transport.tcp import TcpTransport
from hdphrs.wire import local
from hdphrs.wire.items import pack_outcome
from hdphrs.wire.page import Page
from hdphrs.wire.settings import READY, TOLD_STATUS, NodeSettings

if TYPE_CHECKING:
    from hdphrs.node.ledger import Book


Look = Callable[[list[list[Any]]], None]
"""Sees what the program sends."""


async def root(settings: NodeSettings, page: Page, processes: list[SchedulerProcess]) -> int:
    """The career of the root node; the exit status."""
    with crew_of(page, processes, settings) as crew, unwrapped(), core_of(settings) as (core, feed):
        report = Report(core, settings)
        program = NodeLink(socket.socket(fileno=settings.program_fd))
        to_program = ToProgram(program)
        ahead = Ahead(core, crew, program)
        driver = Driver(
            core,
            crew,
            feed=feed,
            program=program,
            here=(settings.host, settings.slots),
            on_join=report.joined,
            on_death=report.gone,
            on_work=report.worked,
            on_value=report.ended,
            on_said=to_program.hear,
            glance=ahead.message,
            has_filled=ahead.has_filled,
        )
        crew.exchange.begin, crew.exchange.end = driver.begin_turn, driver.end_turn
        crew.glance = ahead.answer

        def part() -> None:
            crew.drain()
            program.post([local.BYE])
            program.flush()

        def glance(messages: list[list[Any]]) -> None:
            if book is None:  # else it may be finished already
                ahead.call(messages)
            if settings.explain:
                report.made(slot for slot, _ in _made(messages))

        def look(messages: Sequence[list[Any]]) -> None:
            crew.figures.exported(_made(messages))

        book = _book(settings, driver, program)
        orders = Orders(lambda: driver, settings.grace_s)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(crew.exchange.run)
            nursery.start_soon(driver.tick)
            nursery.start_soon(crew.run, driver.handle, core.counters, driver.spread)
            nursery.start_soon(program.pump)
            hear = driver.handle if book is None else book.admit
            nursery.start_soon(_listen_to_program, program, crew.exchange, driver, hear, part, glance, look)
            nursery.start_soon(orders.watch_leash)
            nursery.start_soon(orders.obey_signals)
            if book is not None:
                nursery.start_soon(book.run)
            if settings.listen_fd is not None:
                transport = transport_of(settings, crew, driver, socket.socket(fileno=settings.listen_fd))
                await nursery.start(transport.serve)
            refusal = await _gather(settings, driver)
            if refusal is not None:
                program.post([local.FAILED, refusal])
                program.flush()
                driver.handle([Terminate()])
                await _end(driver, crew)
                raise StartError(refusal)
            if book is not None:
                await book.opened.wait()
            driver.tell_nodes()
            report.begun()
            # Before the program: what happens after its first words is no failure to start.
            tell_launcher(settings, READY)
            crew.voices.forward = to_program.forward
            program.post([local.READY, settings.reliable, settings.ledger])
            program.flush()
            await driver.stopping.wait()
            await _end(driver, crew)
            if book is not None:
                await book.close()
            nursery.cancel_scope.cancel()
        report.tell_loss()
        report.write()
        if program.is_spoilt:
            raise ProtocolError(
                "the program has written something of its own into the descriptor of its link to the root node"
            )
        return TOLD_STATUS if driver.told_to_end else 0


@contextmanager
def crew_of(page: Page, processes: list[SchedulerProcess], settings: NodeSettings) -> Iterator[Crew]:
    """The schedulers of one life, which end with it."""
    crew = Crew(page, processes, settings=settings, say=say)
    try:
        yield crew
    finally:
        crew.kill()


@contextmanager
def unwrapped() -> Iterator[None]:
    """Let an error that is meant for a person out of the groups that nurseries put around it."""
    try:
        yield
    except BaseExceptionGroup as group:
        error: BaseException = group
        while isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
        if isinstance(error, HdphrsError):
            raise error from None
        raise


@contextmanager
def core_of(settings: NodeSettings) -> Iterator[tuple[Node, Feed]]:
    """The core of one life, and how to feed it: what is to be recorded takes a detour."""
    config = CoreConfig(
        reliable=settings.reliable, attempts_max=settings.attempts_max, speculate=settings.speculate, fair_s=FAIR_S
    )
    if settings.ledger:
        config = replace(config, piece_cost_s=LEDGER_PIECE_COST_S, piece_byte_cost_s=LEDGER_PIECE_BYTE_COST_S)
    choose = random.Random(f"{settings.seed} {os.getpid()}").randrange
    make = Node.root if settings.root else Node.newcomer
    if settings.trace is None:
        core = make(config, choose)
        yield core, core.handle
        return
    from hdphrs.node.recorder import Recorder, life_of

    with closing(Recorder(settings.trace, life_of(settings, config, trio.current_time()), say)) as recorder:
        core = make(config, recorder.watch(choose))
        yield core, partial(recorder.handle, core)


def transport_of(settings: NodeSettings, crew: Crew, driver: Driver, listener: socket.socket | None) -> Transport:
    """The links of one life to other nodes.

    Args:
        listener: where others dial this node; None for any port that is free.
    """
    from hdphrs.transport.tls import mutual_tls

    transport = TcpTransport(
        listener or listening_socket(settings.bind),
        settings.secret,
        driver.hear,
        node=driver.core.me,
        detect_after_s=settings.detect_after_s,
        tls=None if settings.credentials is None else mutual_tls(settings.credentials),
        watch=crew.exchange.watch,
    )
    crew.peers_have_time = transport.has_time
    driver.attach_transport(transport)
    return transport


async def _gather(settings: NodeSettings, driver: Driver) -> str | None:
    """Wait for the expected nodes; why the run cannot begin, or None (hole R12)."""
    with trio.move_on_after(settings.join_deadline_s):
        while len(driver.core.live_nodes()) <= settings.expected and not driver.stopping.is_set():
            await driver.changed.wait()
        return None
    missing = settings.expected + 1 - len(driver.core.live_nodes())
    return f"{missing} of {settings.expected + 1} nodes did not join within {settings.join_deadline_s:g} s"


async def _end(driver: Driver, crew: Crew) -> None:
    """Stop the schedulers, and wait for the others, at most `TERM_DEADLINE_S` (hole R13)."""
    crew.voices.forward = None  # the program does not listen any more
    async with trio.open_nursery() as nursery:
        nursery.start_soon(crew.stop)
        with trio.move_on_after(TERM_DEADLINE_S):
            await driver.halted.wait()


def _book(settings: NodeSettings, driver: Driver, program: NodeLink) -> Book | None:
    """The ledger of this run, if it has one."""
    if settings.ledger_location is None:
        return None
    from hdphrs.node.ledger import Book

    def deliver(slot: int, outcome: Outcome) -> None:
        program.post([local.DELIVER, slot, pack_outcome(outcome)])
        program.flush()

    book = Book(
        settings.ledger_location,
        settings.ledger_bytes_max,
        handle=driver.handle,
        deliver=deliver,
        say=say,
        counters=driver.core.counters,
        key=settings.ledger_key,
    )
    driver.on_outcome = book.on_outcome
    driver.core.pieces.on_keep = book.on_piece
    driver.core.pieces.on_discard = book.on_discard
    return book


async def _listen_to_program(
    program: NodeLink,
    exchange: Exchange,
    driver: Driver,
    hear: Callable[[Sequence[Event]], None],
    part: Callable[[], None],
    before: Look,
    after: Look,
) -> None:
    """`before` sees what the program sends, and `after` does so when those who wait for it have it."""

    def listen(messages: list[list[Any]]) -> bool:
        events: list[Event] = []
        try:
            check(messages, FROM_PROGRAM)
            before(messages)
            for message in messages:
                if message[0] == local.FOUND:
                    driver.spread(*message[1:])
                elif message[0] == local.BYE:
                    part()
                    return False
                else:
                    events.append(understand(PROGRAM, message))
                    if message[0] == local.CANCEL:
                        program.post([local.HEARD])
        except MALFORMED:
            program.is_spoilt = True
            return False
        hear(events)
        program.flush()
        after(messages)
        return True

    await exchange.serve(program, listen)
    driver.handle([Terminate()])


def _made(messages: Sequence[list[Any]]) -> list[list[Any]]:
    """Of what the program sends, its tasks, as items of EXPORT."""
    items: list[list[Any]] = []
    for message in messages:
        if message[0] == local.EXPORT:
            items += message[1]
        elif message[0] == local.PLACE:
            items.append([message[1], message[3]])
    return items
