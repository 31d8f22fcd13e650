"""The target that reads what strangers say to a listener: the real one, over connections without sockets.

What lives here: up to eight strangers, who say what the input says after a beginning that looks right (or not), and
then are silent, hang up, or stop reading.  Afterwards a member dials, and must be let in; nothing that a stranger said
may have reached a decoder, and after the time of a handshake nobody of them is left.
"""

from __future__ import annotations

import logging
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from random import Random
from types import SimpleNamespace
from typing import Any, Final, cast

import trio
from trio.testing import MockClock

from hdphrs.config import WIRE_VERSION
from hdphrs.protocol.tasks import ROOT, NodeId
from hdphrs.transport import listener as listener_module
from hdphrs.transport import streams
from hdphrs.transport.greeting import NOTHING, Greeting, Resume, Wait, pack_greeting
from hdphrs.transport.listener import Listener
from hdphrs.transport.streams import HANDSHAKE_S_MAX, FrameStream
from hdphrs.wire.framing import FrameDecoder, encode_frame
from hdphrs.wire.handshake import HELLO_BYTES, MAGIC, NONCE_BYTES, PROOF_BYTES, Handshake, Role, binding_of
from hdphrs.wire.sealing import HEAD_BYTES, TAG_BYTES, Opener, Sealer
from tests.fuzz import seeds
from tests.fuzz.handshake_target import BINDING, SECRET, proof
from tests.fuzz.mutate import mutate_bytes, pieces
from tests.fuzz.target import Outcome, Target

STRANGERS_MAX: Final = 8
ROOM: Final = 4
"""Strangers whom the listener has room for: fewer than come."""

_HELLO: Final = Handshake(Role.DIALER, SECRET, b"d" * NONCE_BYTES, BINDING).start()
_NONCE: Final = b"o" * NONCE_BYTES
_OURS: Final = MAGIC + WIRE_VERSION.to_bytes(2, "big") + _NONCE
_OLD_HELLO: Final = Handshake(Role.DIALER, SECRET, b"p" * NONCE_BYTES, BINDING).start()
_BEGINNINGS: Final = (
    b"",
    _HELLO[:20],
    _HELLO,
    _HELLO + proof(Role.DIALER, _HELLO, _OLD_HELLO),  # what a member has once said to another listener
    _HELLO + proof(Role.DIALER, _HELLO, _OURS),  # what a member says now, over a connection of its own, and is relayed
)
_GREETING: Final = Resume(NodeId(3), ROOT, 1, NOTHING)


class Connection:
    """Stands in for a `trio.SocketStream`, as far as the listener uses one."""

    def __init__(self, port: int, words: list[bytes], *, ends: bool, reads: bool) -> None:
        self.socket = SimpleNamespace(
            family=socket.AF_INET,
            getpeername=lambda: ("127.0.0.1", port),
            getsockname=lambda: ("127.0.0.1", 4000),
            recv=self._peek,
            close=self._close,
            fileno=lambda: -1,
        )
        self.heard = b""
        """What the listener has said to it."""
        self.closed = False
        self._words = words
        self._ends = ends
        self._reads = reads
        self._changed = trio.lowlevel.ParkingLot()

    def say(self, data: bytes) -> None:
        """One more word."""
        self._words.append(data)
        self._changed.unpark_all()

    def setsockopt(self, level: int, option: int, value: int) -> None:
        """It has no kernel to tell."""

    async def receive_some(self, max_bytes: int) -> bytes:
        await self._wait_for_words()
        return self._words.pop(0) if self._words else b""

    async def send_all(self, data: bytes) -> None:
        await trio.lowlevel.checkpoint()
        self._check_open()
        if not self._reads:
            raise trio.BrokenResourceError from ConnectionResetError("reset by the stranger")
        self.heard += data
        self._changed.unpark_all()

    async def listen(self, count: int) -> None:
        """Until the listener has said so many bytes."""
        while len(self.heard) < count:
            await self._changed.park()

    async def _peek(self, count: int, flags: int) -> bytes:
        assert (count, flags) == (1, socket.MSG_PEEK)
        await self._wait_for_words()
        return self._words[0][:1] if self._words else b""

    async def _wait_for_words(self) -> None:
        await trio.lowlevel.checkpoint()
        while not self._words and not self._ends and not self.closed:
            await self._changed.park()
        self._check_open()

    def _check_open(self) -> None:
        if self.closed:
            raise trio.ClosedResourceError

    def _close(self) -> None:
        self.closed = True
        self._changed.unpark_all()


class _Port:
    """Stands in for a `trio.SocketListener`."""

    def __init__(self) -> None:
        self.send, self.receive = trio.open_memory_channel[Connection](100)

    async def accept(self) -> Connection:
        return await self.receive.receive()


class _Watched(FrameDecoder):
    """Notes what it is given."""

    given: bytes = b""

    def feed(self, data: bytes | bytearray | memoryview) -> list[Any]:
        _Watched.given += bytes(data)
        return super().feed(data)


@contextmanager
def _in_place(port: _Port) -> Iterator[None]:
    """Put our port, a nonce that is no surprise, and the watched decoder where the listener finds them."""
    log = logging.getLogger("hdphrs.transport")
    places: list[tuple[Any, str, Any]] = [
        (trio, "SocketListener", lambda sock: port),
        (trio.socket, "from_stdlib_socket", lambda sock: sock),
        (streams, "secrets", SimpleNamespace(token_bytes=lambda count: _NONCE)),
        (streams, "FrameDecoder", _Watched),
        (listener_module, "STRANGERS_MAX", ROOM),
        (log, "disabled", True),
    ]
    before = [(owner, name, getattr(owner, name)) for owner, name, _ in places]
    for owner, name, value in places:
        setattr(owner, name, value)
    _Watched.given = b""
    try:
        yield
    finally:
        for owner, name, original in before:
            setattr(owner, name, original)


def _strangers(data: bytes) -> list[Connection]:
    """Each has three bytes that say how it is, and up to 255 of its own."""
    found: list[Connection] = []
    while len(data) > 2 and len(found) < STRANGERS_MAX:
        kind, how, size, rest = data[0], data[1], data[2], data[3:]
        words = _BEGINNINGS[kind % len(_BEGINNINGS)] + rest[:size]
        found.append(Connection(len(found), pieces(words, how), ends=bool(kind & 8), reads=not kind & 16))
        data = rest[size:]
    return found


async def _visit(data: bytes, port: _Port) -> Outcome:
    welcomed: list[Greeting] = []

    async def welcome(stream: FrameStream, host: str, greeting: Greeting) -> None:
        welcomed.append(greeting)
        await stream.write_frame(pack_greeting(Wait()))
        stream.close()

    strangers = _strangers(data)
    listener = Listener(cast(socket.socket, None), SECRET, None, welcome)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(listener.run)
        for stranger in strangers:
            port.send.send_nowait(cast(Any, stranger))
        await trio.testing.wait_all_tasks_blocked()
        assert len(listener._strangers) <= ROOM
        assert not _Watched.given, "a stranger's words reached the decoder"
        before = trio.current_time()
        await _dial_in(port)
        assert trio.current_time() == before, "a member had to wait for strangers"
        await trio.sleep(HANDSHAKE_S_MAX)
        await trio.testing.wait_all_tasks_blocked()
        assert all(stranger.closed for stranger in strangers)
        assert not listener._strangers
        nursery.cancel_scope.cancel()
    assert welcomed == [_GREETING]
    heard = sorted({len(stranger.heard) for stranger in strangers})
    assert not heard or heard[-1] <= HELLO_BYTES + 32
    return Outcome(True, f"{len(strangers)} strangers, told {heard}")


async def _dial_in(port: _Port) -> None:
    binding = binding_of(("127.0.0.1", 1000), ("127.0.0.1", 4000))
    handshake = Handshake(Role.DIALER, SECRET, b"m" * NONCE_BYTES, binding)
    member = Connection(1000, [handshake.start()], ends=False, reads=True)
    port.send.send_nowait(member)
    await member.listen(HELLO_BYTES)
    proved = handshake.feed(member.heard)
    member.say(proved)
    await member.listen(HELLO_BYTES + PROOF_BYTES)
    handshake.feed(member.heard[HELLO_BYTES:])
    assert handshake.done
    ours, theirs = handshake.keys
    member.say(Sealer(ours).seal(encode_frame(pack_greeting(_GREETING))))
    wait = encode_frame(pack_greeting(Wait()))
    await member.listen(HELLO_BYTES + PROOF_BYTES + HEAD_BYTES + len(wait) + TAG_BYTES)
    assert Opener(theirs).open(member.heard[HELLO_BYTES + PROOF_BYTES :]) == [wait]


def _run(data: bytes) -> Outcome:
    async def main() -> Outcome:
        port = _Port()
        with _in_place(port), trio.fail_after(10 * HANDSHAKE_S_MAX):
            return await _visit(data, port)

    return trio.run(main, clock=MockClock(autojump_threshold=0))


def _seeds() -> list[bytes]:
    return [bytes([kind, how, 3]) + b"abc" for kind in range(32) for how in (0, 7)]


def _draw(rng: Random) -> bytes:
    words = [b"", b"GET / HTTP/1.1\r\n\r\n", _HELLO, bytes(32), seeds.frames(seeds.packed(rng)[:3])]
    data = b""
    for _ in range(rng.randrange(1, STRANGERS_MAX + 1)):
        said = mutate_bytes(rng, rng.choice(words))[:255]
        data += bytes([rng.randrange(32), rng.choice((0, 1, 5)), len(said)]) + said
    return data


LISTENER = Target("listener", _run, _seeds, _draw, measured_every=20)
