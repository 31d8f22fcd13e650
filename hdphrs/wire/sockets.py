"""Sockets between the nodes of one host, where no other host takes part (Linux).

What lives here: a listening socket in the abstract namespace, and its name as an address `(host, port)` like any other;
which user is at the other end.  What does not: what is said over them (`hdphrs/transport/streams.py`).

An abstract name is in no file system and ends with its socket.  Nobody beyond this host can connect, nobody can listen
in or put bytes in between, and the kernel says of which user the other end is: on a port of the loopback a tag for each
record has to do some of that (decision 41).

The host of such an address is `@hdphrs-` and a number of the run; the port tells its nodes from each other.
"""

from __future__ import annotations

import os
import socket
import struct
import sys
from typing import Final, Protocol

from hdphrs.errors import UsageError

_MARK: Final = "@"
_NUMBER_BYTES: Final = 8
PORTS_TRIED_MAX: Final = 100

_NAMELESS_USER: Final = 65534
"""Unless root has chosen another number."""

_DIGITS_MAX: Final = 20

_CREDENTIALS: Final = struct.Struct("3i")
"""Process, user, group."""


def new_host() -> str | None:
    """The host in the addresses of a run; None where there are no abstract names, or no kernel that tells users apart
    from this one."""
    if sys.platform != "linux" or not hasattr(socket, "SO_PEERCRED") or os.geteuid() == _nameless_user():
        return None
    return f"{_MARK}hdphrs-{os.urandom(_NUMBER_BYTES).hex()}"


def _nameless_user() -> int:
    """What the kernel calls every user who has no number in the user namespace of this process."""
    try:
        with open("/proc/sys/kernel/overflowuid", "rb") as file:
            return int(file.read(_DIGITS_MAX))
    except (OSError, ValueError):
        return _NAMELESS_USER


def is_abstract(host: str) -> bool:
    """Whether an address with this host is one of ours."""
    return host.startswith(_MARK)


def name_of(address: tuple[str, int]) -> bytes:
    """What the system calls the socket at an address of ours."""
    host, port = address
    return f"\0{host.removeprefix(_MARK)}-{port}".encode()


def address_of(sock: socket.socket) -> tuple[str, int]:
    """Where a socket listens."""
    name = sock.getsockname()
    if not isinstance(name, bytes):
        host, port, *_ = name
        return host, port
    host, _, port = name[1:].decode().rpartition("-")
    return _MARK + host, int(port)


def listen_abstract(host: str, backlog: int) -> socket.socket:
    """A socket that listens at a free port of a host as `new_host` makes it.

    Raises:
        UsageError: the system allows none.
    """
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        for tried in range(1, PORTS_TRIED_MAX + 1):
            try:
                sock.bind(name_of((host, _any_port())))
                break
            except OSError:  # another node of the run has it, unless it goes on like this
                if tried == PORTS_TRIED_MAX:
                    raise
        sock.listen(backlog)
    except OSError as error:
        sock.close()
        raise UsageError(f"cannot listen on {host}: {error.strerror or error}") from error
    return sock


def is_reachable(listener: socket.socket) -> bool:
    """Whether this process may connect to a listening socket of its own, and is told that it is this user's.

    It is, once, and says nothing.
    """
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as dialer:
        try:
            dialer.setblocking(False)
            dialer.connect(listener.getsockname())
            return other_user(dialer) is None
        except OSError:
            return False


def _any_port() -> int:
    return int.from_bytes(os.urandom(2), "big") or 1


class Connected(Protocol):
    """A connected socket, trio's or Python's."""

    def getsockopt(self, level: int, optname: int, buflen: int, /) -> bytes:
        """As any socket has it."""


def other_user(sock: Connected) -> int | None:
    """The user at the other end of a connected socket of ours, unless it is the user of this process.

    At a dialer's end it is who has begun to listen, at a listener's end who has dialed.

    Raises:
        OSError: there is no other end any more.
    """
    _, user, _ = _credentials(sock)
    return None if user == os.geteuid() else user


def process_of(sock: Connected) -> int:
    """The process at the other end, as `other_user`; 0 if it is in none of our namespaces."""
    process, _, _ = _credentials(sock)
    return process


def _credentials(sock: Connected) -> tuple[int, int, int]:
    process, user, group = _CREDENTIALS.unpack(
        sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    )
    return process, user, group
