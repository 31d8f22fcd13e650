"""The moment in which one connection takes over from another."""

from __future__ import annotations

from typing import Any

import pytest
import trio

from hdphrs.errors import ProtocolError
from hdphrs.protocol.messages import DeadNode, Message, Suspect
from hdphrs.protocol.tasks import NodeId
from hdphrs.transport.greeting import NOTHING
from hdphrs.transport.interface import watch
from hdphrs.transport.link import Link
from hdphrs.transport.session import Session
from hdphrs.transport.streams import FrameStream, Lost
from hdphrs.wire.codec import pack_message
from tests.transport.support import numbered, run, settle


class SlowStream(FrameStream):
    """Completes what is under way even though it has been cancelled, as a kernel may."""

    def __init__(self) -> None:
        self.release = trio.Event()
        self.frames: list[Any] = []

    @property
    def amid(self) -> bool:
        return False

    @property
    def descriptor(self) -> int | None:
        return None

    async def read(self) -> tuple[list[Any], int]:
        with trio.CancelScope(shield=True):
            await self.release.wait()
        if not self.frames:
            raise Lost("test")
        return [self.frames.pop()], 1

    def seal(self, data: bytes) -> bytes:
        return data

    async def write(self, data: bytes) -> None:
        with trio.CancelScope(shield=True):
            await self.release.wait()

    def let_go(self) -> None:
        pass

    def close(self) -> None:
        pass


async def nobody(node: NodeId) -> None:
    raise AssertionError(f"node {node} is heard out")


def test_closed_link_that_was_writing_leaves_the_rest_to_its_successor() -> None:
    async def main() -> None:
        session, stream = Session(), SlowStream()
        link = Link(stream, session, lambda _: None, lambda: None, nobody, watch, set())
        session.push([1])
        async with trio.open_nursery() as nursery:
            nursery.start_soon(link.run)
            await settle()
            link.close()
            session.resume(NOTHING)
            session.push([2])
            link.wake()
            stream.release.set()
        assert session.batch().count(b"\x93") == 2

    run(main)


def test_closed_link_that_was_about_to_write_leaves_everything_to_its_successor() -> None:
    async def main() -> None:
        session, stream = Session(), SlowStream()
        link = Link(stream, session, lambda _: None, lambda: None, nobody, watch, set())
        async with trio.open_nursery() as nursery:
            nursery.start_soon(link.run)
            await settle()
            link.wake()  # too late to be cancelled: the writer is on its way already
            link.close()
            session.resume(NOTHING)
            session.push([1])
            stream.release.set()
        assert session.batch()

    run(main)


def test_closed_link_that_was_reading_delivers_nothing_any_more() -> None:
    async def main() -> None:
        session, stream = Session(), SlowStream()
        delivered: list[Message] = []
        link = Link(stream, session, delivered.append, lambda: None, nobody, watch, set())
        stream.frames = [[0, 1, pack_message(numbered(1))]]
        async with trio.open_nursery() as nursery:
            nursery.start_soon(link.run)
            await settle()
            link.close()
            stream.release.set()
        assert not delivered
        assert session.received == 0

    run(main)


def test_closed_link_that_was_reading_makes_nothing_of_what_it_cannot_read_any_more() -> None:
    """The decoder has lost its place in a payload with the link, and the peer is not to blame."""

    class Displaced(SlowStream):
        async def read(self) -> tuple[list[Any], int]:
            await super().read()
            raise ProtocolError("a frame of 1,128,413,714 bytes")

    async def main() -> None:
        stream = Displaced()
        stream.frames = [[]]
        link = Link(stream, Session(), lambda _: None, lambda: None, nobody, watch, set())
        endings = []
        async with trio.open_nursery() as nursery:

            @nursery.start_soon
            async def keep() -> None:
                endings.append(await link.run())

            await settle()
            link.close()
            stream.release.set()
        assert [type(ending) for ending in endings] == [Lost]

    run(main)


def test_driver_that_fences_a_peer_because_of_a_message_hears_nothing_after_it() -> None:
    async def main() -> None:
        session, stream = Session(), SlowStream()
        delivered: list[Message] = []

        def deliver(message: Message) -> None:
            delivered.append(message)
            link.close()

        link = Link(stream, session, deliver, lambda: None, nobody, watch, set())
        stream.frames = [[0, 2, pack_message(numbered(2))], [0, 1, pack_message(numbered(1))]]
        stream.release.set()
        await link.run()
        assert delivered == [numbered(1)]

    run(main)


@pytest.mark.parametrize("accusation", [Suspect(NodeId(2)), DeadNode(NodeId(2), 1)])
def test_who_is_said_to_be_dead_is_heard_out_before_that_is_taken_in(accusation: Message) -> None:
    async def main() -> None:
        session, stream = Session(), SlowStream()
        delivered: list[object] = []

        async def hear_out(node: NodeId) -> None:
            assert session.received == 1
            delivered.append(node)

        link = Link(stream, session, delivered.append, lambda: None, hear_out, watch, set())
        stream.frames = [[0, 2, pack_message(accusation)], [0, 1, pack_message(numbered(1))]]
        stream.release.set()
        await link.run()
        assert delivered == [numbered(1), 2, accusation]

    run(main)


def test_accusation_on_a_link_that_closes_while_the_accused_is_heard_out_is_left_to_its_successor() -> None:
    async def main() -> None:
        session, stream = Session(), SlowStream()
        delivered: list[Message] = []

        async def hear_out(node: NodeId) -> None:
            link.close()

        link = Link(stream, session, delivered.append, lambda: None, hear_out, watch, set())
        stream.frames = [[0, 1, pack_message(Suspect(NodeId(2)))]]
        stream.release.set()
        await link.run()
        assert not delivered
        assert session.received == 0

    run(main)
