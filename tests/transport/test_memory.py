"""The network in virtual time keeps the promises of the real one."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
import trio
from trio.testing import MockClock

from hdphrs.errors import InternalError, StartError
from hdphrs.protocol.events import Arrived, Received, Suspected
from hdphrs.protocol.tasks import ROOT, Member, NodeId
from hdphrs.transport import Fenced, Transport
from hdphrs.transport.memory import MemoryNetwork, MemoryTransport
from hdphrs.transport.tcp import TcpTransport
from tests.transport.support import DETECT_AFTER_S, Inbox, numbered, run

ONE, TWO = NodeId(1), NodeId(2)
LATENCY_S = 0.5


def satisfy(tcp: TcpTransport, memory: MemoryTransport) -> list[Transport]:
    """mypy checks here that both are transports."""
    return [tcp, memory]


class Cluster:
    """The root and two others, all connected."""

    def __init__(self, nursery: trio.Nursery) -> None:
        self.nursery = nursery
        self.network = MemoryNetwork(latency_s=LATENCY_S, detect_after_s=DETECT_AFTER_S)
        self.inboxes: list[Inbox] = []
        self.nodes: list[MemoryTransport] = []

    async def start(self) -> None:
        await self.nursery.start(self.network.serve)
        await self.add(self.network.transport(self.new_inbox(), node=ROOT))
        for node in (ONE, TWO):
            await self.join(node)
        self.nodes[ONE].connect(member(TWO))
        self.nodes[TWO].connect(member(ONE))

    async def add(self, transport: MemoryTransport) -> None:
        self.nodes.append(transport)
        await self.nursery.start(transport.serve)

    def new_inbox(self) -> Inbox:
        self.inboxes.append(Inbox())
        return self.inboxes[-1]

    async def join(self, node: NodeId) -> None:
        new = self.network.transport(self.new_inbox())
        await self.add(new)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(new.join, [("memory", 99), ("memory", self.nodes[ROOT].port)], "h", 2, 7, 10.0)
            arrived = await self.inboxes[ROOT].expect(Arrived)
            self.nodes[ROOT].admit(arrived.ticket, Member(node, "h", 2, arrived.address, 7))


def member(node: NodeId) -> Member:
    return Member(node, "h", 2, ("memory", node + 1), 7)


@asynccontextmanager
async def cluster() -> AsyncIterator[Cluster]:
    async with trio.open_nursery() as nursery:
        c = Cluster(nursery)
        await c.start()
        yield c
        nursery.cancel_scope.cancel()


def virtually() -> MockClock:
    return MockClock(autojump_threshold=0)


def test_messages_take_the_latency_of_their_pair_and_stay_in_order() -> None:
    async def main() -> None:
        async with cluster() as c:
            start = trio.current_time()
            c.network.set_latency(ROOT, ONE, 7.0)
            c.nodes[ROOT].send(ONE, numbered(1))
            c.nodes[ROOT].send(TWO, numbered(9))
            c.network.set_latency(ROOT, ONE, 1.0)
            c.nodes[ROOT].send(ONE, numbered(2))
            assert await c.inboxes[TWO].next() == Received(ROOT, numbered(9))
            assert trio.current_time() == pytest.approx(start + LATENCY_S)
            assert await c.inboxes[ONE].next() == Received(ROOT, numbered(1))
            assert await c.inboxes[ONE].next() == Received(ROOT, numbered(2))
            assert trio.current_time() == pytest.approx(start + 7.0)

    run(main, virtually())


def test_killed_node_is_suspected_by_all_after_what_it_sent_has_arrived() -> None:
    async def main() -> None:
        async with cluster() as c:
            c.nodes[ONE].send(ROOT, numbered(1))
            c.network.kill(ONE)
            c.nodes[ONE].send(ROOT, numbered(2))
            c.nodes[TWO].send(ONE, numbered(3))
            await trio.sleep(10 * DETECT_AFTER_S)
            assert list(c.inboxes[ROOT].events) == [Received(ONE, numbered(1)), Suspected(ONE)]
            assert list(c.inboxes[TWO].events) == [Suspected(ONE)]
            assert not c.inboxes[ONE].events

    run(main, virtually())


def test_cut_is_noticed_by_both_after_the_time_of_detection_and_loses_nothing_when_it_heals() -> None:
    async def main() -> None:
        async with cluster() as c:
            c.nodes[ROOT].send(ONE, numbered(1))
            c.network.cut(ROOT, ONE)
            c.nodes[ROOT].send(ONE, numbered(2))
            start = trio.current_time()
            assert await c.inboxes[ONE].next() == Suspected(ROOT)
            assert trio.current_time() == pytest.approx(start + DETECT_AFTER_S)
            assert await c.inboxes[ROOT].next() == Suspected(ONE)
            await trio.sleep(10 * DETECT_AFTER_S)
            c.network.heal(ROOT, ONE)
            c.nodes[ROOT].send(ONE, numbered(3))
            assert [await c.inboxes[ONE].message() for _ in range(3)] == [numbered(n) for n in (1, 2, 3)]
            assert not c.inboxes[TWO].events

    run(main, virtually())


def test_cut_that_heals_in_time_is_not_noticed() -> None:
    async def main() -> None:
        async with cluster() as c:
            c.network.cut(ROOT, ONE)
            await trio.sleep(DETECT_AFTER_S / 2)
            c.network.heal(ROOT, ONE)
            await trio.sleep(10 * DETECT_AFTER_S)
            assert not c.inboxes[ROOT].events
            assert not c.inboxes[ONE].events

    run(main, virtually())


def test_one_way_cut_is_noticed_by_the_end_that_hears_nothing() -> None:
    async def main() -> None:
        async with cluster() as c:
            c.network.cut_one_way(ONE, ROOT)
            c.nodes[ONE].send(ROOT, numbered(1))
            c.nodes[ROOT].send(ONE, numbered(2))
            await trio.sleep(2 * DETECT_AFTER_S)
            assert list(c.inboxes[ROOT].events) == [Suspected(ONE)]
            assert list(c.inboxes[ONE].events) == [Received(ROOT, numbered(2))]

    run(main, virtually())


def test_killed_node_behind_a_cut_is_noticed_by_its_silence() -> None:
    async def main() -> None:
        async with cluster() as c:
            c.network.cut(ROOT, ONE)
            c.network.kill(ONE)
            start = trio.current_time()
            assert await c.inboxes[TWO].next() == Suspected(ONE)
            assert trio.current_time() == pytest.approx(start + LATENCY_S)
            assert await c.inboxes[ROOT].next() == Suspected(ONE)
            assert trio.current_time() == pytest.approx(start + DETECT_AFTER_S)
            await trio.sleep(10 * DETECT_AFTER_S)
            assert not c.inboxes[ROOT].events

    run(main, virtually())


def test_messages_for_a_node_not_known_yet_wait_until_both_know_each_other() -> None:
    async def main() -> None:
        async with cluster() as c:
            await c.join(NodeId(3))
            three = c.nodes[3]
            three.send(ONE, numbered(1))
            three.connect(member(ONE))
            await trio.sleep(DETECT_AFTER_S)
            assert not c.inboxes[ONE].events
            c.nodes[ONE].connect(member(NodeId(3)))
            assert await c.inboxes[ONE].next() == Received(NodeId(3), numbered(1))

    run(main, virtually())


def test_member_that_was_dead_when_we_heard_of_it_is_suspected() -> None:
    async def main() -> None:
        async with cluster() as c:
            await c.join(NodeId(3))
            c.network.kill(ONE)
            c.nodes[3].connect(member(ONE))
            assert await c.inboxes[3].next() == Suspected(ONE)

    run(main, virtually())


def test_fenced_node_is_told_so_once_it_can_be_reached() -> None:
    async def main() -> None:
        async with cluster() as c:
            c.network.cut(ROOT, ONE)
            c.nodes[ROOT].fence(ONE)
            c.nodes[ROOT].connect(member(ONE))
            c.nodes[ROOT].send(ONE, numbered(1))
            c.nodes[ONE].send(ROOT, numbered(2))
            assert await c.inboxes[ONE].next() == Suspected(ROOT)
            await trio.sleep(10 * DETECT_AFTER_S)
            c.network.heal(ROOT, ONE)
            assert await c.inboxes[ONE].next() == Fenced(ROOT)
            c.nodes[TWO].fence(ONE)
            await trio.sleep(10 * DETECT_AFTER_S)
            assert not c.inboxes[ROOT].events
            assert not c.inboxes[ONE].events

    run(main, virtually())


def test_flush_returns_when_the_peer_has_everything_or_at_the_deadline() -> None:
    async def main() -> None:
        async with cluster() as c:
            c.nodes[ONE].send(ROOT, numbered(1))
            assert await c.nodes[ONE].flush(ROOT, 5.0)
            assert await c.inboxes[ROOT].message() == numbered(1)
            c.network.cut(ROOT, ONE)
            c.nodes[ONE].send(ROOT, numbered(1))
            assert not await c.nodes[ONE].flush(ROOT, 1.0)

    run(main, virtually())


def test_join_without_a_root_fails_at_the_deadline() -> None:
    async def main() -> None:
        new = MemoryNetwork().transport(Inbox())
        with pytest.raises(InternalError, match="no id"):
            new.send(ROOT, numbered(1))
        with pytest.raises(StartError, match="within 3 seconds"):
            await new.join([("memory", 42)], "h", 1, 1, 3.0)

    run(main, virtually())


def test_closed_transport_is_a_dead_node_to_the_others() -> None:
    async def main() -> None:
        async with cluster() as c:
            await c.nodes[ONE].aclose()
            await c.nodes[ONE].aclose()
            assert await c.inboxes[ROOT].next() == Suspected(ONE)
            with pytest.raises(InternalError, match="itself"):
                c.nodes[ROOT].send(ROOT, numbered(1))

    run(main, virtually())
