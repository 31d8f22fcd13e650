"""Abstract names as addresses, and of whom the kernel says that he is at the other end."""

from __future__ import annotations

import os
import socket
import sys

import pytest

from hdphrs.errors import UsageError
from hdphrs.wire import sockets
from hdphrs.wire.sockets import address_of, is_abstract, listen_abstract, name_of, new_host, other_user, process_of
from tests.transport.users import as_another_user, needs_root

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="has no abstract names")


def host() -> str:
    made = new_host()
    assert made is not None
    return made


def test_name_of_a_listening_socket_and_its_address_are_the_same_thing() -> None:
    with listen_abstract(host(), 1) as sock:
        assert is_abstract(address_of(sock)[0])
        assert name_of(address_of(sock)) == sock.getsockname()
    with socket.create_server(("127.0.0.1", 0)) as sock:
        assert not is_abstract(address_of(sock)[0])
        assert address_of(sock) == sock.getsockname()


def test_nodes_of_a_run_have_one_host_and_different_ports_and_no_two_runs_have_one_host(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ports = iter([7, 7, 7, 8])
    monkeypatch.setattr(sockets, "_any_port", lambda: next(ports))
    mine = host()
    with listen_abstract(mine, 1) as one, listen_abstract(mine, 1) as two:
        assert (address_of(one), address_of(two)) == ((mine, 7), (mine, 8))
    assert host() != mine


def test_host_without_a_free_port_is_a_usage_error_after_so_many_attempts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sockets, "_any_port", lambda: 7)
    mine = host()
    with listen_abstract(mine, 1), pytest.raises(UsageError, match=rf"cannot listen on {mine}: Address already in use"):
        listen_abstract(mine, 1)


def test_system_without_abstract_names_has_no_such_host(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    assert new_host() is None


def test_user_whom_the_kernel_cannot_tell_from_those_of_other_namespaces_has_no_such_host(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """To a process without a number in its user namespace all other users have its own."""
    with open("/proc/sys/kernel/overflowuid") as file:
        nameless = int(file.read())
    monkeypatch.setattr(os, "geteuid", lambda: nameless)
    assert new_host() is None
    monkeypatch.setattr(os, "geteuid", lambda: nameless - 1)
    assert new_host() is not None


def test_other_end_is_this_user_and_this_process() -> None:
    with listen_abstract(host(), 1) as listener, socket.socket(socket.AF_UNIX) as dialer:
        dialer.connect(listener.getsockname())
        accepted, _ = listener.accept()
        with accepted:
            for end in (dialer, accepted):
                assert other_user(end) is None
                assert process_of(end) == os.getpid()


@needs_root
def test_kernel_tells_a_dialer_that_another_user_listens_and_a_listener_that_another_dials() -> None:
    mine = host()

    def listen(say: int, until: int) -> None:
        with listen_abstract(mine, 1) as listener:
            os.write(say, b"%d" % address_of(listener)[1])
            os.read(until, 1)

    with as_another_user(listen) as other, socket.socket(socket.AF_UNIX) as dialer:
        dialer.connect(name_of((mine, int(other.hear()))))
        assert other_user(dialer) == other.user

    with listen_abstract(mine, 1) as listener:
        name = listener.getsockname()

        def connect(say: int, until: int) -> None:
            with socket.socket(socket.AF_UNIX) as dialer:
                dialer.connect(name)
                os.read(until, 1)

        with as_another_user(connect) as other:
            accepted, _ = listener.accept()
            with accepted:
                assert (other_user(accepted), process_of(accepted)) == (other.user, other.process)
