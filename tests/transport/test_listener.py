"""Strangers at the port: each gets one log line and nothing else, and the cluster goes on."""

from __future__ import annotations

import logging
import os
import resource
import ssl

import pytest
import trio
from trio.testing import MockClock

import hdphrs.transport.listener as listener_module
from hdphrs.config import WIRE_VERSION
from hdphrs.errors import StartError
from hdphrs.protocol.tasks import ROOT, NodeId
from hdphrs.transport.greeting import NOTHING, Join, Resume, pack_greeting
from hdphrs.transport.streams import HANDSHAKE_S_MAX, FrameStream, Lost, dial
from hdphrs.wire.handshake import HELLO_BYTES, MAGIC
from tests.transport.support import SECRET, Cluster, Node, cluster, numbered, run, settle

ONE = NodeId(1)


def client_hello() -> bytes:
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    connection = context.wrap_bio(incoming, outgoing, server_hostname="localhost")
    with pytest.raises(ssl.SSLWantReadError):
        connection.do_handshake()
    return outgoing.read()


GARBAGE = {
    "random": os.urandom(1000),
    "http": b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "tls": client_hello(),
    "one_byte": b"x",
    "frame": b"\x00\x00\x00\x05hello",
}


async def say(port: int, data: bytes) -> bytes:
    """Say `data` to a port, and return all that it answers until it closes."""
    stream = await trio.open_tcp_stream("127.0.0.1", port)
    answer = b""
    async with stream:
        await stream.send_all(data)
        try:
            while received := await stream.receive_some():
                answer += received
        except trio.BrokenResourceError:
            pass  # it closed with some of our words unread
    return answer


async def still_works(c: Cluster, root: Node) -> None:
    assert not root.inbox.events
    one = await c.join()
    one.transport.send(ROOT, numbered(1))
    assert await root.inbox.message() == numbered(1)


@pytest.mark.parametrize("kind", GARBAGE)
def test_garbage_is_logged_in_one_line_and_the_connection_closed(kind: str, caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        async with cluster() as c:
            root = await c.start(ROOT)
            assert await say(root.port, GARBAGE[kind]) == b""
            await still_works(c, root)

    run(main)
    (record,) = caplog.records
    assert (record.name, record.levelno) == ("hdphrs.transport", logging.WARNING)
    assert record.getMessage().startswith("127.0.0.1 port ")
    assert "not an hdphrs peer" in record.getMessage()
    assert "\n" not in record.getMessage()


@pytest.mark.parametrize("words", [b"", MAGIC[:3]], ids=["nothing", "half_a_greeting"])
def test_half_open_connection_is_closed_after_the_deadline(words: bytes, caplog: pytest.LogCaptureFixture) -> None:
    clock = MockClock()

    async def main() -> None:
        async with cluster() as c:
            root = await c.start(ROOT)
            async with await trio.open_tcp_stream("127.0.0.1", root.port) as stream:
                await stream.send_all(words)
                await settle()
                assert not caplog.records
                clock.jump(HANDSHAKE_S_MAX)
                assert await stream.receive_some() == b""
            await still_works(c, root)

    run(main, clock)
    (record,) = caplog.records
    assert "not an hdphrs peer: silent" in record.getMessage()


def test_connection_that_only_looks_who_listens_leaves_no_line(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        async with cluster() as c:
            root = await c.start(ROOT)
            await (await trio.open_tcp_stream("127.0.0.1", root.port)).aclose()
            await settle()
            await still_works(c, root)

    run(main)
    assert not caplog.records


def test_node_of_the_run_that_ends_before_it_has_said_what_it_wants_leaves_no_line(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def main() -> None:
        async with cluster() as c:
            root = await c.start(ROOT)
            stream = await dial(("127.0.0.1", root.port), SECRET, None)
            stream.close()
            await settle()
            await still_works(c, root)

    run(main)
    assert not caplog.records


def test_version_differs_then_both_ends_name_both_versions(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        async with cluster() as c:
            root = await c.start(ROOT)
            theirs = MAGIC + (9).to_bytes(2, "big") + bytes(32)
            assert len(await say(root.port, theirs)) == HELLO_BYTES
            new = await c.start()
            async with trio.open_nursery() as nursery:
                (old,) = await trio.open_tcp_listeners(0, host="127.0.0.1")

                async def answer(stream: trio.SocketStream) -> None:
                    await stream.send_all(theirs)
                    await stream.receive_some()

                nursery.start_soon(trio.serve_listeners, answer, [old])
                with pytest.raises(StartError, match=rf"speaks version 9 .* this node speaks version {WIRE_VERSION}"):
                    await new.transport.join([old.socket.getsockname()], "h", 1, 1, 60.0)
                nursery.cancel_scope.cancel()

    run(main)
    (record,) = caplog.records
    ours = f"this node speaks version {WIRE_VERSION}"
    assert f"speaks version 9 of the hdphrs wire format, {ours}" in record.getMessage()


def test_strangers_that_take_up_all_the_room_keep_nobody_out(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(listener_module, "STRANGERS_MAX", 2)

    async def main() -> None:
        async with cluster() as c:
            root = await c.start(ROOT)
            strangers = [await trio.open_tcp_stream("127.0.0.1", root.port) for _ in range(4)]
            await settle()
            for stranger in strangers[:2]:
                assert await stranger.receive_some() == b""
            await still_works(c, root)
            assert await strangers[2].receive_some() == b""
            for stranger in strangers:
                await stranger.aclose()

    run(main)
    assert {record.getMessage() for record in caplog.records} == {
        "2 connections at a time do not prove themselves; the oldest is closed"
    }


def test_log_about_strangers_is_bounded_and_tells_how_many_it_left_out(caplog: pytest.LogCaptureFixture) -> None:
    clock = MockClock()

    async def main() -> None:
        async with cluster() as c:
            root = await c.start(ROOT)
            for _ in range(listener_module.COMPLAINTS_MAX + 7):
                assert await say(root.port, b"GET /") == b""
            clock.jump(listener_module.COMPLAINTS_S)
            await say(root.port, b"GET /")
            await still_works(c, root)

    run(main, clock)
    lines = [record.getMessage() for record in caplog.records]
    assert len(lines) == listener_module.COMPLAINTS_MAX + 2
    assert lines[-2] == "7 more connections of strangers were closed"


async def greet(port: int, *greetings: object) -> FrameStream:
    stream = await dial(("127.0.0.1", port), SECRET, None)
    for greeting in greetings:
        await stream.write_frame(greeting)
    return stream


@pytest.mark.parametrize(
    ("greeting", "complaint"),
    [
        (["hello"], "not a greeting"),
        ([], "not a greeting"),
        (pack_greeting(Resume(ROOT, ROOT, 1, NOTHING)), "node 0 dials"),
    ],
)
def test_nonsense_of_an_authenticated_peer_is_logged_and_closed(
    greeting: object, complaint: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        async with cluster() as c:
            root = await c.start(ROOT)
            stream = await greet(root.port, greeting)
            with pytest.raises(Lost):
                await stream.read_greeting()
            stream.close()
            await still_works(c, root)

    run(main)
    (record,) = caplog.records
    assert complaint in record.getMessage()


def test_newcomer_at_a_node_that_is_not_the_root_is_turned_away(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        async with cluster() as c:
            _, one = await c.pair()
            stream = await greet(one.port, pack_greeting(Join("h", 1, 1, 1)))
            with pytest.raises(Lost):
                await stream.read_greeting()
            stream.close()

    run(main)
    assert "not the root" in caplog.text


def test_member_that_speaks_nonsense_is_suspected_and_has_no_second_chance(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        async with cluster() as c:
            root, one = await c.pair()
            await one.transport.flush(ROOT, 1.0)
            await settle()
            liar = await greet(root.port, pack_greeting(Resume(ONE, ROOT, 1000, NOTHING)), [0, 1, ["no message"]])
            suspected = await root.inbox.next()
            assert str(suspected) == "Suspected(node=1)"
            liar.close()
            again = await greet(root.port, pack_greeting(Resume(ONE, ROOT, 1001, NOTHING)))
            with pytest.raises(Lost):
                await again.read_greeting()
            again.close()
            await settle()
            assert not root.inbox.events

    run(main)
    assert "connection closed for good" in caplog.text


def test_attempt_that_was_given_up_does_not_replace_a_later_one() -> None:
    async def main() -> None:
        async with cluster() as c:
            root, one = await c.pair()
            outdated = await greet(root.port, pack_greeting(Resume(ONE, ROOT, 0, NOTHING)))
            with pytest.raises(Lost):
                await outdated.read_greeting()
            outdated.close()
            root.transport.send(ONE, numbered(1))
            assert await one.inbox.message() == numbered(1)

    run(main)


def test_listener_out_of_descriptors_says_so_and_goes_on(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    failures = [OSError(24, "Too many open files")]
    accept = trio.SocketListener.accept

    async def exhausted(self: trio.SocketListener) -> trio.SocketStream:
        if failures:
            raise failures.pop()
        return await accept(self)

    monkeypatch.setattr(trio.SocketListener, "accept", exhausted)

    async def main() -> None:
        async with cluster() as c:
            await still_works(c, await c.start(ROOT))

    run(main, MockClock(autojump_threshold=0.01))
    allowed = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    assert f"Too many open files: this process may have {allowed}, raise `ulimit -n`" in caplog.text
