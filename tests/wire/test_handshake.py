"""Two real machines back to back; then strangers."""

from __future__ import annotations

import hmac
import ipaddress
import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

import hdphrs.wire.handshake as handshake
from hdphrs.config import WIRE_VERSION
from hdphrs.errors import ProtocolError
from hdphrs.wire.handshake import HELLO_BYTES, MAGIC, NONCE_BYTES, PROOF_BYTES, Handshake, Role, binding_of
from hdphrs.wire.sealing import Opener, Sealer

SECRET = b"s" * 32
NONCE_A, NONCE_B = b"a" * NONCE_BYTES, b"b" * NONCE_BYTES
HERE, THERE = ("127.0.0.1", 40001), ("127.0.0.1", 5000)
BINDING = binding_of(HERE, THERE)


def both(secret: bytes = SECRET, other: bytes = SECRET) -> tuple[Handshake, Handshake]:
    return Handshake(Role.DIALER, secret, NONCE_A, BINDING), Handshake(Role.LISTENER, other, NONCE_B, BINDING)


def feed_in_pieces(machine: Handshake, data: bytes, size: int) -> bytes:
    answer = b""
    for start in range(0, len(data), size):
        answer += machine.feed(data[start : start + size])
    return answer


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_peers_with_the_same_secret_recognize_each_other(size: int) -> None:
    dialer, listener = both()
    assert listener.start() == b""
    hello = feed_in_pieces(listener, dialer.start(), size)
    proof = feed_in_pieces(dialer, hello, size)
    assert not dialer.done
    assert not listener.done
    answer = feed_in_pieces(listener, proof, size)
    assert listener.done
    assert feed_in_pieces(dialer, answer, size) == b""
    assert dialer.done


def test_bytes_after_the_proof_are_kept_for_the_frames() -> None:
    dialer, listener = both()
    answer = listener.feed(dialer.feed(listener.feed(dialer.start())) + b"frames")
    assert listener.rest == b"frames"
    dialer.feed(answer + b"more")
    assert dialer.rest == b"more"


def test_dialer_with_another_secret_is_refused_and_both_ends_say_why() -> None:
    dialer, listener = both(other=b"t" * 32)
    dialer.feed(listener.feed(dialer.feed(listener.feed(dialer.start()))))
    for machine in (dialer, listener):
        assert "does not know the secret of this one" in str(machine.fault)
        assert not machine.done


def test_listener_with_another_secret_is_refused() -> None:
    dialer, listener = both()
    dialer.feed(listener.feed(dialer.start()))
    dialer.feed(bytes(PROOF_BYTES))
    assert "does not know the secret of this one" in str(dialer.fault)
    assert not dialer.done


def test_version_differs_then_each_end_names_both_versions(monkeypatch: pytest.MonkeyPatch) -> None:
    dialer = Handshake(Role.DIALER, SECRET, NONCE_A, BINDING)
    monkeypatch.setattr(handshake, "WIRE_VERSION", WIRE_VERSION + 1)
    listener = Handshake(Role.LISTENER, SECRET, NONCE_B, BINDING)
    answer = listener.feed(dialer.start())
    theirs = f"speaks version {WIRE_VERSION} of the hdphrs wire format, this node speaks version {WIRE_VERSION + 1}"
    assert theirs in str(listener.fault)
    monkeypatch.undo()
    dialer.feed(answer)
    assert (
        f"speaks version {WIRE_VERSION + 1} of the hdphrs wire format, this node speaks version {WIRE_VERSION}"
        in str(dialer.fault)
    )


@pytest.mark.parametrize(
    "garbage", [b"G", b"GET / HTTP/1.1\r\n", b"\x16\x03\x01\x02\x00\x01", b"\x00hdphrz", b"\xff" * 999]
)
@pytest.mark.parametrize("role", list(Role))
def test_garbage_is_recognized_at_once(garbage: bytes, role: Role) -> None:
    machine = Handshake(role, SECRET, NONCE_A, BINDING)
    machine.start()
    assert machine.feed(garbage) == b""
    assert "not an hdphrs peer" in str(machine.fault)


def test_own_bytes_reflected_prove_nothing() -> None:
    dialer, listener = both()
    proof = dialer.feed(dialer.start())
    assert dialer.feed(proof) == b""
    assert dialer.fault is not None
    hello = listener.feed(Handshake(Role.DIALER, b"unknown", NONCE_B, BINDING).start())
    listener.feed(hello[:PROOF_BYTES])
    assert listener.fault is not None


def test_proof_of_another_connection_proves_nothing() -> None:
    dialer, first = both()
    proof = dialer.feed(first.feed(dialer.start()))
    second = Handshake(Role.LISTENER, SECRET, b"c" * NONCE_BYTES, BINDING)
    second.feed(dialer.start())
    second.feed(proof)
    assert second.fault is not None


def test_listener_proves_nothing_to_a_stranger() -> None:
    sent = b""
    _, listener = both()
    sent += listener.feed(Handshake(Role.DIALER, b"unknown", NONCE_A, BINDING).start())
    assert len(sent) == HELLO_BYTES
    assert listener.feed(b"x" * PROOF_BYTES) == bytes(PROOF_BYTES)


@given(st.lists(st.binary(max_size=50), max_size=5), st.sampled_from(Role), st.booleans())
def test_random_bytes_never_authenticate_nor_raise(chunks: list[bytes], role: Role, greets: bool) -> None:
    machine = Handshake(role, SECRET, NONCE_A, BINDING)
    greeting = Handshake(Role.DIALER, SECRET, NONCE_B, BINDING).start() if greets else b""
    for chunk in itertools.chain([greeting], chunks):
        if machine.fault is None:
            machine.feed(chunk)
    assert not machine.done


OTHERS = {
    "dialer's port": (("127.0.0.1", 40002), THERE),
    "dialer's host": (("127.0.0.2", 40001), THERE),
    "listener's port": (HERE, ("127.0.0.1", 5001)),
    "listener's host": (HERE, ("127.0.0.2", 5000)),
    "both, exchanged": (THERE, HERE),
    "a port of another family": (("::1", 40001), THERE),
}


@pytest.mark.parametrize("what", OTHERS)
@pytest.mark.parametrize("who", list(Role))
def test_ends_that_see_different_addresses_refuse_each_other_though_both_know_the_secret(what: str, who: Role) -> None:
    """It is relayed: whoever stands between has another address than the one or the other."""
    other = binding_of(*OTHERS[what])
    dialer = Handshake(Role.DIALER, SECRET, NONCE_A, other if who is Role.DIALER else BINDING)
    listener = Handshake(Role.LISTENER, SECRET, NONCE_B, other if who is Role.LISTENER else BINDING)
    answer = listener.feed(dialer.feed(listener.feed(dialer.start())))
    assert answer == bytes(PROOF_BYTES)
    dialer.feed(answer)
    for machine in (dialer, listener):
        assert "something between relays it" in str(machine.fault)
        assert not machine.done


def test_listener_that_proves_itself_elsewhere_is_refused_by_the_dialer() -> None:
    """Even if it has been content with the dialer: that cannot be, so the proof is made by hand."""
    dialer, _ = both()
    elsewhere = Handshake(Role.DIALER, SECRET, NONCE_A, binding_of(HERE, ("127.0.0.1", 5001)))
    listener = Handshake(Role.LISTENER, SECRET, NONCE_B, binding_of(HERE, ("127.0.0.1", 5001)))
    hello = listener.feed(elsewhere.start())
    dialer.feed(hello)
    dialer.feed(listener.feed(elsewhere.feed(hello)))
    assert listener.done
    assert "something between relays it" in str(dialer.fault)


@pytest.mark.parametrize(
    ("one", "same"), [("::ffff:127.0.0.1", "127.0.0.1"), ("fe80::1%lo", "fe80::1"), ("0:0::1", "::1")]
)
def test_address_has_one_form_however_the_system_writes_it(one: str, same: str) -> None:
    assert binding_of((one, 1), HERE) == binding_of((same, 1), HERE)
    assert binding_of(HERE, (one, 1)) == binding_of(HERE, (same, 1))


MAPPED = ipaddress.ip_network("::ffff:0:0/96")
"""The same as addresses of version 4."""

addresses = st.tuples(st.one_of(st.ip_addresses(v=4), st.ip_addresses(v=6)).map(str), st.integers(1, 65535))


@given(addresses, addresses, addresses, addresses)
def test_two_connections_have_the_same_binding_only_if_they_are_between_the_same_addresses(
    a: tuple[str, int], b: tuple[str, int], c: tuple[str, int], d: tuple[str, int]
) -> None:
    mapped = any(ipaddress.ip_address(host) in MAPPED for host, _ in (a, b, c, d) if ":" in host)
    assert mapped or (binding_of(a, b) == binding_of(c, d)) == ((a, b) == (c, d))


def test_keys_are_of_this_connection_and_each_of_one_direction() -> None:
    seen: set[bytes] = set()
    for nonce, binding in ((NONCE_A, BINDING), (b"c" * NONCE_BYTES, BINDING), (NONCE_A, b"")):
        dialer = Handshake(Role.DIALER, SECRET, nonce, binding)
        listener = Handshake(Role.LISTENER, SECRET, NONCE_B, binding)
        proof = dialer.feed(listener.feed(dialer.start()))
        answer = listener.feed(proof)
        dialer.feed(answer)
        assert dialer.keys == listener.keys[::-1]
        seen |= {*dialer.keys, proof, answer, SECRET}
    assert len(seen) == 3 * 4 + 1


def test_words_of_one_direction_cannot_be_said_back_in_the_other() -> None:
    dialer, listener = both()
    dialer.feed(listener.feed(dialer.feed(listener.feed(dialer.start()))))
    ours, theirs = dialer.keys
    with pytest.raises(ProtocolError):
        Opener(theirs).open(Sealer(ours).seal(b"frames"))


def test_version_that_is_rewritten_on_the_way_to_one_without_a_binding_gets_no_proof() -> None:
    """Whoever stands between can make either end believe that the other is old; then neither goes on."""
    dialer, listener = both()
    hello = dialer.start()
    old = hello[: len(MAGIC)] + (WIRE_VERSION - 1).to_bytes(2, "big") + hello[len(MAGIC) + 2 :]
    assert len(listener.feed(old)) == HELLO_BYTES
    assert f"it speaks version {WIRE_VERSION - 1}" in str(listener.fault)


@pytest.mark.parametrize("role", list(Role))
def test_proof_of_the_version_before_which_covers_no_binding_is_refused(role: Role) -> None:
    dialer, listener = both()
    theirs = listener.feed(dialer.start())
    mine = dialer.start()
    unbound = hmac.digest(SECRET, role.value + mine + theirs, "sha256")
    if role is Role.DIALER:
        assert listener.feed(unbound) == bytes(PROOF_BYTES)
        assert listener.fault is not None
    else:
        dialer.feed(theirs)
        dialer.feed(unbound)
        assert dialer.fault is not None
