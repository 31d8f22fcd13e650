"""An OpenSSH server of our own: keys, configuration, and its process on a high port of the loopback."""

from __future__ import annotations

import getpass
import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.cluster.support import wait_until

_PRIVILEGE_SEPARATION = Path("/run/sshd")


class SshServer:
    """A running server, and the ways to reach it."""

    def __init__(self, folder: Path, port: int) -> None:
        self._folder = folder
        self._port = port

    def command(self, *, key: str = "user", port: int | None = None) -> str:
        """The value of `--ssh` that reaches this server, or fails to, with another key or port."""
        config = self._folder / f"config-{key}-{port}"
        config.write_text(
            f"Port {port or self._port}\nUser {getpass.getuser()}\nIdentityFile {self._folder / key}\n"
            f"IdentitiesOnly yes\nUserKnownHostsFile {self._folder / 'known_hosts'}\n"
            "StrictHostKeyChecking yes\nGlobalKnownHostsFile /dev/null\n"
        )
        return f"ssh -F {config}"


def missing() -> str | None:
    """Why there can be no server here."""
    if shutil.which("ssh") is None:
        return "ssh is not installed"
    if _sshd() is None:
        return "sshd is not installed (Debian: openssh-server)"
    return None


def _sshd() -> str | None:
    return shutil.which("sshd", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")


@contextmanager
def unused_port() -> Iterator[int]:
    """A port of the loopback on which nobody listens, nor can as long as this is open."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        yield int(bound.getsockname()[1])


@contextmanager
def ssh_server(folder: Path) -> Iterator[SshServer]:
    """Start a server that lets the owner of the key `user` in, and not that of `stranger`."""
    for name in ("host", "user", "stranger"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", name, "-f", folder / name], check=True)
    shutil.copy(folder / "user.pub", folder / "authorized_keys")
    if os.getuid() == 0:
        _PRIVILEGE_SEPARATION.mkdir(mode=0o755, exist_ok=True)  # it stays: servers of other test runs need it too
    while True:
        with unused_port() as port:
            free = port
        process = _listening(folder, free)
        if process is not None:
            break
    try:
        yield SshServer(folder, free)
    finally:
        process.terminate()
        process.wait()


def _listening(folder: Path, port: int) -> subprocess.Popen[bytes] | None:
    """A server on this port; None if somebody else has taken it since it was seen to be free."""
    (folder / "known_hosts").write_text(f"[127.0.0.1]:{port} {(folder / 'host.pub').read_text()}")
    (folder / "sshd_config").write_text(
        f"ListenAddress 127.0.0.1\nPort {port}\nHostKey {folder / 'host'}\nPidFile none\n"
        f"AuthorizedKeysFile {folder / 'authorized_keys'}\nStrictModes no\nUsePAM no\n"
        "PasswordAuthentication no\nKbdInteractiveAuthentication no\nPermitRootLogin yes\n"
    )
    log = folder / "sshd.log"
    sshd = _sshd()
    assert sshd is not None
    with log.open("wb") as errors:
        process = subprocess.Popen(
            [sshd, "-D", "-e", "-f", folder / "sshd_config"], stdin=subprocess.DEVNULL, stderr=errors
        )
    try:
        assert wait_until(lambda: "Server listening" in log.read_text() or process.poll() is not None), log.read_text()
    except BaseException:
        process.kill()
        raise
    if process.poll() is None:
        return process
    assert "Address already in use" in log.read_text(), log.read_text()
    return None
