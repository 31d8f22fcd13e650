"""How the root may be called."""

from __future__ import annotations

import errno
import os
import socket
import sys
import threading
import time

import pytest

from hdphrs.cluster import addresses
from hdphrs.cluster.addresses import listen, outward_addresses
from hdphrs.errors import UsageError
from hdphrs.transport.listener import is_loopback
from hdphrs.wire.sockets import address_of


def test_the_address_used_to_reach_a_host_comes_first() -> None:
    found = outward_addresses(["127.0.0.1", "someone@127.0.0.1"])
    assert [candidates[0] for candidates in found.values()] == ["127.0.0.1", "127.0.0.1"]
    assert found["127.0.0.1"][-1] == socket.gethostname()


def test_loopback_is_offered_to_none_but_loopback() -> None:
    (candidates,) = outward_addresses(["192.0.2.7"]).values()
    assert candidates
    assert not any(address.startswith("127.") for address in candidates)


def test_a_name_server_that_does_not_answer_does_not_hold_up_the_start(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(addresses, "RESOLVE_S_MAX", 0.05)
    release = threading.Event()

    def routes_from(target: str) -> list[str]:
        if target == "alias":
            release.wait(10)
        return []

    monkeypatch.setattr(addresses, "_routes_from", routes_from)
    begun_s = time.monotonic()
    assert outward_addresses(["alias"])["alias"][-1] == socket.gethostname()
    assert time.monotonic() - begun_s < 5
    release.set()


def test_the_root_listens_beyond_this_host_only_when_some_host_is_beyond_it() -> None:
    with listen(beyond_loopback=True) as listener:
        address, port = listener.getsockname()
        assert address == "0.0.0.0"
        with socket.create_connection(("127.0.0.1", port), timeout=5):
            pass
    with listen(beyond_loopback=False) as listener, socket.socket(listener.family) as dialer:
        assert is_loopback(listener)
        dialer.connect(listener.getsockname())


@pytest.mark.skipif(sys.platform != "linux", reason="has no abstract names")
def test_on_linux_nodes_of_one_host_listen_on_no_port_at_all() -> None:
    with listen(beyond_loopback=False) as listener, listen(beyond_loopback=False) as another:
        (host, port), (other, _) = address_of(listener), address_of(another)
        assert listener.getsockname() == f"\0{host[1:]}-{port}".encode()
        assert host != other


@pytest.mark.parametrize("lacking", ["names", "leave"])
def test_where_there_are_no_abstract_names_nodes_of_one_host_listen_on_loopback(
    lacking: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(host: str, backlog: int) -> socket.socket:
        raise UsageError("cannot listen: permission denied")

    if lacking == "names":
        monkeypatch.setattr(addresses, "new_host", lambda: None)
    else:
        monkeypatch.setattr(addresses, "new_host", lambda: "@hdphrs-1")
        monkeypatch.setattr(addresses, "listen_abstract", refuse)
    with listen(beyond_loopback=False) as listener:
        assert address_of(listener)[0] == "127.0.0.1"


@pytest.mark.skipif(sys.platform != "linux", reason="has no abstract names")
def test_where_a_policy_allows_such_a_name_and_not_to_connect_to_it_the_root_listens_on_a_port(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def connect(sock: socket.socket, address: object) -> None:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    monkeypatch.setattr(socket.socket, "connect", connect)
    with listen(beyond_loopback=False) as listener:
        assert listener.family == socket.AF_INET
        assert is_loopback(listener)
