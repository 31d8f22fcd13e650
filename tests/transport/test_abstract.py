"""Nodes that listen on no port: what a transport promises holds there too, and other users are not even spoken to."""

from __future__ import annotations

import logging
import os
import random
import select
import socket
import sys
from dataclasses import replace

import pytest
import trio
from trio.testing import MockClock

from hdphrs.protocol.events import Suspected
from hdphrs.protocol.messages import Code, Leaving
from hdphrs.protocol.tasks import ROOT, NodeId
from hdphrs.transport import Fenced
from hdphrs.transport.listener import is_loopback, listening_socket
from hdphrs.transport.streams import HANDSHAKE_S_MAX, Lost, connect, dial
from hdphrs.wire import sockets
from hdphrs.wire.bulk import bulk_of
from hdphrs.wire.sockets import name_of, new_host
from tests.transport.support import SECRET, cluster, exchange, numbered, run, settle
from tests.transport.users import NOBODY, as_another_user, needs_root

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="has no abstract names")

ONE, TWO = NodeId(1), NodeId(2)


def host() -> str:
    made = new_host()
    assert made is not None
    return made


def test_members_exchange_messages_and_go_on_after_every_break() -> None:
    async def main() -> None:
        async with cluster(host=host()) as c:
            root, one = await c.pair()
            two = await c.join()
            one.transport.connect(two.member)
            two.transport.connect(one.member)
            for _ in range(5):
                await exchange(root, one, 200)
                await exchange(one, two, 200)
                root.transport._peer(ONE).drop_link()
                two.transport._peer(ONE).drop_link()
            assert one.transport._sock is not None
            assert is_loopback(one.transport._sock)

    run(main)


def test_large_payloads_arrive_whole_though_the_connection_breaks_within_them() -> None:
    data = random.Random(2).randbytes(1 << 20) * 8

    async def main() -> None:
        async with cluster(host=host()) as c:
            root, one = await c.pair()
            for number in range(3):
                root.transport.send(ONE, Code(b"%d" % number, bulk_of(data)))
                root.transport.send(ONE, Leaving(number))
                await trio.sleep(0)
                root.transport._peers[ONE].drop_link()
            for number in range(3):
                code = await one.inbox.message()
                assert isinstance(code, Code)
                assert bytes(code.data) == data
                assert await one.inbox.message() == Leaving(number)

    run(main)


def test_what_travels_is_not_sealed_for_the_kernel_vouches_for_both_ends() -> None:
    async def main() -> None:
        async with cluster(host=host()) as c:
            root = await c.start(ROOT)
            stream = await dial(root.address, SECRET, None)
            assert stream.seal(b"frames") == b"frames"
            stream.close()

    run(main)


def test_killed_peer_is_suspected_at_once_by_both_sides() -> None:
    async def main() -> None:
        async with cluster(host=host()) as c:
            root, one = await c.pair()
            two = await c.join()
            one.transport.connect(two.member)
            two.transport.connect(one.member)
            await exchange(one, two, 1)
            await one.transport.aclose()
            with trio.fail_after(1):
                assert await root.inbox.next() == Suspected(ONE)
                assert await two.inbox.next() == Suspected(ONE)

    run(main)


def test_fenced_peer_is_told() -> None:
    async def main() -> None:
        async with cluster(host=host()) as c:
            root, one = await c.pair()
            root.transport.fence(ONE)
            await one.inbox.expect(Fenced)

    run(main)


def test_more_dialers_at_once_than_the_system_lets_wait_all_get_in() -> None:
    """Where a queue is full, the system says so at once, and does not have dialers wait as on a port."""

    async def main() -> None:
        async with cluster(host=host()) as c:
            with sockets.listen_abstract(c.host, 0) as full:
                address = sockets.address_of(full)
                near = [socket.socket(socket.AF_UNIX) for _ in range(3)]
                lost = None
                for each in near:
                    each.setblocking(False)
                    try:
                        each.connect(name_of(address))
                    except BlockingIOError as error:
                        lost = error
                assert lost is not None
                with pytest.raises(Lost) as caught:
                    await connect(address)
                assert not caught.value.refused
                for each in near:
                    each.close()

    run(main)


async def say(address: tuple[str, int], data: bytes) -> bytes:
    stream = await trio.open_unix_socket(name_of(address))
    answer = b""
    async with stream:
        try:
            await stream.send_all(data)
            while received := await stream.receive_some():
                answer += received
        except trio.BrokenResourceError:
            pass  # it closed before we had said all, or with some of that unread
    return answer


def test_garbage_is_logged_in_one_line_that_names_the_process(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        async with cluster(host=host()) as c:
            root = await c.start(ROOT)
            assert await say(root.address, b"GET / HTTP/1.1\r\n\r\n") == b""
            await exchange(root, await c.join(), 1)

    run(main)
    (record,) = caplog.records
    line = f"process {os.getpid()} of this host: not an hdphrs peer: it does not begin with our greeting"
    assert record.getMessage() == f"{line}; connection closed"


def test_silence_is_closed_after_the_deadline(caplog: pytest.LogCaptureFixture) -> None:
    clock = MockClock()

    async def main() -> None:
        async with cluster(host=host()) as c:
            root = await c.start(ROOT)
            async with await trio.open_unix_socket(name_of(root.address)) as stream:
                await settle()
                clock.jump(HANDSHAKE_S_MAX)
                assert await stream.receive_some() == b""

    run(main, clock)
    assert f"process {os.getpid()} of this host: not an hdphrs peer: silent" in caplog.text


def test_dialer_of_another_user_hears_nothing_and_is_closed_with_one_line(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    me = os.geteuid()

    async def main() -> None:
        async with cluster(host=host()) as c:
            root = await c.start(ROOT)
            monkeypatch.setattr(os, "geteuid", lambda: me + 1)
            assert await say(root.address, b"\0hdphrs\n") == b""
            monkeypatch.undo()
            await exchange(root, await c.join(), 1)

    run(main)
    (record,) = caplog.records
    line = f"process {os.getpid()} of this host: it belongs to user {me}; connection closed"
    assert record.getMessage() == line


def test_dialer_of_another_user_that_says_nothing_is_closed_at_once_and_takes_no_room(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    me = os.geteuid()
    monkeypatch.setattr("hdphrs.transport.listener.STRANGERS_MAX", 1)

    async def main() -> None:
        async with cluster(host=host()) as c:
            root = await c.start(ROOT)
            ours = await trio.open_unix_socket(name_of(root.address))
            await settle()
            monkeypatch.setattr(os, "geteuid", lambda: me + 1)
            with trio.fail_after(1):
                assert await say(root.address, b"") == b""
            monkeypatch.undo()
            readable, _, _ = select.select([ours.socket.fileno()], [], [], 0)
            assert not readable, "the one that was there has had to go"
            await ours.aclose()

    run(main)
    (record,) = caplog.records
    line = f"process {os.getpid()} of this host: it belongs to user {me}; connection closed"
    assert record.getMessage() == line


def listens_as_another(address: tuple[str, int], say: int, until: int) -> None:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(name_of(address))
        listener.listen()
        listener.settimeout(20)
        os.write(say, b"listens")
        while True:
            accepted, _ = listener.accept()
            with accepted:
                heard = accepted.recv(100)
            os.write(say, b"heard %d " % len(heard))


@needs_root
def test_other_user_under_the_name_of_a_dead_node_hears_nothing_and_the_node_is_suspected_at_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    place = host()
    with listening_socket(place) as free:
        address = sockets.address_of(free)

    def listen(say: int, until: int) -> None:
        listens_as_another(address, say, until)

    with as_another_user(listen) as other:
        assert other.hear() == b"listens"

        async def main() -> None:
            async with cluster(host=place) as c:
                root, one = await c.pair()
                two = await c.join()
                two.transport.connect(replace(one.member, address=address))
                with trio.fail_after(2):
                    assert await two.inbox.next() == Suspected(ONE)
                two.transport.fence(ONE)
                two.transport.send(ROOT, numbered(1))
                assert await root.inbox.message() == numbered(1)

        run(main)
        heard = other.hear()  # of the first who has come, and gone
        os.kill(other.process, 9)
        heard += other.hear()
    assert heard
    assert set(heard.split(b" ")) <= {b"heard", b"0", b""}
    lines = [record for record in caplog.records if record.levelno == logging.WARNING]
    assert lines
    assert all(f"user {NOBODY} listens where a node of this run did" in line.getMessage() for line in lines)


@needs_root
def test_other_user_who_dials_is_refused_by_what_the_kernel_says_of_him(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        async with cluster(host=host()) as c:
            root = await c.start(ROOT)
            name = name_of(root.address)

            def connect_there(say: int, until: int) -> None:
                with socket.socket(socket.AF_UNIX) as dialer:
                    dialer.connect(name)
                    try:
                        dialer.sendall(b"\0hdphrs\n")
                        answer = dialer.recv(100)
                    except ConnectionError:
                        answer = b""
                    os.write(say, b"answer %d" % len(answer))

            with as_another_user(connect_there) as other:
                assert await trio.to_thread.run_sync(other.hear) == b"answer 0"
            await exchange(root, await c.join(), 1)

    run(main)
    (record,) = caplog.records
    assert f"it belongs to user {NOBODY}; connection closed" in record.getMessage()
