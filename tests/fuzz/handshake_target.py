"""The target that reads the handshake, at either end.

What lives here: three situations, chosen by the first byte.  *Raw*: the input is all that the peer says.  *Bent*: the
peer knows the secret and says the right thing, but the input is XORed over its words (zeros change nothing, and the end
of the input is the end of the connection).  *Between*: two honest ends, with the input XORed over what each hears.

An oracle of its own tells who may count as authenticated: those, and only those, whose first 74 bytes are a hello of
this version and the HMAC over both hellos and the addresses of this connection.  Who is authenticated has the same keys
for what follows as the other end, and nobody else has.
"""

from __future__ import annotations

import hmac
from itertools import zip_longest
from random import Random
from typing import Final

from hdphrs.config import WIRE_VERSION
from hdphrs.wire.handshake import HELLO_BYTES, MAGIC, NONCE_BYTES, PROOF_BYTES, Handshake, Role, binding_of
from tests.fuzz.mutate import mutate_bytes, pieces
from tests.fuzz.target import Outcome, Target, refused

SECRET: Final = b"s" * 32
BINDING: Final = binding_of(("127.0.0.1", 4001), ("127.0.0.1", 4000))
_RELAYED: Final = binding_of(("127.0.0.1", 4001), ("127.0.0.1", 4002))
RAW, BENT, BETWEEN = range(3)
_OURS: Final = MAGIC + WIRE_VERSION.to_bytes(2, "big") + b"o" * NONCE_BYTES
_THEIRS: Final = MAGIC + WIRE_VERSION.to_bytes(2, "big") + b"t" * NONCE_BYTES


def proof(role: Role, dialer_hello: bytes, listener_hello: bytes, binding: bytes = BINDING) -> bytes:
    """The HMAC of the handshake, written down once more."""
    return hmac.new(SECRET, role.value + dialer_hello + listener_hello + binding, "sha256").digest()


def _honest(peer: Role) -> bytes:
    """Everything that an honest peer says to us."""
    if peer is Role.DIALER:
        return _THEIRS + proof(peer, _THEIRS, _OURS) + b"frames"
    return _THEIRS + proof(peer, _OURS, _THEIRS) + b"frames"


def _may_be_done(role: Role, heard: bytes) -> bool:
    hello, word = heard[:HELLO_BYTES], heard[HELLO_BYTES : HELLO_BYTES + PROOF_BYTES]
    if not hello.startswith(_OURS[: len(MAGIC) + 2]) or len(hello) < HELLO_BYTES:
        return False
    if role is Role.LISTENER:
        return word == proof(Role.DIALER, hello, _OURS)
    return word == proof(Role.LISTENER, _OURS, hello)


def _xor(words: bytes, mask: bytes) -> bytes:
    return bytes([word ^ flip for word, flip in zip_longest(words, mask[: len(words)], fillvalue=0)])


def _converse(machine: Handshake, words: bytes, how: int) -> tuple[bytes, int]:
    """Let it hear the words; what it says, and how much it has heard when it is done or has had enough."""
    said = machine.start()
    heard = 0
    for piece in pieces(words, how):
        if machine.done or machine.fault is not None:
            break
        heard += len(piece)
        said += machine.feed(piece)
        assert len(machine._received) <= max(HELLO_BYTES, len(piece) + HELLO_BYTES)
    return said, heard


def _alone(role: Role, words: bytes, how: int) -> Outcome:
    machine = Handshake(role, SECRET, _OURS[-NONCE_BYTES:], BINDING)
    said, heard = _converse(machine, words, how)
    assert machine.done == _may_be_done(role, words)
    assert len(said) <= HELLO_BYTES + PROOF_BYTES
    if machine.done:
        assert machine.rest == words[HELLO_BYTES + PROOF_BYTES : heard]
        return Outcome(True, role.name)
    assert machine.rest == b""
    true_words = {proof(each, *hellos) for each in Role for hellos in ((_OURS, words[:42]), (words[:42], _OURS))}
    if role is Role.LISTENER:
        assert said[HELLO_BYTES:] not in true_words, "a listener has proved itself to a stranger"
    return Outcome(False, "silent") if machine.fault is None else refused(machine.fault)


def _between(mask: bytes, how: int) -> Outcome:
    relayed = how & 0x80 != 0
    dialer = Handshake(Role.DIALER, SECRET, b"d" * NONCE_BYTES, BINDING)
    listener = Handshake(Role.LISTENER, SECRET, b"l" * NONCE_BYTES, _RELAYED if relayed else BINDING)
    ends = (listener, dialer)
    flips = (mask[::2], mask[1::2])
    sent = [b"", b""]
    """To the listener, to the dialer: what was sent, before the bending."""
    taken = [0, 0]
    sent[0] = dialer.start()
    moved = True
    while moved:
        moved = False
        for side, machine in enumerate(ends):
            bent = _xor(sent[side], flips[side])[taken[side] :]
            for piece in pieces(bent, how):
                if machine.done or machine.fault is not None:
                    break
                taken[side] += len(piece)
                sent[1 - side] += machine.feed(piece)
                moved = True
    if relayed:
        assert not dialer.done, "a dialer is content with a relay"
        assert not listener.done, "a listener is content with a relay"
        return Outcome(False, "relayed")
    touched = any(any(flip[: len(words)]) for flip, words in zip(flips, sent, strict=True))
    assert touched or (dialer.done and listener.done)
    if dialer.done:
        assert not touched, "bytes were changed on the way, and the dialer is content"
    if dialer.done and listener.done:
        assert dialer.keys == listener.keys[::-1]
    if listener.done:
        assert not any(flips[0][: HELLO_BYTES + PROOF_BYTES])
        assert not any(flips[1][:HELLO_BYTES])
    return Outcome(dialer.done, f"between: {dialer.done} {listener.done}")


def _run(data: bytes) -> Outcome:
    first, how, words = (data[0], data[1], data[2:]) if len(data) > 2 else (0, 0, b"")
    role = Role.LISTENER if first & 1 else Role.DIALER
    peer = Role.DIALER if first & 1 else Role.LISTENER
    match (first >> 1) % 3:
        case 0:
            return _alone(role, words, how)
        case 1:
            return _alone(role, _xor(_honest(peer), words)[: len(words)], how)
    return _between(words, how)


def _head(role: Role, situation: int, how: int) -> bytes:
    return bytes([2 * situation + (role is Role.LISTENER), how])


def _seeds() -> list[bytes]:
    silent = bytes(len(_honest(Role.DIALER)))
    found = [_head(role, BENT, how) + silent for role in Role for how in (0, 1, 9)]
    found += [_head(Role.DIALER, BETWEEN, how) + silent for how in (0, 1, 9)]
    return found + [
        _head(Role.LISTENER if peer is Role.DIALER else Role.DIALER, RAW, 0) + _honest(peer) for peer in Role
    ]


def _draw(rng: Random) -> bytes:
    data = rng.choice(_SEEDS)
    if rng.random() < 0.1:
        return _head(Role.DIALER, BETWEEN, 0x80 | rng.randrange(0x80)) + data[2 : 2 + rng.randrange(len(data))]
    if rng.random() < 0.3:
        return rng.randbytes(2) + data[2 : 2 + rng.randrange(len(data))]
    return data[:1] + mutate_bytes(rng, data[1:])


_SEEDS: Final = _seeds()
HANDSHAKE = Target("handshake", _run, lambda: list(_SEEDS), _draw)
