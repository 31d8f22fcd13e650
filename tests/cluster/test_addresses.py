"""How the root may be called."""

from __future__ import annotations

import socket
import threading
import time

import pytest

from hdphrs.cluster import addresses
from hdphrs.cluster.addresses import listen, outward_addresses


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


@pytest.mark.parametrize(("beyond", "bound"), [(False, "127.0.0.1"), (True, "0.0.0.0")])
def test_the_root_listens_beyond_loopback_only_when_some_host_is_beyond_it(beyond: bool, bound: str) -> None:
    with listen(beyond_loopback=beyond) as listener:
        address, port = listener.getsockname()
        assert address == bound
        with socket.create_connection(("127.0.0.1", port), timeout=5):
            pass
