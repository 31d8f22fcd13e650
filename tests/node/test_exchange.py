"""The local links of a node, heard together."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import trio
import trio.testing

from hdphrs.node.exchange import ANSWER_S, TALK_S, TURN_S, Exchange, _Selector
from hdphrs.node.link import NodeLink
from hdphrs.wire.local import Link

DEADLINE_S = 20.0


@contextmanager
def pair() -> Iterator[tuple[NodeLink, Link]]:
    """The node's end of a link, and the other one."""
    ours, theirs = socket.socketpair()
    link, other = NodeLink(ours), Link(theirs)
    try:
        yield link, other
    finally:
        link.close()
        other.close()


class Ear:
    """Hears messages; may answer."""

    def __init__(self, answer: Callable[[list[Any]], bool] = lambda message: True) -> None:
        self.heard: list[list[Any]] = []
        self._answer = answer

    def __call__(self, messages: list[list[Any]]) -> bool:
        self.heard += messages
        answers = [self._answer(message) for message in messages]
        return all(answers)


def run(main: Callable[[Exchange, trio.Nursery], Any], *, alone: bool = True) -> None:
    """In an exchange that ends with `main`."""

    async def both() -> None:
        exchange = Exchange(lambda: alone)
        with trio.fail_after(DEADLINE_S):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(exchange.run)
                await main(exchange, nursery)
                nursery.cancel_scope.cancel()
        exchange.close()

    trio.run(both)


def test_what_all_links_have_to_say_is_heard_and_their_ends_too() -> None:
    async def main(exchange: Exchange, nursery: trio.Nursery) -> None:
        with pair() as (first, program), pair() as (second, scheduler):
            ears = Ear(), Ear()
            program.send([1], [2])
            scheduler.send([3])
            async with trio.open_nursery() as served:
                served.start_soon(exchange.serve, first, ears[0])
                served.start_soon(exchange.serve, second, ears[1])
                program.close()
                scheduler.close()
            assert [ear.heard for ear in ears] == [[[1], [2]], [[3]]]

    run(main)


def test_link_is_not_heard_any_more_when_there_is_no_more_to_come() -> None:
    async def main(exchange: Exchange, nursery: trio.Nursery) -> None:
        with pair() as (link, program):
            ear = Ear(lambda message: message != [9])
            program.send([1])
            program.send([9])
            await exchange.serve(link, ear)
            assert ear.heard == [[1], [9]]
            program.send([2])
            exchange.turn()
            assert ear.heard == [[1], [9]]

    run(main)


def test_link_that_is_given_up_while_it_is_served_is_left_alone() -> None:
    async def main(exchange: Exchange, nursery: trio.Nursery) -> None:
        with pair() as (link, scheduler):
            ear = Ear()
            async with trio.open_nursery() as served:
                served.start_soon(exchange.serve, link, ear)
                await trio.testing.wait_all_tasks_blocked()
                served.cancel_scope.cancel()
            scheduler.send([1])
            exchange.turn()
            assert ear.heard == []
            assert link.receive() == [[1]]

    run(main)


def test_turn_hears_what_comes_in_answer_to_what_it_has_heard() -> None:
    """Ping-pong with ourselves: each message is answered while it is heard, and no task of trio's runs in between."""
    exchange = Exchange(lambda: True, clock=lambda: 0.0)

    async def main() -> None:
        with pair() as (link, scheduler):

            def answer(message: list[Any]) -> bool:
                if message[0] < 5:
                    scheduler.send([message[0] + 1])
                return True

            ear = Ear(answer)
            async with trio.open_nursery() as served:
                served.start_soon(exchange.serve, link, ear)
                await trio.testing.wait_all_tasks_blocked()
                scheduler.send([1])
                assert not exchange.turn()
                served.cancel_scope.cancel()
            assert ear.heard == [[1], [2], [3], [4], [5]]

    trio.run(main)
    exchange.close()


def test_all_that_a_turn_hears_is_between_its_begin_and_its_end() -> None:
    exchange = Exchange(lambda: True, clock=lambda: 0.0)
    said: list[str] = []
    exchange.begin, exchange.end = lambda: said.append("begin"), lambda: said.append("end")

    async def main() -> None:
        with pair() as (link, scheduler):

            def answer(message: list[Any]) -> bool:
                said.append(str(message[0]))
                if message[0] < 2:
                    scheduler.send([message[0] + 1])
                return True

            async with trio.open_nursery() as served:
                served.start_soon(exchange.serve, link, Ear(answer))
                await trio.testing.wait_all_tasks_blocked()
                scheduler.send([1])
                exchange.turn()
                served.cancel_scope.cancel()
        assert said == ["begin", "1", "2", "end"]

    trio.run(main)
    exchange.close()


def test_turn_ends_though_there_is_ever_more_to_hear() -> None:
    now_s = 0.0

    def clock() -> float:
        nonlocal now_s
        now_s += TURN_S / 10
        return now_s

    exchange = Exchange(lambda: True, clock=clock)

    async def main() -> None:
        with pair() as (link, scheduler):

            def answer(message: list[Any]) -> bool:
                scheduler.send([1])
                return True

            ear = Ear(answer)
            async with trio.open_nursery() as served:
                served.start_soon(exchange.serve, link, ear)
                await trio.testing.wait_all_tasks_blocked()
                scheduler.send([1])
                assert exchange.turn(), "the next turn is to begin at once"
                served.cancel_scope.cancel()
            assert 1 < len(ear.heard) <= 10

    trio.run(main)
    exchange.close()


def waits_of_turns(*at_s: float, alone: bool = True, core: bool = False) -> list[list[float | str]]:
    """How long turns that begin at these times, and take none, wait for messages; each of them hears one."""
    now_s = 0.0
    exchange = Exchange(lambda: alone, lambda: core, lambda: now_s)
    waits: list[list[float | str]] = []
    wait = exchange._wait

    def noted(timeout_s: float) -> Any:
        waits[-1].append(timeout_s)
        return wait(0.0)

    def looked_out(poll: Any, for_s: float) -> Any:
        waits[-1].append(f"looks out for {for_s}")
        return wait(0.0)

    exchange._wait = noted

    async def main() -> None:
        nonlocal now_s
        with pair() as (link, scheduler):
            ear = Ear()
            async with trio.open_nursery() as served:
                served.start_soon(exchange.serve, link, ear)
                await trio.testing.wait_all_tasks_blocked()
                for now_s in at_s:  # noqa: B007 - the clock reads it
                    waits.append([])
                    scheduler.send([1])
                    exchange.turn()
                served.cancel_scope.cancel()
            assert len(ear.heard) == len(at_s)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("hdphrs.node.exchange.look_out", looked_out)
        trio.run(main)
    exchange.close()
    return waits


def test_turn_waits_for_an_answer_only_if_there_has_been_something_to_hear_just_before() -> None:
    talk_s = TALK_S / 2
    assert waits_of_turns(1.0, 1.0 + talk_s, 1.0 + 2 * talk_s, 2.0) == [
        [0.0, 0.0],
        [ANSWER_S, ANSWER_S],
        [ANSWER_S, ANSWER_S],
        [0.0, 0.0],
    ]


def test_turn_waits_for_nothing_while_trio_has_something_to_do() -> None:
    assert waits_of_turns(1.0, 1.0, alone=False) == [[0.0, 0.0], [0.0, 0.0]]


def test_turn_looks_out_for_an_answer_if_there_is_a_core_for_that() -> None:
    assert waits_of_turns(1.0, 1.0, core=True) == [[0.0, 0.0], [f"looks out for {ANSWER_S}"] * 2]


def test_where_there_is_no_epoll_links_are_heard_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hdphrs.node.exchange._poll", _Selector)
    test_descriptor_is_watched_until_who_reads_from_it_wants_no_more()
    test_link_that_is_given_up_while_it_is_served_is_left_alone()


def test_descriptor_is_watched_until_who_reads_from_it_wants_no_more() -> None:
    async def main(exchange: Exchange, nursery: trio.Nursery) -> None:
        ours, theirs = socket.socketpair()
        with ours, theirs:
            heard: list[bytes] = []

            def hear() -> bool:
                heard.append(ours.recv(1))
                return heard[-1] != b"."

            theirs.send(b"ab.c")
            await exchange.watch(ours.fileno(), hear)
            exchange.turn()
            assert heard == [b"a", b"b", b"."]

    run(main)
