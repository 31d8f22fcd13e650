"""Opening connections: what can go wrong between one system call and the next."""

from __future__ import annotations

import errno
import socket

import pytest
import trio

from hdphrs.transport.streams import Lost, connect


def test_connect_to_a_peer_that_dies_at_once_is_lost_not_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel knows no peer any more when it is asked for its name."""

    async def open_and_lose(host: str, port: int) -> trio.SocketStream:
        return trio.SocketStream(trio.socket.from_stdlib_socket(unconnected))

    async def main() -> None:
        with pytest.raises(Lost, match="connection lost at once") as caught:
            await connect(("127.0.0.1", 1))
        assert not caught.value.refused

    unconnected = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    with socket.create_server(("127.0.0.1", 0)) as server:
        unconnected.connect(server.getsockname())
        accepted, _ = server.accept()
        accepted.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\0\0\0\0\0\0\0")
        accepted.close()  # a reset: the client's socket is no longer connected
        with pytest.raises(OSError, match="not connected"):
            unconnected.getpeername()
        monkeypatch.setattr(trio, "open_tcp_stream", open_and_lose)
        monkeypatch.setattr(trio.SocketStream, "__init__", lambda stream, sock: setattr(stream, "socket", sock))
        trio.run(main)
    unconnected.close()


def test_connect_without_a_descriptor_left_says_how_many_there_may_be(monkeypatch: pytest.MonkeyPatch) -> None:
    async def have_none(host: str, port: int) -> trio.SocketStream:
        raise OSError(errno.EMFILE, "Too many open files")

    async def main() -> None:
        with pytest.raises(Lost, match=r"cannot connect: Too many open files: .* raise `ulimit -n`") as caught:
            await connect(("127.0.0.1", 1))
        assert caught.value.exhausted
        assert not caught.value.refused

    monkeypatch.setattr(trio, "open_tcp_stream", have_none)
    trio.run(main)
