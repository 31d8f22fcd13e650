"""Mutual TLS with the certificates of one run; strangers with none, or with those of another."""

from __future__ import annotations

import datetime
import functools
import os
import random
import ssl
import tempfile

import pytest
import trio
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from hdphrs.errors import StartError, UsageError
from hdphrs.protocol.messages import Code
from hdphrs.protocol.tasks import ROOT, NodeId
from hdphrs.transport.listener import listening_socket
from hdphrs.transport.tcp import TcpTransport
from hdphrs.transport.tls import TlsContexts, mutual_tls
from hdphrs.wire.bulk import bulk_of
from hdphrs.wire.settings import Credentials
from tests.transport.support import Cluster, Inbox, Proxy, cluster, exchange, numbered, run, settle

SECRET = b"the secret of the run"


class Authority:
    """Mints the certificates of one run."""

    def __init__(self) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "a run")])
        self.pem = self._sign(self._name, self._key, authority=True)

    def credentials(self) -> Credentials:
        key = ec.generate_private_key(ec.SECP256R1())
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "a node")])
        return Credentials(
            certificate=self._sign(name, key, authority=False),
            key=key.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
            ),
            authority=self.pem,
        )

    def _sign(self, name: x509.Name, key: ec.EllipticCurvePrivateKey, *, authority: bool) -> bytes:
        now = datetime.datetime.now(datetime.UTC)
        day = datetime.timedelta(days=1)
        return (
            x509.CertificateBuilder()
            .subject_name(name)
            .issuer_name(self._name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - day)
            .not_valid_after(now + day)
            .add_extension(x509.BasicConstraints(ca=authority, path_length=None), critical=True)
            .sign(self._key, hashes.SHA256())
            .public_bytes(serialization.Encoding.PEM)
        )


@functools.cache
def run_authority() -> Authority:
    return Authority()


def contexts() -> TlsContexts:
    return mutual_tls(run_authority().credentials())


async def refused(c: Cluster, tls: TlsContexts | None) -> str:
    """Why a newcomer with `tls` does not get in."""
    root = await c.start(ROOT)
    transport = TcpTransport(listening_socket("127.0.0.1"), SECRET, Inbox(), tls=tls)
    await c.nursery.start(transport.serve)
    with pytest.raises(StartError) as caught:
        await transport.join([("127.0.0.1", root.port)], "h", 1, 1, 0.3)
    await settle()
    assert not root.inbox.events
    return str(caught.value)


def test_with_tls_too_what_one_step_sends_arrives_in_order() -> None:
    async def main() -> None:
        async with cluster(contexts) as c:
            root, one = await c.pair()
            root.transport.hold()
            for number in (1, 2, 3):
                root.transport.send(one.member.node, numbered(number))
            root.transport.release()
            assert [await one.inbox.message() for _ in range(3)] == [numbered(1), numbered(2), numbered(3)]

    run(main)


def test_nodes_of_one_run_talk_over_tls() -> None:
    async def main() -> None:
        async with cluster(contexts) as c:
            root, one = await c.pair()
            root.transport.send(NodeId(1), numbered(1))
            one.transport.send(ROOT, numbered(2))
            assert await one.inbox.message() == numbered(1)
            assert await root.inbox.message() == numbered(2)

    run(main)


def test_tls_connections_break_in_the_middle_of_records_then_nothing_is_lost_or_doubled() -> None:
    async def main() -> None:
        async with cluster(contexts) as c:
            root = await c.start(ROOT)
            proxy = Proxy(root.port)
            await c.nursery.start(proxy.serve)
            one = await c.join(proxy.port)
            cuts = iter(range(1000, 1_000_000, 777))
            proxy.break_after_bytes = lambda: next(cuts)
            proxy.break_all()
            await exchange(root, one, 2000)
            assert proxy.connections > 5

    run(main)


def test_tls_connections_dropped_with_some_of_a_payload_unread_are_no_fault_of_the_peer(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """What a reader was about to decode when its connection was dropped begins in the midst of a piece."""
    data = random.Random(3).randbytes(1 << 20) * 4
    chance = random.Random(4)

    async def main() -> None:
        async with cluster(contexts) as c:
            root, one = await c.pair()
            root.transport.send(NodeId(1), Code(b"large", bulk_of(data)))
            peer = one.transport._peers[ROOT]
            drops = 0
            while not peer.session.received:
                assert not peer.closed
                if peer.link is not None and peer.link.has_unread and peer.session.unfinished and chance.random() < 0.3:
                    peer.drop_link()
                    drops += 1
                await trio.lowlevel.checkpoint()
            code = await one.inbox.message()
            assert isinstance(code, Code)
            assert bytes(code.data) == data
            assert drops

    run(main)
    assert not caplog.records


def test_byte_changed_on_the_way_ends_the_connection_and_everything_arrives_over_the_next() -> None:
    class Vandal(Proxy):
        spoils = False

        def bend(self, data: bytes) -> bytes:
            if not self.spoils:
                return data
            self.spoils = False
            return data[:-1] + bytes([data[-1] ^ 1])

    async def main() -> None:
        async with cluster(contexts) as c:
            root = await c.start(ROOT)
            wire = Vandal(root.port)
            await c.nursery.start(wire.serve)
            one = await c.join(wire.port)
            await exchange(root, one, 3)
            await settle()
            wire.spoils = True
            await exchange(root, one, 3)
            assert not wire.spoils
            assert wire.connections == 2

    run(main)


def test_bytes_on_the_way_are_not_readable() -> None:
    seen: list[bytes] = []

    class Eavesdropper(Proxy):
        def overhear(self, data: bytes) -> None:
            seen.append(data)

    async def main() -> None:
        async with cluster(contexts) as c:
            root = await c.start(ROOT)
            proxy = Eavesdropper(root.port)
            await c.nursery.start(proxy.serve)
            await c.join(proxy.port)
            await settle()

    run(main)
    assert seen
    assert b"hdphrs" not in b"".join(seen)


def test_peer_of_another_authority_is_refused(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        async with cluster(contexts) as c:
            problem = await refused(c, mutual_tls(Authority().credentials()))
            assert "certificate verify failed" in problem

    run(main)
    assert "no TLS connection of this run" in caplog.text


def test_peer_without_a_certificate_is_refused(caplog: pytest.LogCaptureFixture) -> None:
    client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    client.check_hostname = False
    client.load_verify_locations(cadata=run_authority().pem.decode())

    async def main() -> None:
        async with cluster(contexts) as c:
            problem = await refused(c, TlsContexts(client, contexts().server))
            assert "perhaps because it refuses our certificate" in problem

    run(main)
    assert "peer did not return a certificate" in caplog.text


@pytest.mark.parametrize("sender", [ROOT, NodeId(1)])
def test_large_payload_arrives_over_tls_connections_each_of_which_breaks_within_it(sender: NodeId) -> None:
    data = random.Random(3).randbytes(1 << 20) * 8

    async def main() -> None:
        async with cluster(contexts) as c:
            root = await c.start(ROOT)
            proxy = Proxy(root.port)
            await c.nursery.start(proxy.serve)
            await c.join(proxy.port)
            proxy.break_after_bytes = lambda: 1_200_000
            proxy.break_all()
            receiver = NodeId(1) if sender == ROOT else ROOT
            c.nodes[sender].transport.send(receiver, Code(b"large", bulk_of(data)))
            code = await c.nodes[receiver].inbox.message()
            assert isinstance(code, Code)
            assert bytes(code.data) == data
            assert 7 <= proxy.connections <= 25
            assert not c.nodes[receiver].inbox.events

    run(main)


def test_older_tls_is_refused(caplog: pytest.LogCaptureFixture) -> None:
    old = contexts()
    old.client.minimum_version = ssl.TLSVersion.TLSv1_2
    old.client.maximum_version = ssl.TLSVersion.TLSv1_2

    async def main() -> None:
        async with cluster(contexts) as c:
            await refused(c, old)

    run(main)
    assert "unsupported protocol" in caplog.text


def test_peer_without_tls_is_refused(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        async with cluster(contexts) as c:
            await refused(c, None)

    run(main)
    assert "no TLS connection of this run" in caplog.text


def test_port_beyond_loopback_is_served_with_tls() -> None:
    async def main() -> None:
        async with trio.open_nursery() as nursery:
            transport = TcpTransport(listening_socket("0.0.0.0"), SECRET, Inbox(), node=ROOT, tls=contexts())
            await nursery.start(transport.serve)
            await transport.aclose()

    run(main)


@pytest.mark.parametrize("field", ["certificate", "key", "authority"])
def test_malformed_credentials_are_a_usage_error(field: str) -> None:
    good = run_authority().credentials()
    values = {"certificate": good.certificate, "key": good.key, "authority": good.authority, field: b"nonsense"}
    with pytest.raises(UsageError, match="credentials of this node do not work"):
        mutual_tls(Credentials(**values))


def test_credentials_leave_no_file_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    descriptors = set(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else set()
    contexts()
    if descriptors:
        assert set(os.listdir("/proc/self/fd")) == descriptors
    before = set(os.listdir(tempfile.gettempdir()))
    monkeypatch.delattr(os, "memfd_create", raising=False)
    assert isinstance(contexts(), TlsContexts)
    assert not [name for name in set(os.listdir(tempfile.gettempdir())) - before if name.startswith("tmp")]


def test_node_of_the_run_that_ends_while_it_dials_leaves_no_line(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        async with cluster(contexts) as c:
            root = await c.start(ROOT)
            raw = await trio.open_tcp_stream("127.0.0.1", root.port)
            await trio.SSLStream(raw, contexts().client).do_handshake()
            await settle()
            raw.socket.close()
            await settle()
            await c.join()

    run(main)
    assert not caplog.records
