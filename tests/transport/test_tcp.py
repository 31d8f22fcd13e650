"""Nodes over loopback: joining, sending, breaking, dying, being fenced."""

from __future__ import annotations

import random
import socket
import struct
from dataclasses import replace

import pytest
import trio
from trio.testing import MockClock

import hdphrs.wire.framing
from hdphrs.errors import InternalError, MessageTooLargeError, StartError, UsageError
from hdphrs.protocol.events import Arrived, Received, Suspected
from hdphrs.protocol.messages import Code, Leaving, Message, Suspect, Term, Welcome
from hdphrs.protocol.tasks import ROOT, Member, NodeId
from hdphrs.transport import Fenced, Noted, Said, Told
from hdphrs.transport.greeting import Join, pack_greeting
from hdphrs.transport.listener import listening_socket
from hdphrs.transport.streams import HANDSHAKE_S_MAX, FrameStream, connect
from hdphrs.transport.tcp import TcpTransport
from hdphrs.wire.bulk import bulk_of
from hdphrs.wire.handshake import Role
from tests.transport.support import (
    DETECT_AFTER_S,
    HEARTBEAT_S,
    SECRET,
    Cluster,
    Node,
    Proxy,
    cluster,
    exchange,
    numbered,
    pass_time,
    run,
    settle,
)

ONE, TWO = NodeId(1), NodeId(2)


def test_newcomer_joins_then_it_receives_its_welcome_first() -> None:
    async def main() -> None:
        async with cluster() as c:
            root = await c.start(ROOT)
            new = await c.start()
            async with trio.open_nursery() as nursery:
                nursery.start_soon(new.transport.join, [("127.0.0.1", root.port)], "there", 3, 42, 5.0)
                arrived = await root.inbox.expect(Arrived)
                assert arrived == Arrived(arrived.ticket, "there", 3, ("127.0.0.1", new.port), 42)
                member = Member(ONE, "there", 3, arrived.address, 42)
                root.transport.admit(arrived.ticket, member)
                welcome = Welcome(ONE, 0, (root.member, member), ())
                root.transport.send(ONE, welcome)
                root.transport.send(ONE, Term())
            assert await new.inbox.next() == Received(ROOT, welcome)
            assert await new.inbox.next() == Received(ROOT, Term())
            new.transport.send(ROOT, Term())
            assert await root.inbox.next() == Received(ONE, Term())

    run(main)


def test_members_connect_then_messages_flow_both_ways() -> None:
    async def main() -> None:
        async with cluster() as c:
            await c.pair()
            await c.join()
            one, two = c.nodes[ONE], c.nodes[TWO]
            one.transport.connect(two.member)
            two.transport.connect(one.member)
            two.transport.connect(one.member)
            one.transport.send(TWO, numbered(1))
            two.transport.send(ONE, numbered(2))
            assert await two.inbox.next() == Received(ONE, numbered(1))
            assert await one.inbox.next() == Received(TWO, numbered(2))

    run(main)


def test_note_arrives_before_what_is_sent_after_it() -> None:
    async def main() -> None:
        async with cluster() as c:
            root, one = await c.pair()
            one.transport.note(ROOT, (1.0, 2.0, 3.0))
            one.transport.send(ROOT, numbered(1))
            one.transport.note(TWO, (1.0, 2.0, 3.0))  # nobody that it knows
            assert await root.inbox.next() == Noted(ONE, (1.0, 2.0, 3.0))
            assert await root.inbox.next() == Received(ONE, numbered(1))

    run(main)


def test_holds_may_be_nested_and_all_leaves_together_with_the_notes() -> None:
    async def main() -> None:
        async with cluster() as c:
            root, one = await c.pair()
            await settle()
            link = one.transport._peer(ROOT).link
            assert link is not None
            one.transport.hold()
            one.transport.hold()
            one.transport.send(ROOT, numbered(1))
            one.transport.release()
            one.transport.note(ROOT, (1.0, 2.0, 3.0))
            session = one.transport._peer(ROOT).session
            assert not session._kept
            one.transport.release()
            assert session._kept
            assert session._noted is None
            assert not link._something_to_write.is_set()
            assert await root.inbox.next() == Noted(ONE, (1.0, 2.0, 3.0))
            assert await root.inbox.next() == Received(ONE, numbered(1))

    run(main)


def test_a_find_arrives_where_it_is_told() -> None:
    async def main() -> None:
        async with cluster() as c:
            root, one = await c.pair()
            one.transport.tell(ROOT, b"search", 1.0, b"find")
            one.transport.tell(TWO, b"search", 1.0, b"find")  # nobody that it knows
            assert await root.inbox.next() == Told(ONE, b"search", 1.0, b"find")

    run(main)


def test_what_tasks_say_arrives_before_what_is_sent_after_it() -> None:
    async def main() -> None:
        async with cluster() as c:
            root, one = await c.pair()
            one.transport.say(ROOT, b"bundle")
            one.transport.send(ROOT, numbered(1))
            one.transport.say(TWO, b"bundle")  # nobody that it knows
            assert await root.inbox.next() == Said(ONE, 0, b"bundle")
            assert await root.inbox.next() == Received(ONE, numbered(1))

    run(main)


def test_r12_messages_for_a_node_not_known_yet_wait_until_it_is() -> None:
    async def main() -> None:
        async with cluster() as c:
            await c.pair()
            await c.join()
            one, two = c.nodes[ONE], c.nodes[TWO]
            one.transport.send(TWO, numbered(1))
            two.transport.send(ONE, numbered(2))
            two.transport.connect(one.member)
            await settle()
            assert not one.inbox.events
            one.transport.connect(two.member)
            assert await two.inbox.next() == Received(ONE, numbered(1))
            assert await one.inbox.next() == Received(TWO, numbered(2))

    run(main)


def test_member_that_dials_a_node_which_waits_to_hear_of_it_is_not_suspected() -> None:
    clock = MockClock()

    async def main() -> None:
        async with cluster() as c:
            await c.pair()
            await c.join()
            one, two = c.nodes[ONE], c.nodes[TWO]
            two.transport.connect(one.member)
            await settle()
            await pass_time(clock, 3 * DETECT_AFTER_S)
            assert not two.inbox.events
            one.transport.connect(two.member)
            two.transport.send(ONE, numbered(1))
            assert await one.inbox.next() == Received(TWO, numbered(1))

    run(main, clock)


@pytest.mark.parametrize("seed", range(3))
def test_r23_connection_breaks_in_the_middle_of_frames_then_nothing_is_lost_or_doubled(seed: int) -> None:
    async def main() -> None:
        async with cluster() as c:
            root = await c.start(ROOT)
            proxy = Proxy(root.port)
            await c.nursery.start(proxy.serve)
            one = await c.join(proxy.port)
            chance = random.Random(seed)
            proxy.break_after_bytes = lambda: chance.randint(1, 10_000)
            proxy.break_all()
            await exchange(root, one, 5000)
            assert proxy.connections > 20
            assert not root.inbox.events
            assert not one.inbox.events

    run(main)


def test_what_one_step_sends_arrives_whole_and_in_order_however_large() -> None:
    """A step may send more than the kernel takes at once: the task that writes goes on with the rest."""
    steps = [[1], [2, 3], [4, -5, 6], [-7], [8], [-9, -10, 11], [12]]

    def message(number: int) -> Message:
        return numbered(number) if number > 0 else Code(b"%d" % number, bytes(-number << 20))

    async def main() -> None:
        async with cluster() as c:
            root, one = await c.pair()
            for step in steps:
                root.transport.hold()
                for number in step:
                    root.transport.send(ONE, message(number))
                root.transport.release()
            root.transport.hold()
            root.transport.release()
            for number in (number for step in steps for number in step):
                assert await one.inbox.next() == Received(ROOT, message(number))
            await exchange(root, one, 3)

    run(main)


def test_lone_message_leaves_within_the_step_that_sends_it() -> None:
    async def main() -> None:
        async with cluster() as c:
            root, one = await c.pair()
            await settle()
            link = root.transport._peer(ONE).link
            assert link is not None
            root.transport.hold()
            root.transport.send(ONE, numbered(1))
            root.transport.send(ONE, numbered(2))
            assert not root.transport._peer(ONE).session._kept
            root.transport.release()
            assert len(root.transport._peer(ONE).session._kept) == 2
            assert not link._something_to_write.is_set()
            assert [await one.inbox.message() for _ in range(2)] == [numbered(1), numbered(2)]

    run(main)


def test_large_and_small_messages_arrive_in_order() -> None:
    async def main() -> None:
        async with cluster() as c:
            root, one = await c.pair()
            for size in (0, 10_000_000, 1, 300_000, 70_000):
                root.transport.send(ONE, Code(b"d", b"x" * size))
            for size in (0, 10_000_000, 1, 300_000, 70_000):
                assert await one.inbox.message() == Code(b"d", b"x" * size)

    run(main)


def test_message_beyond_the_limit_is_refused_and_disturbs_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hdphrs.wire.framing, "FRAME_BYTES_MAX", 1000)

    async def main() -> None:
        async with cluster() as c:
            root, one = await c.pair()
            with pytest.raises(MessageTooLargeError, match="the limit is 1,000"):
                root.transport.send(ONE, Code(b"d", b"x" * 1000))
            root.transport.send(ONE, numbered(1))
            assert await one.inbox.message() == numbered(1)

    run(main)


def test_idle_connection_is_kept_alive_by_heartbeats() -> None:
    clock = MockClock()

    async def main() -> None:
        async with cluster() as c:
            root, one = await c.pair()
            await pass_time(clock, 5 * DETECT_AFTER_S)
            assert not root.inbox.events
            assert not one.inbox.events

    run(main, clock)


def test_r10_peer_falls_silent_then_it_is_suspected_once_and_exactly_in_time() -> None:
    clock = MockClock()

    async def main() -> None:
        async with cluster() as c:
            root = await c.start(ROOT)
            proxy = Proxy(root.port)
            await c.nursery.start(proxy.serve)
            one = await c.join(proxy.port)
            one.transport.send(ROOT, numbered(0))
            await root.inbox.message()
            await settle()
            proxy.deaf.set()
            silent_since = trio.current_time()
            while not root.inbox.events:
                await pass_time(clock, HEARTBEAT_S / 4)
            assert root.inbox.events.popleft() == Suspected(ONE)
            assert trio.current_time() - silent_since == pytest.approx(DETECT_AFTER_S)
            await pass_time(clock, 2 * DETECT_AFTER_S)
            assert not root.inbox.events
            assert list(one.inbox.events) == [Suspected(ROOT)]

    run(main, clock)


class _Counting(Proxy):
    """Counts what passes."""

    passed = 0

    def overhear(self, data: bytes) -> None:
        self.passed += 1


async def _members(c: Cluster) -> tuple[Node, Node, _Counting]:
    """Two of whom neither is the root, and what stands between them."""
    await c.pair()
    await c.join()
    one, two = c.nodes[ONE], c.nodes[TWO]
    between = _Counting(one.port)
    await c.nursery.start(between.serve)
    two.transport.connect(replace(one.member, address=("127.0.0.1", between.port)))
    one.transport.connect(two.member)
    one.transport.send(TWO, numbered(0))
    assert await two.inbox.next() == Received(ONE, numbered(0))
    return one, two, between


def test_members_with_nothing_to_say_to_each_other_are_silent_after_the_last_acknowledgement() -> None:
    clock = MockClock()

    async def main() -> None:
        async with cluster() as c:
            one, two, between = await _members(c)
            await pass_time(clock, HEARTBEAT_S + HEARTBEAT_S / 2)
            assert await one.transport.flush(TWO, 0.0)  # it has been acknowledged without having been asked for
            before = between.passed
            await pass_time(clock, 5 * DETECT_AFTER_S)
            assert between.passed == before
            assert not any(node.inbox.events for node in (*c.nodes.values(), one, two))

    run(main, clock)


def test_member_that_waits_for_no_acknowledgement_minds_no_silence_and_one_that_does_suspects_in_time() -> None:
    clock = MockClock()

    async def main() -> None:
        async with cluster() as c:
            one, two, between = await _members(c)
            await pass_time(clock, 2 * HEARTBEAT_S)
            between.deaf.set()
            await pass_time(clock, 3 * DETECT_AFTER_S)
            assert not one.inbox.events
            one.transport.send(TWO, numbered(1))
            await pass_time(clock, DETECT_AFTER_S - HEARTBEAT_S)
            assert not one.inbox.events
            await pass_time(clock, HEARTBEAT_S)
            assert list(one.inbox.events) == [Suspected(TWO)]
            await pass_time(clock, 2 * DETECT_AFTER_S)
            assert list(one.inbox.events) == [Suspected(TWO)]
            assert not two.inbox.events

    run(main, clock)


def test_silence_ends_before_anybody_has_ruled_then_the_session_goes_on() -> None:
    clock = MockClock()

    async def main() -> None:
        async with cluster() as c:
            root = await c.start(ROOT)
            proxy = Proxy(root.port)
            await c.nursery.start(proxy.serve)
            one = await c.join(proxy.port)
            proxy.deaf.set()
            root.transport.send(ONE, numbered(1))
            one.transport.send(ROOT, numbered(2))
            await pass_time(clock, DETECT_AFTER_S + HEARTBEAT_S)
            assert root.inbox.events.popleft() == Suspected(ONE)
            assert one.inbox.events.popleft() == Suspected(ROOT)
            proxy.deaf = trio.Event()
            while not (root.inbox.events and one.inbox.events):
                await pass_time(clock, HEARTBEAT_S)
            assert await one.inbox.next() == Received(ROOT, numbered(1))
            assert await root.inbox.next() == Received(ONE, numbered(2))

    run(main, clock)


def test_detector_that_was_stalled_itself_accuses_nobody_and_counts_anew() -> None:
    clock = MockClock()

    async def main() -> None:
        async with cluster() as c:
            root = await c.start(ROOT)
            proxy = Proxy(root.port)
            await c.nursery.start(proxy.serve)
            await c.join(proxy.port)
            await settle()
            proxy.deaf.set()
            clock.jump(10 * DETECT_AFTER_S)
            await settle()
            await pass_time(clock, DETECT_AFTER_S - HEARTBEAT_S)
            assert not root.inbox.events
            await pass_time(clock, 2 * HEARTBEAT_S)
            assert root.inbox.events.popleft() == Suspected(ONE)

    run(main, clock)


@pytest.mark.parametrize("dead", [ROOT, ONE], ids=["listener", "dialer"])
def test_dead_process_is_suspected_at_once_because_its_port_refuses(dead: NodeId) -> None:
    async def main() -> None:
        async with cluster() as c:
            root, one = await c.pair()
            survivor = one if dead == ROOT else root
            await c.nodes[dead].transport.aclose()
            with trio.fail_after(0.5):
                assert await survivor.inbox.next() == Suspected(dead)

    run(main)


def test_member_that_was_dead_when_we_heard_of_it_is_suspected_at_once() -> None:
    async def main() -> None:
        async with cluster() as c:
            await c.pair()
            await c.join()
            one, two = c.nodes[ONE], c.nodes[TWO]
            await one.transport.aclose()
            two.transport.connect(one.member)
            with trio.fail_after(0.5):
                assert await two.inbox.next() == Suspected(ONE)

    run(main)


def test_port_that_belongs_to_another_node_now_tells_that_the_member_is_gone() -> None:
    async def main() -> None:
        async with cluster() as c:
            await c.pair()
            await c.join()
            await c.join()
            two, three = c.nodes[TWO], c.nodes[NodeId(3)]
            three.transport.connect(Member(ONE, "localhost", 1, two.member.address, 1))
            with trio.fail_after(0.5):
                assert await three.inbox.next() == Suspected(ONE)

    run(main)


@pytest.mark.parametrize("ended", [True, False])
def test_last_words_of_the_dead_are_heard_before_the_accusation_that_has_arrived_too(ended: bool) -> None:
    """A root that had no turn for a while finds both, and reads its connections in any order."""

    async def main() -> None:
        async with cluster() as c:
            root, one = await c.pair()
            for node in map(NodeId, range(2, 12)):
                dying = await c.join()
                await settle()
                words = [numbered(number) for number in range(3)]
                for sender, messages in ((dying, words), (one, [Suspect(node)])):
                    sender.transport.hold()
                    for message in messages:
                        sender.transport.send(ROOT, message)
                    sender.transport.release()
                if ended:
                    dying.transport.fence(ROOT)
                assert [await root.inbox.next() for _ in words] == [Received(node, word) for word in words]
                assert await root.inbox.next() == Received(ONE, Suspect(node))
                root.transport.fence(node)

    run(main)


def test_accusation_of_a_node_that_talks_on_is_taken_in_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        async with cluster() as c:
            root, one = await c.pair()
            await c.join()
            monkeypatch.setattr(FrameStream, "has_unread", True)
            one.transport.send(ROOT, Suspect(TWO))
            one.transport.send(ROOT, Suspect(NodeId(3)))  # nobody that it knows
            assert await root.inbox.next() == Received(ONE, Suspect(TWO))
            assert await root.inbox.next() == Received(ONE, Suspect(NodeId(3)))

    run(main)


def test_fenced_peer_is_told_so_once_and_never_heard_again() -> None:
    async def main() -> None:
        async with cluster() as c:
            root, one = await c.pair()
            root.transport.fence(ONE)
            root.transport.fence(ONE)
            one.transport.send(ROOT, numbered(1))
            root.transport.send(ONE, numbered(2))
            root.transport.connect(one.member)
            assert await one.inbox.next() == Fenced(ROOT)
            await settle()
            assert not root.inbox.events
            assert not one.inbox.events

    run(main)


def test_fenced_peer_that_was_cut_off_is_told_when_it_returns() -> None:
    async def main() -> None:
        async with cluster() as c:
            root = await c.start(ROOT)
            proxy = Proxy(root.port)
            await c.nursery.start(proxy.serve)
            one = await c.join(proxy.port)
            proxy.deaf.set()
            root.transport.fence(ONE)
            await settle()
            proxy.deaf = trio.Event()
            proxy.break_all()
            assert await one.inbox.next() == Fenced(ROOT)

    run(main)


def test_fenced_node_rejoins_as_a_new_one() -> None:
    async def main() -> None:
        async with cluster() as c:
            root, one = await c.pair()
            root.transport.fence(ONE)
            await one.inbox.expect(Fenced)
            await one.transport.aclose()
            again = await c.join()
            assert again.member.node == TWO
            root.transport.send(TWO, numbered(1))
            assert await again.inbox.message() == numbered(1)

    run(main)


def test_node_that_is_about_to_end_dials_only_the_root() -> None:
    async def main() -> None:
        async with cluster() as c:
            root = await c.start(ROOT)
            to_root = Proxy(root.port)
            await c.nursery.start(to_root.serve)
            one = await c.join()
            two = await c.join(to_root.port)
            to_one = Proxy(one.port)
            await c.nursery.start(to_one.serve)
            one.transport.connect(two.member)
            two.transport.connect(replace(one.member, address=("127.0.0.1", to_one.port)))
            await exchange(one, two, 1)
            two.transport.retire()
            to_one.break_all()
            to_root.break_all()
            await exchange(root, two, 1)
            assert (to_root.connections, to_one.connections) == (2, 1)

    run(main)


def test_flush_returns_when_the_peer_has_everything() -> None:
    async def main() -> None:
        async with cluster() as c:
            root, one = await c.pair()
            for number in range(1000):
                one.transport.send(ROOT, numbered(number))
            assert await one.transport.flush(ROOT, 5.0)
            assert len(root.inbox.events) == 1000
            assert await one.transport.flush(ROOT, 5.0)

    run(main)


def test_flush_to_a_dead_or_unknown_peer_gives_up() -> None:
    clock = MockClock(autojump_threshold=0.01)

    async def main() -> None:
        async with cluster() as c:
            root, one = await c.pair()
            await root.transport.aclose()
            one.transport.send(ROOT, numbered(1))
            assert not await one.transport.flush(ROOT, 1.0)
            assert not await one.transport.flush(TWO, 1.0)

    run(main, clock)


def test_join_where_nobody_listens_fails_at_the_deadline_and_says_where() -> None:
    clock = MockClock(autojump_threshold=0.01)

    async def main() -> None:
        free = listening_socket("127.0.0.1")
        port = free.getsockname()[1]
        free.close()
        async with cluster() as c:
            new = await c.start()
            with pytest.raises(StartError, match=rf"within 7 seconds: 127\.0\.0\.1:{port}: connection refused"):
                await new.transport.join([("127.0.0.1", port)], "h", 1, 1, 7.0)
            assert trio.current_time() >= 7.0

    run(main, clock)


def test_join_tries_every_address_until_one_answers() -> None:
    async def main() -> None:
        free = listening_socket("127.0.0.1")
        port = free.getsockname()[1]
        free.close()
        async with cluster() as c:
            root = await c.start(ROOT)
            new = await c.start()
            where = [("127.0.0.1", port), ("no.such.host.invalid", 1), ("127.0.0.1", root.port)]
            async with trio.open_nursery() as nursery:
                nursery.start_soon(new.transport.join, where, "h", 1, 1, 5.0)
                arrived = await root.inbox.expect(Arrived)
                root.transport.admit(arrived.ticket, Member(ONE, "h", 1, arrived.address, 1))

    run(main)


def test_join_with_another_secret_fails_at_once_with_a_clear_line(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        async with cluster() as c:
            root = await c.start(ROOT)
            new = await c.start(secret=b"of another run")
            with pytest.raises(StartError, match="another run"):
                await new.transport.join([("127.0.0.1", root.port)], "h", 1, 1, 60.0)
            await settle()
            assert not root.inbox.events

    run(main)
    (record,) = caplog.records
    assert "does not know the secret of this one" in record.getMessage()
    assert SECRET.decode() not in record.getMessage()


def test_newcomer_whom_the_root_does_not_answer_tries_again() -> None:
    """The connection stands, and nothing comes over it: as when the network is gone since the greeting."""
    clock = MockClock()

    async def main() -> None:
        async with cluster() as c:
            root = await c.start(ROOT)
            new = await c.start()
            async with trio.open_nursery() as nursery:
                nursery.start_soon(new.transport.join, [("127.0.0.1", root.port)], "h", 1, 1, 60.0)
                first = await root.inbox.expect(Arrived)
                while not root.inbox.events:
                    await pass_time(clock, HEARTBEAT_S)
                assert trio.current_time() < 3 * HANDSHAKE_S_MAX
                second = await root.inbox.expect(Arrived)
                assert second.ticket != first.ticket
                root.transport.admit(second.ticket, Member(ONE, "h", 1, second.address, 1))

    run(main, clock)


def test_newcomer_that_leaves_before_it_is_admitted_is_suspected() -> None:
    async def main() -> None:
        async with cluster() as c:
            root = await c.start(ROOT)
            new = await c.start()
            async with trio.open_nursery() as nursery:
                nursery.start_soon(new.transport.join, [("127.0.0.1", root.port)], "h", 1, 1, 5.0)
                arrived = await root.inbox.expect(Arrived)
                nursery.cancel_scope.cancel()
            await new.transport.aclose()
            root.transport.admit(arrived.ticket, Member(ONE, "h", 1, arrived.address, 1))
            assert await root.inbox.next() == Suspected(ONE)

    run(main)


def test_connection_of_a_newcomer_breaks_while_it_is_admitted_then_it_is_suspected_at_once() -> None:
    async def main() -> None:
        async with cluster() as c:
            root = await c.start(ROOT)
            other = await c.start()
            raw = await connect(("127.0.0.1", root.port))
            stream = FrameStream(raw, None, Role.DIALER)
            await stream.authenticate(SECRET)
            await stream.write_frame(pack_greeting(Join("h", 1, 1, other.port)))
            arrived = await root.inbox.expect(Arrived)
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            stream.close()
            await settle()
            root.transport.admit(arrived.ticket, Member(ONE, "h", 1, arrived.address, 1))
            with trio.fail_after(0.5):
                assert await root.inbox.next() == Suspected(ONE)

    run(main)


def test_port_beyond_loopback_without_tls_is_refused() -> None:
    sock = listening_socket("0.0.0.0")
    try:
        with pytest.raises(UsageError, match="only with mutual TLS"):
            TcpTransport(sock, SECRET, lambda _: None)
    finally:
        sock.close()


def test_node_sends_nothing_to_itself() -> None:
    async def main() -> None:
        async with cluster() as c:
            root = await c.start(ROOT)
            with pytest.raises(InternalError, match="itself"):
                root.transport.send(ROOT, Term())

    run(main)


def test_transport_without_a_socket_serves_and_closes() -> None:
    async def main() -> None:
        async with trio.open_nursery() as nursery:
            transport = TcpTransport(None, SECRET, lambda _: None, node=ROOT)
            await nursery.start(transport.serve)
            await transport.aclose()
            await transport.aclose()

    run(main)


def test_transport_closed_before_it_served_leaves_no_socket() -> None:
    async def main() -> None:
        sock = listening_socket("127.0.0.1")
        await TcpTransport(sock, SECRET, lambda _: None).aclose()
        assert sock.fileno() == -1

    run(main)


def test_address_that_cannot_be_listened_on_is_a_usage_error() -> None:
    with pytest.raises(UsageError, match=r"cannot listen on 192\.0\.2\.1"):
        listening_socket("192.0.2.1")


def test_inbox_that_raises_ends_the_transport() -> None:
    def broken(event: object) -> None:
        raise ZeroDivisionError

    async def main() -> None:
        async with trio.open_nursery() as nursery:
            transport = TcpTransport(listening_socket("127.0.0.1"), SECRET, broken, node=ROOT)
            await nursery.start(transport.serve)
            c = Cluster(nursery)
            new = await c.start()
            await new.transport.join([("127.0.0.1", transport.port)], "h", 1, 1, 5.0)

    with pytest.RaisesGroup(pytest.RaisesExc(ZeroDivisionError), flatten_subgroups=True):
        run(main)


def test_large_payloads_arrive_whole_and_in_order_though_the_connection_breaks_within_them() -> None:
    data = random.Random(2).randbytes(1 << 20) * 8

    async def main() -> None:
        async with cluster() as c:
            root, one = await c.pair()
            for number in range(3):
                root.transport.send(ONE, Code(b"%d" % number, bulk_of(data)))
                root.transport.send(ONE, Leaving(number))
                await trio.sleep(0)
                root.transport._peers[ONE].drop_link()
            for number in range(3):
                code = await one.inbox.message()
                assert isinstance(code, Code)
                assert code.digest == b"%d" % number
                assert bytes(code.data) == data
                assert await one.inbox.message() == Leaving(number)

    run(main)


@pytest.mark.parametrize("sender", [ROOT, ONE])
def test_large_payload_arrives_over_connections_each_of_which_breaks_within_it(sender: NodeId) -> None:
    data = random.Random(3).randbytes(1 << 20) * 8

    async def main() -> None:
        async with cluster() as c:
            root = await c.start(ROOT)
            proxy = _Counting(root.port)
            await c.nursery.start(proxy.serve)
            await c.join(proxy.port)
            proxy.break_after_bytes = lambda: 1_200_000
            proxy.break_all()
            receiver = ONE if sender == ROOT else ROOT
            c.nodes[sender].transport.send(receiver, Code(b"large", bulk_of(data)))
            code = await c.nodes[receiver].inbox.message()
            assert isinstance(code, Code)
            assert bytes(code.data) == data
            assert 7 <= proxy.connections <= 25
            assert not c.nodes[receiver].inbox.events

    run(main)


def test_word_of_a_peer_that_was_on_its_way_when_it_was_fenced_does_not_have_it_watched_again() -> None:
    """Its answer to a dialer, say: the task that has waited for it is told of its end only when it waits again."""
    clock = MockClock()

    async def main() -> None:
        async with cluster() as c:
            _, one = await c.pair()
            peer = one.transport._peer(ROOT)
            one.transport.fence(ROOT)
            peer.hear()
            await pass_time(clock, 3 * DETECT_AFTER_S)
            assert not any(isinstance(event, Suspected) for event in one.inbox.events)
            assert one.transport._detector.deadline() == float("inf")

    run(main, clock)


@pytest.mark.parametrize("sender", [ROOT, ONE])
def test_large_payload_goes_on_where_the_connection_broke_with_which_a_node_has_joined(sender: NodeId) -> None:
    data = random.Random(3).randbytes(1 << 20) * 8

    async def main() -> None:
        async with cluster() as c:
            await c.pair()
            receiver = ONE if sender == ROOT else ROOT
            session = c.nodes[receiver].transport._peer(sender).session
            c.nodes[sender].transport.send(receiver, Code(b"large", bulk_of(data)))
            while session.unfinished.incoming_bytes < len(data) // 4:
                await trio.lowlevel.checkpoint()
            c.nodes[receiver].transport._peer(sender).drop_link()
            assert len(data) // 4 <= session.progress.bulk_bytes < len(data)
            code = await c.nodes[receiver].inbox.message()
            assert isinstance(code, Code)
            assert bytes(code.data) == data
            assert not session.unfinished

    run(main)


def test_fish_is_answered_while_a_large_payload_is_on_its_way() -> None:
    async def main() -> None:
        async with cluster() as c:
            root, one = await c.pair()
            await settle()
            root.transport.send(ONE, Code(b"large", bulk_of(bytes(100 << 20))))
            root.transport.send(ONE, Leaving(1))
            for number in range(10):
                root.transport.send(ONE, numbered(number))
                assert await one.inbox.message() == numbered(number)
                one.transport.send(ROOT, numbered(number))
                assert await root.inbox.message() == numbered(number)
            assert root.transport._peer(ONE).session._late
            assert isinstance(await one.inbox.message(), Code)
            assert await one.inbox.message() == Leaving(1)

    run(main)
