"""The first bytes of a connection: who speaks hdphrs, which version, and who knows the secret of this run.

What lives here: a pure state machine for either end.  Bytes in, bytes out; the nonce is an argument.

    dialer                                              listener
      │── hello: magic, version, nonce ───────────────────▶│
      │◀────────────────── hello: magic, version, nonce ───│
      │── proof: HMAC(secret, "D", both, binding) ────────▶│   wrong: answers zeros, and closes
      │◀─────── proof: HMAC(secret, "L", both, binding) ───│
      from here on frames (`framing.py`), over a port of the loopback in sealed records (`sealing.py`)

All of it has a fixed size and is compared, never parsed: nothing of a peer is decoded before it has proved
that it knows the secret.  A proof covers both hellos and the role of its maker, so that it cannot be replayed
or reflected, and the two addresses of the connection as its maker sees them, so that it cannot be relayed: whoever
stands between the two ends has another address than the one or the other.  The secret itself never travels.  Secrecy on
the way is the business of TLS underneath (decision 41).
"""

from __future__ import annotations

import hmac
import ipaddress
from enum import Enum
from typing import Final

from hdphrs.config import WIRE_VERSION
from hdphrs.errors import ProtocolError

MAGIC: Final = b"\x00hdphrs\n"
"""Starts no text and no TLS record."""

NONCE_BYTES: Final = 32
_VERSION_BYTES: Final = 2
_GREETING_BYTES: Final = len(MAGIC) + _VERSION_BYTES
HELLO_BYTES: Final = _GREETING_BYTES + NONCE_BYTES
PROOF_BYTES: Final = 32
_REFUSAL: Final = bytes(PROOF_BYTES)
"""In place of the listener's proof.  It proves nothing, so that the dialer draws the right conclusion."""

_SEALING: Final = b"seal "
"""Before the role, for what a key is made of: no proof is made of the same."""


class Role(Enum):
    """Which end of the connection; its value is bound into the proof."""

    DIALER = b"D"
    LISTENER = b"L"


def binding_of(dialer: tuple[str, int], listener: tuple[str, int]) -> bytes:
    """The two addresses of a connection in one form, in which either end writes them down.

    Args:
        dialer, listener: numeric host and port, as the system names the ends of a socket.
    """
    return _packed(*dialer) + _packed(*listener)


def _packed(host: str, port: int) -> bytes:
    address = ipaddress.ip_address(host.partition("%")[0])
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    packed = (mapped or address).packed
    return bytes([len(packed)]) + packed + port.to_bytes(2, "big")


class Handshake:
    """One end of the handshake.

    Send `start()`, then what `feed(received)` returns, until there is a `fault` (close the connection) or
    `done`.

    Args:
        secret: known to all nodes of the run, and to nobody else.
        nonce: `NONCE_BYTES` fresh random bytes.
        binding: what both ends know of this connection and of no other: of a port, `binding_of`; of a socket of this
            host, its name; empty where TLS has bound the ends to each other already.
    """

    def __init__(self, role: Role, secret: bytes, nonce: bytes, binding: bytes) -> None:
        assert len(nonce) == NONCE_BYTES
        self._role = role
        self._secret = secret
        self._binding = binding
        self._hello = MAGIC + WIRE_VERSION.to_bytes(_VERSION_BYTES, "big") + nonce
        self._hellos: tuple[bytes, bytes] | None = None
        """The dialer's and the listener's, once both are known."""
        self._received = b""
        self.done: bool = False
        """The peer has proved itself, and our own proof is among the bytes that were to be sent."""
        self.fault: ProtocolError | None = None
        """Why this connection must be closed, in one line."""

    @property
    def rest(self) -> bytes:
        """What came after the peer's proof: the beginning of the frames."""
        return self._received if self.done else b""

    @property
    def keys(self) -> tuple[bytes, bytes]:
        """When done: what this end seals with, and what its peer does; of this connection, and of no other."""
        assert self.done
        assert self._hellos is not None
        dialers, listeners = (self._mac(_SEALING + role.value, self._hellos) for role in Role)
        return (dialers, listeners) if self._role is Role.DIALER else (listeners, dialers)

    def start(self) -> bytes:
        """What to send before anything has arrived.  A listener waits for a proper word of the dialer's."""
        return self._hello if self._role is Role.DIALER else b""

    def feed(self, data: bytes) -> bytes:
        """What to send in answer, perhaps nothing; to be sent even when there is a fault now.

        After a fault, or when done, it must not be called any more.
        """
        assert self.fault is None
        assert not self.done
        self._received += data
        answer = b""
        if self._hellos is None:
            answer = self._on_hello()
        if self._hellos is not None and len(self._received) >= PROOF_BYTES:
            answer += self._on_proof(self._hellos)
        return answer

    def _on_hello(self) -> bytes:
        if not MAGIC.startswith(self._received[: len(MAGIC)]):
            self.fault = ProtocolError("not an hdphrs peer: it does not begin with our greeting")
            return b""
        if len(self._received) < _GREETING_BYTES:
            return b""
        theirs = int.from_bytes(self._received[len(MAGIC) : _GREETING_BYTES], "big")
        if theirs != WIRE_VERSION:
            self.fault = ProtocolError(
                f"it speaks version {theirs} of the hdphrs wire format, this node speaks version "
                f"{WIRE_VERSION}: install the same hdphrs on both hosts"
            )
            return self._hello if self._role is Role.LISTENER else b""  # so that it can tell its own side why
        if len(self._received) < HELLO_BYTES:
            return b""
        hello, self._received = self._received[:HELLO_BYTES], self._received[HELLO_BYTES:]
        if self._role is Role.DIALER:
            self._hellos = (self._hello, hello)
            return self._proof(Role.DIALER, self._hellos)
        self._hellos = (hello, self._hello)
        return self._hello

    def _on_proof(self, hellos: tuple[bytes, bytes]) -> bytes:
        proof, self._received = self._received[:PROOF_BYTES], self._received[PROOF_BYTES:]
        peer = Role.LISTENER if self._role is Role.DIALER else Role.DIALER
        if not hmac.compare_digest(proof, self._proof(peer, hellos)):
            self.fault = ProtocolError(
                "it belongs to another run and does not know the secret of this one, or something between relays it"
            )
            return _REFUSAL if self._role is Role.LISTENER else b""
        self.done = True
        return self._proof(Role.LISTENER, hellos) if self._role is Role.LISTENER else b""

    def _proof(self, role: Role, hellos: tuple[bytes, bytes]) -> bytes:
        return self._mac(role.value, hellos)

    def _mac(self, purpose: bytes, hellos: tuple[bytes, bytes]) -> bytes:
        """No purpose begins with another one, hellos have a fixed size: two different inputs never look the same."""
        return hmac.digest(self._secret, purpose + hellos[0] + hellos[1] + self._binding, "sha256")
