"""Where the root node may be reached from the other hosts.

What lives here: the root's listening socket, and the addresses of this host as others may see them.  Nobody knows
beforehand which of them another host can reach, so a node is told them all and tries them in order.  IPv4 only.
"""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Sequence

from hdphrs.errors import StartError, UsageError
from hdphrs.room import start_thread
from hdphrs.wire.sockets import is_reachable, listen_abstract, new_host

LOOPBACK = "127.0.0.1"
ANYWHERE = "0.0.0.0"
"""Only ever with mutual TLS."""

BACKLOG = 1024

RESOLVE_S_MAX = 2.0
"""How long name servers may take; a name that ssh alone knows (an alias) must not hold up the start."""

_ELSEWHERE = "192.0.2.1"
"""TEST-NET-1 (RFC 5737): nobody has it, so the route to it is the default route."""

_DISCARD_PORT = 9
_LOOPBACKS = "127."


def listen(*, beyond_loopback: bool) -> socket.socket:
    """A listening socket on a free port, for the root to inherit: one that no other host can reach, if that will do."""
    host = None if beyond_loopback else new_host()
    if host is not None:
        with contextlib.suppress(UsageError):  # a system that has them, and a policy that forbids them
            sock = listen_abstract(host, BACKLOG)
            if is_reachable(sock):
                return sock
            sock.close()
    return socket.create_server((ANYWHERE if beyond_loopback else LOOPBACK, 0), backlog=BACKLOG)


def outward_addresses(hosts: Sequence[str]) -> dict[str, list[str]]:
    """For each of these hosts, how this one may be called from there, the likeliest address first.

    Takes `RESOLVE_S_MAX` seconds at most; the last candidate is this host's name, for the other host to look up.

    Args:
        hosts: as in the hosts file; `user@` in front is allowed.

    Raises:
        StartError: there is no room for the threads that it takes.
    """
    common: list[str] = []
    routes: dict[str, list[str]] = {host: [] for host in hosts}

    def look_up_names() -> None:
        for name in (socket.gethostname(), socket.getfqdn()):
            with contextlib.suppress(OSError):
                common.extend(str(info[4][0]) for info in socket.getaddrinfo(name, 0, socket.AF_INET))

    def look_up_route(host: str) -> None:
        routes[host].extend(_routes_from(host.rpartition("@")[2]))

    # Threads, because nothing else bounds the time of a look-up; they end with the process.
    threads = [threading.Thread(target=look_up_names, daemon=True)]
    threads += [threading.Thread(target=look_up_route, args=(host,), daemon=True) for host in hosts]
    try:
        for thread in threads:
            start_thread(thread)
    except RuntimeError as error:
        raise StartError(f"cannot look up how this host may be called from others: {error}") from error
    deadline_s = time.monotonic() + RESOLVE_S_MAX
    for thread in threads:
        thread.join(max(0.0, deadline_s - time.monotonic()))
    elsewhere = [a for a in (*_routes_from(_ELSEWHERE), *common) if not a.startswith(_LOOPBACKS)]
    return {host: list(dict.fromkeys([*routes[host], *elsewhere, socket.gethostname()])) for host in hosts}


def _routes_from(target: str) -> list[str]:
    """The local address that packets to `target` would carry; nothing is sent."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect((target, _DISCARD_PORT))
        except OSError:  # no such name, or no route
            return []
        return [str(probe.getsockname()[0])]
