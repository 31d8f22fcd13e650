"""Two real machines back to back; then strangers."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

import hdphrs.wire.handshake as handshake
from hdphrs.config import WIRE_VERSION
from hdphrs.wire.handshake import HELLO_BYTES, NONCE_BYTES, PROOF_BYTES, Handshake, Role, binding_of

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
