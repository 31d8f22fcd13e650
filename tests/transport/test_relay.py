"""Another user of this host, who takes over the port of a node that has died: what a relay comes to.

Everything here knows no secret, reads and writes all that passes through it, and dials whom it likes.  Where a kernel
says of whom a socket is (`tests/wire/test_sockets.py`), another user does not even come so far.
"""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

import pytest
import trio

from hdphrs.config import WIRE_VERSION
from hdphrs.errors import StartError
from hdphrs.protocol.events import Received, Suspected
from hdphrs.protocol.tasks import ROOT, NodeId
from hdphrs.transport.greeting import NOTHING, NotMe, Progress, Resume, Resumed, pack_greeting, unpack_answer
from hdphrs.transport.listener import listening_socket
from hdphrs.transport.streams import Lost, dial
from hdphrs.wire.framing import encode_frame
from hdphrs.wire.handshake import HELLO_BYTES, MAGIC, NONCE_BYTES, PROOF_BYTES
from hdphrs.wire.sealing import HEAD_BYTES, RECORD_BYTES_MAX
from hdphrs.wire.sockets import is_abstract, name_of, new_host
from tests.transport.support import LOOPBACK, SECRET, Cluster, Node, Proxy, cluster, exchange, numbered, run, settle

ONE, TWO, THREE = NodeId(1), NodeId(2), NodeId(3)

HOSTS = [
    pytest.param(host, id=name) for host, name in ((LOOPBACK, "loopback"), (new_host(), "abstract")) if host is not None
]
"""What nodes of one host listen on."""

RELAY = """
import socket, sys, threading
family = socket.AF_INET if sys.argv[1] == "tcp" else socket.AF_UNIX
here, there = (("127.0.0.1", int(arg)) if sys.argv[1] == "tcp" else b"\\0" + arg.encode() for arg in sys.argv[2:])
listener = socket.socket(family)
listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
listener.bind(here)
listener.listen()
print("listens", flush=True)
def pump(source, sink):
    try:
        while data := source.recv(4096):
            sink.sendall(data)
            sys.stdout.write(f"{len(data)}\\n")
            sys.stdout.flush()
    except OSError:
        pass
    for end in (source, sink):
        try: end.shutdown(socket.SHUT_RDWR)
        except OSError: pass
while True:
    near, _ = listener.accept()
    far = socket.socket(family)
    far.connect(there)
    for ends in ((near, far), (far, near)):
        threading.Thread(target=pump, args=ends, daemon=True).start()
"""
"""A process that listens in one place and passes everything on to another; it says how much that is."""


def takes_over(address: tuple[str, int]) -> socket.socket:
    """A socket that listens where another one did."""
    if not is_abstract(address[0]):
        return listening_socket(*address)
    sock = socket.socket(socket.AF_UNIX)
    sock.bind(name_of(address))
    sock.listen()
    return sock


class Relay(Proxy):
    """Listens at the address of a dead node, and passes on what it hears, both ways."""

    def __init__(self, address: tuple[str, int], target: Node) -> None:
        super().__init__(target.port, relays=True)
        self.passed = 0
        self._address = address
        self._target = target.address

    def overhear(self, data: bytes) -> None:
        self.passed += len(data)

    async def serve(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        sock = takes_over(self._address)
        listener = trio.SocketListener(trio.socket.from_stdlib_socket(sock))
        task_status.started()
        await trio.serve_listeners(self._handle, [listener])

    async def reach(self) -> trio.SocketStream:
        if is_abstract(self._target[0]):
            return await trio.open_unix_socket(name_of(self._target))
        return await trio.open_tcp_stream(*self._target)


@asynccontextmanager
async def relay(c: Cluster, dead: Node, target: Node) -> AsyncIterator[Relay]:
    """One that takes the place of `dead`, which dies now, and relays to `target`."""
    await dead.transport.aclose()
    between = Relay(dead.address, target)
    await c.nursery.start(between.serve)
    yield between
    assert between.connections
    # Nothing but hellos, the dialer's proof, and zeros.
    assert between.passed <= between.connections * 2 * (HELLO_BYTES + PROOF_BYTES)


async def connect(a: Node, b: Node) -> None:
    a.transport.connect(b.member)
    b.transport.connect(a.member)
    await exchange(a, b, 1)


async def goes_on(a: Node, b: Node) -> None:
    """They exchange messages, and hear at most that somebody else may be dead."""
    for node, other in ((a, b), (b, a)):
        node.transport.send(other.member.node, numbered(9))
    for node, other in ((a, b), (b, a)):
        while isinstance(event := await node.inbox.next(), Suspected):
            assert event.node != other.member.node
        assert event == Received(other.member.node, numbered(9))


LISTENER = "or something between relays it; connection closed"
DIALER = "or something between relays it"


def lines_of(caplog: pytest.LogCaptureFixture, end: str) -> list[str]:
    """Of the lines that were logged, the refusals of a listener or of a dialer, by their ends."""
    return [line for record in caplog.records if (line := record.getMessage()).endswith(end)]


async def until_refused(caplog: pytest.LogCaptureFixture, end: str = LISTENER) -> None:
    with trio.fail_after(5):
        while not lines_of(caplog, end):
            await trio.sleep(0.001)


@pytest.mark.parametrize("host", HOSTS)
def test_live_node_that_dials_a_dead_one_and_is_relayed_to_the_root_is_refused_and_the_run_goes_on(
    host: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        async with cluster(host=host) as c:
            root, one = await c.pair()
            two = await c.join()
            await connect(one, two)
            async with relay(c, one, root):
                await until_refused(caplog)
                await goes_on(root, two)
            assert {str(event) for event in root.inbox.events} <= {str(Suspected(ONE))}
            assert root.transport._peers.keys() == {ONE, TWO}

    run(main)
    lines = lines_of(caplog, LISTENER)
    assert all("it belongs to another run and does not know the secret of this one, or something" in e for e in lines)
    assert not any("\n" in line for line in lines)


@contextmanager
def other_process(here: tuple[str, int], there: tuple[str, int]) -> Iterator[subprocess.Popen[str]]:
    kind = "unix" if is_abstract(here[0]) else "tcp"
    ends = [name_of(end)[1:].decode() if kind == "unix" else str(end[1]) for end in (here, there)]
    process = subprocess.Popen([sys.executable, "-c", RELAY, kind, *ends], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    with process:
        try:
            assert process.stdout.readline() == "listens\n"
            yield process
        finally:
            process.kill()


@pytest.mark.parametrize("host", HOSTS)
def test_relay_in_another_process_has_nothing_to_pass_on_but_a_handshake_that_fails(
    host: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> list[str]:
        async with cluster(host=host) as c:
            root, one = await c.pair()
            two = await c.join()
            await connect(one, two)
            await one.transport.aclose()
            with other_process(one.address, root.address) as process:
                await until_refused(caplog)
                await goes_on(root, two)
                await two.transport.aclose()
                process.kill()
                assert process.stdout is not None
                return process.stdout.readlines()

    passed = [int(line) for line in run(main)]
    assert passed
    assert max(passed) <= HELLO_BYTES + PROOF_BYTES


@pytest.mark.parametrize("host", HOSTS)
def test_relay_to_a_third_node_is_refused_by_it(host: str, caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        async with cluster(host=host) as c:
            root, one = await c.pair()
            two, three = await c.join(), await c.join()
            await connect(one, three)
            await connect(two, three)
            async with relay(c, one, two):
                await until_refused(caplog)
                await goes_on(two, three)
            assert {str(event) for event in (*root.inbox.events, *two.inbox.events)} <= {str(Suspected(ONE))}

    run(main)


@pytest.mark.parametrize("host", HOSTS)
def test_node_that_dials_the_place_of_the_dead_root_and_is_relayed_to_a_member_is_refused(
    host: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        async with cluster(host=host) as c:
            root, one = await c.pair()
            two = await c.join()
            await connect(one, two)
            async with relay(c, root, one):
                await until_refused(caplog)
                await goes_on(one, two)
            assert {str(event) for event in one.inbox.events} <= {str(Suspected(ROOT))}

    run(main)


@pytest.mark.parametrize("host", HOSTS)
def test_newcomer_that_is_relayed_to_the_root_is_not_admitted_and_both_ends_say_why(
    host: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        async with cluster(host=host) as c:
            root = await c.start(ROOT)
            dead, new = await c.start(), await c.start()
            async with relay(c, dead, root):
                with pytest.raises(StartError, match="or something between relays it"):
                    await new.transport.join([dead.address], "h", 1, 1, 60.0)
                await until_refused(caplog)
            assert not root.inbox.events

    run(main)


def test_resume_through_another_port_to_the_same_listener_is_refused(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        async with cluster() as c:
            root, one = await c.pair()
            between = Proxy(root.port, relays=True)
            await c.nursery.start(between.serve)
            one.transport._peer(ROOT).address = (LOOPBACK, between.port)
            one.transport._peer(ROOT).drop_link()
            await until_refused(caplog)
            assert root.transport._peer(ONE).link is None
            one.transport._peer(ROOT).address = root.address
            await exchange(root, one, 3)

    run(main)


@pytest.mark.parametrize("host", HOSTS)
def test_who_says_what_he_hears_back_is_refused(host: str, caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        async with cluster(host=host) as c:
            root, one = await c.pair()
            two = await c.join()
            await connect(one, two)
            await one.transport.aclose()

            async def echo(stream: trio.SocketStream) -> None:
                async for data in stream:
                    await stream.send_all(data)

            listener = trio.SocketListener(trio.socket.from_stdlib_socket(takes_over(one.address)))
            c.nursery.start_soon(trio.serve_listeners, echo, [listener])
            await until_refused(caplog, DIALER)
            await goes_on(root, two)

    run(main)


class Recorder(Proxy):
    """Keeps what the dialer says."""

    def __init__(self, target: int) -> None:
        super().__init__(target)
        self.heard: list[bytes] = []

    def overhear(self, data: bytes) -> None:
        self.heard.append(data)


def test_bytes_of_an_earlier_connection_said_again_are_refused(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        async with cluster() as c:
            root = await c.start(ROOT)
            wire = Recorder(root.port)
            await c.nursery.start(wire.serve)
            one = await c.join(wire.port)
            await exchange(root, one, 3)
            words = b"".join(wire.heard)
            assert words.startswith(MAGIC)
            async with await trio.open_tcp_stream(LOOPBACK, root.port) as again:
                await again.send_all(words)
                answer = await again.receive_some(HELLO_BYTES + PROOF_BYTES)
                assert not any(answer[HELLO_BYTES:])
            await until_refused(caplog)
            await exchange(root, one, 3)

    run(main)


def test_resume_of_an_attempt_that_has_been_made_does_not_get_the_session() -> None:
    async def main() -> None:
        async with cluster() as c:
            root, one = await c.pair()
            await exchange(root, one, 1)
            root.transport._peer(ONE).drop_link()
            await exchange(root, one, 1)
            attempt = root.transport._peer(ONE).attempt
            assert attempt >= 1
            stream = await dial(root.address, SECRET, None)
            await stream.write_frame(pack_greeting(Resume(ONE, ROOT, attempt, Progress(1, 0, 0))))
            with pytest.raises(Lost):
                await stream.read_greeting()
            stream.close()
            await exchange(root, one, 1)

    run(main)


def test_proof_that_knows_the_secret_is_for_the_node_that_the_sealed_greeting_names_and_for_no_other() -> None:
    async def main() -> None:
        async with cluster() as c:
            root, one = await c.pair()
            stream = await dial(root.address, SECRET, None)
            await stream.write_frame(pack_greeting(Resume(TWO, THREE, 1, NOTHING)))
            assert unpack_answer(await stream.read_greeting()) == NotMe()
            stream.close()
            await exchange(root, one, 1)

    run(main)


def test_peer_of_the_version_before_is_told_so_and_gets_no_proof(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        async with cluster() as c:
            root = await c.start(ROOT)
            old = MAGIC + (WIRE_VERSION - 1).to_bytes(2, "big") + bytes(NONCE_BYTES)
            async with await trio.open_tcp_stream(LOOPBACK, root.port) as stream:
                await stream.send_all(old)
                said = b""
                while data := await stream.receive_some():
                    said += data
            assert len(said) == HELLO_BYTES

    run(main)
    (record,) = caplog.records
    assert f"it speaks version {WIRE_VERSION - 1}" in record.getMessage()


class Vandal(Proxy):
    """A wire that changes what it carries, from some byte on that is not of a handshake any more."""

    spoils = False

    def bend(self, data: bytes) -> bytes:
        if not self.spoils:
            return data
        self.spoils = False
        return data[:-1] + bytes([data[-1] ^ 1])


def test_byte_changed_on_the_way_closes_the_connection_with_one_line_and_nothing_is_decoded(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def main() -> None:
        async with cluster() as c:
            root = await c.start(ROOT)
            wire = Vandal(root.port)
            await c.nursery.start(wire.serve)
            one = await c.join(wire.port)
            await exchange(root, one, 3)
            await settle()
            wire.spoils = True
            one.transport.send(ROOT, numbered(7))
            assert await root.inbox.next() == Suspected(ONE)
            assert not root.inbox.events

    run(main)
    lines = [record.getMessage() for record in caplog.records]
    assert len([line for line in lines if "something between has changed it; connection closed for good" in line]) == 1


def test_connection_that_is_ended_between_two_records_goes_on_over_the_next_and_nothing_is_cut_short() -> None:
    async def main() -> None:
        async with cluster() as c:
            root = await c.start(ROOT)
            wire = Proxy(root.port)
            await c.nursery.start(wire.serve)
            one = await c.join(wire.port)
            for number in range(10):
                await exchange(root, one, 1)
                await settle()  # all that was sealed has arrived: here a record ends
                wire.break_all()
                one.transport.send(ROOT, numbered(number))
                assert await root.inbox.next() == Received(ONE, numbered(number))
            assert wire.connections > 10

    run(main)


def test_member_that_announces_a_record_without_end_is_not_listened_to(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        async with cluster() as c:
            root, one = await c.pair()
            await exchange(root, one, 1)
            stream = await dial(root.address, SECRET, None)
            await stream.write_frame(pack_greeting(Resume(ONE, ROOT, 1000, Progress(1, 0, 0))))
            assert unpack_answer(await stream.read_greeting()) == Resumed(Progress(1, 0, 0))
            await stream.write((RECORD_BYTES_MAX + 1).to_bytes(HEAD_BYTES, "big") + encode_frame([1, 1]))
            assert await root.inbox.next() == Suspected(ONE)
            stream.close()

    run(main)
    assert f"a sealed record of {RECORD_BYTES_MAX + 1:,} bytes, the limit is" in caplog.text
