"""Connections that have proved themselves: opening them, accepting them, and reading their frames.

What lives here: TCP, TLS if the run has it, then the handshake, in this order at either end.  The errors of
sockets and of TLS become `Lost` here, and go no further than this package.  What is exchanged then goes by system calls
of our own where there is no TLS: with trio's, a message takes the event loop twice as many turns.  Without TLS the
handshake is bound to the addresses of the connection; what follows it is sealed, but for sockets of one host, where the
kernel says that the other end is of this user (decision 41).
"""

from __future__ import annotations

import logging
import os
import secrets
import select
import socket
import ssl
from collections.abc import Iterable
from contextlib import suppress
from itertools import chain
from typing import Any, Final

import trio

from hdphrs.errors import ProtocolError
from hdphrs.room import EXHAUSTED, how_exhausted, lacks_room
from hdphrs.transport.tls import TlsContexts
from hdphrs.wire.framing import FrameDecoder, Unfinished, encode_frame
from hdphrs.wire.handshake import NONCE_BYTES, Handshake, Role, binding_of
from hdphrs.wire.sealing import Opener, Sealer
from hdphrs.wire.sockets import is_abstract, name_of, other_user

log: logging.Logger = logging.getLogger("hdphrs.transport")

RECEIVE_BYTES: Final = 1 << 18

HANDSHAKE_S_MAX: Final = 5.0
"""A connection that has not proved itself by then is closed."""

IDLE_S: Final = 30
"""A connection over which nothing has passed for so long is tried by the kernel."""


UNSENT_BYTES: Final = 1 << 17
"""Of what it has not sent yet, the kernel takes so much: what a steal says waits for that (decision 32)."""


class Lost(Exception):  # noqa: N818 - a fact of life, not an error
    """A connection that ended or never came to be; `str` says how."""

    def __init__(self, how: str, *, refused: bool = False, exhausted: bool = False) -> None:
        super().__init__(how)
        self.refused = refused
        """Nobody listens there: as long as the host lives, its process is gone."""
        self.exhausted = exhausted
        """It is this process that has no room for a connection."""


class FrameStream:
    """An authenticated connection: frames in, bytes out.  Close it."""

    def __init__(self, raw: trio.SocketStream, tls: ssl.SSLContext | None, role: Role) -> None:
        self._raw = raw
        self._descriptor: int = raw.socket.fileno()
        """-1 when it is closed."""
        if hasattr(socket, "TCP_NOTSENT_LOWAT"):
            with suppress(OSError):  # it is lost already, which whoever uses it finds out
                raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, UNSENT_BYTES)
        self._stream: trio.abc.Stream = raw
        if tls is not None:
            self._stream = trio.SSLStream(raw, tls, server_side=role is Role.LISTENER, https_compatible=True)
        self._role = role
        self._decoder = FrameDecoder(pieces=True)
        self._sealer: Sealer | None = None
        self._opener: Opener | None = None
        """Both from the handshake on, where neither TLS nor the kernel vouches for what arrives."""
        self._unfinished = Unfinished()
        self._decoder.go_on_with(self._unfinished)
        self._unread: list[Any] = []
        """Frames that arrived in one piece with what came before them."""
        self.has_tls: bool = False
        """TLS is agreed on; at the listener's end it is then certain that the dialer belongs to this run."""

    async def authenticate(self, secret: bytes) -> None:
        """Find out that the peer belongs to this run.

        Raises:
            ProtocolError: it does not, or is something else altogether.
            Lost: the connection ended.
        """
        if isinstance(self._stream, trio.SSLStream):
            try:
                await self._stream.do_handshake()
            except (trio.BrokenResourceError, trio.ClosedResourceError) as error:
                how = f"no TLS connection of this run: {_reason(error)}"
                if isinstance(error.__cause__, ssl.SSLError) and not isinstance(error.__cause__, ssl.SSLEOFError):
                    raise ProtocolError(how) from error
                raise Lost(how) from error
            self.has_tls = True
        try:
            binding = b"" if self.has_tls else self._binding()
        except OSError as error:
            raise Lost(_reason(error)) from error
        handshake = Handshake(self._role, secret, secrets.token_bytes(NONCE_BYTES), binding)
        await self._send(handshake.start())
        while not handshake.done:
            try:
                answer = handshake.feed(await self.receive())
            except Lost as error:
                unsure = self.has_tls and self._role is Role.DIALER
                hint = ", perhaps because it refuses our certificate" if unsure else ""
                raise Lost(f"it ended the connection during the handshake{hint}: {error}") from error
            try:
                await self._send(answer)
            finally:
                if handshake.fault is not None:
                    raise handshake.fault
        if not self.has_tls and self._raw.socket.family != socket.AF_UNIX:
            ours, theirs = handshake.keys
            self._sealer, self._opener = Sealer(ours), Opener(theirs)
        if handshake.rest:
            self._unread += self._decode(handshake.rest)

    def _binding(self) -> bytes:
        sock = self._raw.socket
        if sock.family == socket.AF_UNIX:
            user = other_user(sock)
            if user is not None:
                raise ProtocolError(f"it belongs to user {user}")
            name: bytes = sock.getpeername() if self._role is Role.DIALER else sock.getsockname()
            return name
        here, there = sock.getsockname()[:2], sock.getpeername()[:2]
        return binding_of(here, there) if self._role is Role.DIALER else binding_of(there, here)

    async def read_greeting(self) -> Any:
        """The next frame, before `read` is called for the first time.

        Raises:
            ProtocolError: no frame.
            Lost: the connection ended.
        """
        while not self._unread:
            self._unread += self._decode(await self.receive())
        return self._unread.pop(0)

    def _decode(self, data: bytes) -> list[Any]:
        if self._opener is None:
            return self._decoder.feed(data)
        return [frame for part in self._opener.open(data) for frame in self._decoder.feed(part)]

    @property
    def descriptor(self) -> int | None:
        """When this is readable, `read_now` has something; None if `read` alone has."""
        return None if self.has_tls or self._unread else self._descriptor

    def read_now(self) -> tuple[Iterable[Any], int]:
        """As `read`, without waiting; the frames are decoded as they are taken, which may raise `ProtocolError`.

        Raises:
            ProtocolError: no frames.
            Lost: the connection ended.
        """
        try:
            data = os.read(self._descriptor, RECEIVE_BYTES)
        except BlockingIOError:
            return [], 0
        except OSError as error:
            raise Lost(_reason(error)) from error
        if not data:
            raise Lost("closed by the peer")
        if self._opener is None:
            return self._decoder.frames(data), len(data)
        opened = self._opener.open(data)
        if len(opened) == 1:
            return self._decoder.frames(opened[0]), len(data)
        return chain.from_iterable(map(self._decoder.frames, opened)), len(data)

    async def read(self) -> tuple[Iterable[Any], int]:
        """Some frames, perhaps none yet, and the number of bytes that have arrived.

        Raises:
            ProtocolError: no frames.
            Lost: the connection ended.
        """
        if self._unread:
            frames, self._unread = self._unread, []
            return frames, 0
        data = await self.receive()
        return self._decode(data), len(data)

    @property
    def amid(self) -> bool:
        """What was read last ended within a frame or a large payload."""
        return self._decoder.amid or (self._opener is not None and self._opener.amid)

    async def receive(self) -> bytes:
        """Some bytes.

        Raises:
            Lost: the connection ended.
        """
        try:
            data = await self._stream.receive_some(RECEIVE_BYTES)
        except (OSError, trio.BrokenResourceError, trio.ClosedResourceError) as error:
            raise Lost(_reason(error)) from error
        if not data:
            raise Lost("closed by the peer")
        return bytes(data)

    @property
    def has_unread(self) -> bool:
        """Something has arrived that `read` has not seen, or the end of the connection has."""
        if self._descriptor < 0:
            return False
        poll = select.poll()
        poll.register(self._raw.socket, select.POLLIN)
        return bool(poll.poll(0))

    def seal(self, data: bytes) -> bytes:
        """What is to be written for these frames, once authenticated: all of it, and in the order of the calls."""
        return data if self._sealer is None else self._sealer.seal(data)

    def write_now(self, data: bytes) -> int:
        """As much of what `seal` gave as the kernel takes at once; the rest is for `write`, which finds out if the
        connection has ended.  No `write` may be under way."""
        if self.has_tls:
            return 0
        try:
            return os.write(self._descriptor, data)
        except OSError:
            return 0

    async def write(self, data: bytes) -> None:
        """All of `data`, which `seal` gave.  Does not always let others have a turn.

        Raises:
            Lost: the connection ended.
        """
        written = 0
        if not self.has_tls:
            try:
                written = os.write(self._descriptor, data)
            except BlockingIOError:
                pass
            except OSError as error:
                raise Lost(_reason(error)) from error
        await self._send(data[written:])

    async def write_frame(self, obj: object) -> None:
        """One frame; see `write`."""
        await self._send(self.seal(encode_frame(obj)))

    async def _send(self, data: bytes) -> None:
        if not data:
            return
        try:
            await self._stream.send_all(data)
        except (trio.BrokenResourceError, trio.ClosedResourceError) as error:
            raise Lost(_reason(error)) from error

    @property
    def unfinished(self) -> Unfinished:
        """What has come of large payloads whose frame has not."""
        return self._unfinished

    def go_on_with(self, unfinished: Unfinished) -> None:
        """Before anything large arrives: it is the rest of this."""
        self._unfinished = unfinished
        self._decoder.go_on_with(unfinished)

    def let_go(self) -> None:
        """This connection brings nothing more: what has come of large payloads waits for the next one."""
        if self._unread:
            self._unfinished.clear()  # their payloads are lost with these frames
        self.go_on_with(Unfinished())

    def close(self) -> None:
        """Close the socket at once; what is under way in other tasks ends with `Lost`."""
        self.let_go()
        self._descriptor = -1
        self._raw.socket.close()


async def dial(address: tuple[str, int], secret: bytes, tls: TlsContexts | None) -> FrameStream:
    """Open an authenticated connection to a node.

    Raises:
        Lost: there is none to be had.
        ProtocolError: somebody else listens there.
    """
    try:
        with trio.fail_after(HANDSHAKE_S_MAX):
            raw = await connect(address)
            stream = FrameStream(raw, tls.client if tls else None, Role.DIALER)
            try:
                await stream.authenticate(secret)
            except BaseException:
                stream.close()
                raise
            return stream
    except trio.TooSlowError as error:
        raise Lost(f"no answer within {HANDSHAKE_S_MAX:g} seconds") from error


async def connect(address: tuple[str, int]) -> trio.SocketStream:
    """Open a connection, and nothing more.

    Raises:
        Lost: there is none to be had.
    """
    try:
        if is_abstract(address[0]):
            raw = await trio.open_unix_socket(name_of(address))
        else:
            raw = await trio.open_tcp_stream(*address)
    except (OSError, ValueError) as error:  # ValueError: a host name that no resolver takes
        causes = error.__cause__.exceptions if isinstance(error.__cause__, ExceptionGroup) else (error,)
        refused = all(isinstance(cause, ConnectionRefusedError) for cause in causes)
        lacking = [cause for cause in causes if isinstance(cause, OSError) and cause.errno in EXHAUSTED]
        if lacking:
            raise Lost(f"cannot connect: {how_exhausted(lacking[0])}", exhausted=True) from error
        how = "connection refused" if refused else f"cannot connect: {causes[0]}"
        raise Lost(how, refused=refused) from error
    except RuntimeError as lack:  # a thread looks names up
        if not lacks_room(lack):
            raise
        raise Lost(f"cannot connect: {lack}", exhausted=True) from lack
    user = None
    try:
        to_itself = raw.socket.getsockname() == raw.socket.getpeername()
        if is_abstract(address[0]):
            user = other_user(raw.socket)
    except OSError as error:  # the other end has died since
        raw.socket.close()
        raise Lost(f"connection lost at once: {error.strerror}") from error
    if to_itself:
        raw.socket.close()  # a free port of this host, where the kernel connected us with ourselves
        raise Lost("connection refused", refused=True)
    if user is not None:  # no two listen under one name
        raw.socket.close()
        log.warning("user %d listens where a node of this run did (%s, port %d); nothing was said", user, *address)
        raise Lost(f"its process is gone, and user {user} listens in its place", refused=True)
    _keep_alive(raw)
    return raw


async def says_something(raw: trio.SocketStream) -> bool:
    """Wait for the first byte, without taking it.  False: closed before, as by someone who only looks who
    listens."""
    try:
        return bool(await raw.socket.recv(1, socket.MSG_PEEK))
    except (OSError, trio.ClosedResourceError):
        return False


def _keep_alive(raw: trio.SocketStream) -> None:
    """Let the kernel keep an idle connection in the memory of what stands between the hosts (decision 27)."""
    with suppress(OSError):  # it is lost already, which whoever uses it finds out
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        if hasattr(socket, "TCP_KEEPIDLE"):
            raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, IDLE_S)


def _reason(error: BaseException) -> str:
    cause = error.__cause__ or error
    if isinstance(cause, ssl.SSLError):
        return f"TLS: {cause.reason or cause}".replace("_", " ").lower()
    return getattr(cause, "strerror", None) or str(cause) or type(cause).__name__
