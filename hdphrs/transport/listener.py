"""The port of a node: who may come in, and who they are.

What lives here: accepting connections, a bounded number of strangers at a time and each for a bounded time,
and the listener's half of the greeting.
"""

from __future__ import annotations

import ipaddress
import logging
import socket
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Final

import trio

from hdphrs.errors import ProtocolError, UsageError
from hdphrs.room import EXHAUSTED, how_exhausted
from hdphrs.transport.greeting import Greeting, unpack_greeting
from hdphrs.transport.streams import HANDSHAKE_S_MAX, FrameStream, Lost, says_something
from hdphrs.transport.tls import TlsContexts
from hdphrs.wire.handshake import Role
from hdphrs.wire.sockets import address_of, is_abstract, listen_abstract, other_user, process_of

log: logging.Logger = logging.getLogger("hdphrs.transport")

STRANGERS_MAX: Final = 64
"""Connections that have not proved themselves, at a time.  One more, and the oldest of them must go: those that only
take up room keep nobody out."""

COMPLAINTS_MAX: Final = 20
COMPLAINTS_S: Final = 10.0
"""So many lines about strangers are logged in so many seconds; beyond that they are counted."""

_BACKLOG: Final = 1024
_EXHAUSTED_PAUSE_S: Final = 0.1


def listening_socket(host: str, port: int = 0) -> socket.socket:
    """A socket that listens on one address of this host.

    Args:
        host: numeric, or as `wire/sockets.py` has it.
        port: 0 for any that is free.

    Raises:
        UsageError: it cannot listen there.
    """
    if is_abstract(host):
        return listen_abstract(host, _BACKLOG)
    try:
        family, kind, proto, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        sock = socket.socket(family, kind, proto)
        try:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            sock.bind(address)
            sock.listen(_BACKLOG)
        except OSError:
            sock.close()
            raise
    except OSError as error:
        raise UsageError(f"cannot listen on {host}, port {port}: {error.strerror or error}") from error
    return sock


def is_loopback(sock: socket.socket) -> bool:
    """Whether nobody but this host can reach it."""
    host, _ = address_of(sock)
    return is_abstract(host) or ipaddress.ip_address(host.partition("%")[0]).is_loopback


class Listener:
    """Accepts connections and hands over those that have proved themselves.

    Args:
        welcome: takes an authenticated connection, its address and its greeting, and closes it when done.
    """

    def __init__(
        self,
        sock: socket.socket,
        secret: bytes,
        tls: TlsContexts | None,
        welcome: Callable[[FrameStream, str, Greeting], Awaitable[None]],
    ) -> None:
        self._sock = sock
        self._secret = secret
        self._tls = tls
        self._welcome = welcome
        self._strangers: dict[trio.CancelScope, None] = {}
        """The oldest first."""
        self._complaints = _Complaints()

    async def run(self) -> None:
        """Accept until cancelled."""
        listener = trio.SocketListener(trio.socket.from_stdlib_socket(self._sock))
        has_said = False
        async with trio.open_nursery() as nursery:
            while True:
                try:
                    raw = await listener.accept()
                except OSError as error:
                    if error.errno not in EXHAUSTED:
                        raise
                    if not has_said:
                        log.warning("cannot accept connections for now: %s", how_exhausted(error))
                    has_said = True
                    await trio.sleep(_EXHAUSTED_PAUSE_S)
                else:
                    has_said = False
                    if self._turn_away(raw):
                        continue
                    if len(self._strangers) >= STRANGERS_MAX:
                        self._turn_out_oldest()
                    nursery.start_soon(self._on_connection, raw, self._new_stranger())

    def _turn_away(self, raw: trio.SocketStream) -> bool:
        """Whether it is a connection of another user, who takes up no room, and need not say anything for that."""
        if raw.socket.family != socket.AF_UNIX:
            return False
        try:
            user = other_user(raw.socket)
        except OSError:
            return False
        if user is None:
            return False
        _, who = self._peer_of(raw)
        self._complaints.log("%s: it belongs to user %d; connection closed", who, user)
        raw.socket.close()
        return True

    def _new_stranger(self) -> trio.CancelScope:
        scope = trio.CancelScope()
        self._strangers[scope] = None
        return scope

    def _turn_out_oldest(self) -> None:
        oldest = next(iter(self._strangers))
        del self._strangers[oldest]
        oldest.cancel()
        self._complaints.log("%d connections at a time do not prove themselves; the oldest is closed", STRANGERS_MAX)

    async def _on_connection(self, raw: trio.SocketStream, scope: trio.CancelScope) -> None:
        greeted = None
        try:
            with scope:
                greeted = await self._meet(raw)
        finally:
            self._strangers.pop(scope, None)
        if greeted is not None:
            await self._welcome(*greeted)

    async def _meet(self, raw: trio.SocketStream) -> tuple[FrameStream, str, Greeting] | None:
        host, who = self._peer_of(raw)
        stream = FrameStream(raw, self._tls.server if self._tls else None, Role.LISTENER)
        greeting = None
        try:
            with trio.fail_after(HANDSHAKE_S_MAX):
                if host is not None and await says_something(raw):
                    await stream.authenticate(self._secret)
                    with suppress(Lost):  # one of ours, then, which has ended meanwhile
                        greeting = unpack_greeting(await stream.read_greeting())
        except (Lost, ProtocolError) as error:
            # Who only goes away, and not for our certificate, may well be a node of this run that has just ended.
            if isinstance(error, ProtocolError) or (self._tls is not None and not stream.has_tls):
                self._complaints.log("%s: %s; connection closed", who, error)
        except trio.TooSlowError:
            self._complaints.log("%s: not an hdphrs peer: silent; connection closed", who)
        finally:
            if greeting is None:
                stream.close()
        if greeting is None or host is None:
            return None
        return stream, host, greeting

    def _peer_of(self, raw: trio.SocketStream) -> tuple[str | None, str]:
        """The host from which it comes, None if it has gone already; and what to call it in a line."""
        try:
            if raw.socket.family == socket.AF_UNIX:
                return address_of(self._sock)[0], f"process {process_of(raw.socket)} of this host"
            host, port, *_ = raw.socket.getpeername()
        except OSError:
            return None, "a stranger"
        return host, f"{host} port {port}"


class _Complaints:
    """Strangers cannot fill the log."""

    def __init__(self) -> None:
        self._since_s = float("-inf")
        self._made = 0

    def log(self, line: str, *args: object) -> None:
        """A line about a stranger, unless there have been many of late."""
        now = trio.current_time()
        if now - self._since_s >= COMPLAINTS_S:
            if self._made > COMPLAINTS_MAX:
                log.warning("%d more connections of strangers were closed", self._made - COMPLAINTS_MAX)
            self._since_s, self._made = now, 0
        self._made += 1
        if self._made <= COMPLAINTS_MAX:
            log.warning(line, *args)
