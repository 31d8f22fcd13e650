"""Hosts behind ssh, with a real OpenSSH server.  `127.0.0.1` goes through it, `localhost` does not."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from hdphrs.cluster.nodes import ssh_command
from tests.cluster import sshd
from tests.cluster.sshd import SshServer, ssh_server, unused_port
from tests.cluster.stand_ins import JOINED, OBEDIENT, TOLD, interpreter, stand_in
from tests.cluster.support import GONE_S, Run, Start, wait_until, write_program
from tests.processes import stat

pytestmark = pytest.mark.skipif(sshd.missing() is not None, reason=str(sshd.missing()))


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SshServer]:
    with ssh_server(tmp_path_factory.mktemp("sshd")) as running:
        yield running


def hosts(folder: Path, *remote: Path | str) -> Path:
    """A hosts file with a local root that stands in, and one line for each of these interpreters behind ssh."""
    root = stand_in(folder, "root", OBEDIENT)
    file = folder / "hosts"
    lines = [f"localhost slots=1 python={root}", *(f"127.0.0.1 slots=1 python={path}" for path in remote)]
    file.write_text("\n".join(lines))
    return file


def unready_hosts(folder: Path, remote: Path | str) -> Path:
    """The same, but the root is never ready."""
    file = hosts(folder, remote)
    stand_in(folder, "root", TOLD + "os.read(0, 1)\n")
    return file


def named(run: Run, script: str) -> list[int]:
    return [pid for pid, line in run.processes().items() if f"/{script} " in line]


def test_a_node_behind_ssh_gets_its_settings_and_its_output_is_marked(
    start: Start, server: SshServer, tmp_path: Path
) -> None:
    # More than a pipe holds, so that it is not sent in one piece.
    (tmp_path / "large.py").write_bytes(os.urandom(100_000).hex().encode())
    told = TOLD + (
        "print('before all have joined', file=sys.stderr)\n"
        "open('told', 'w').write(repr((settings.root_addresses, settings.bind, settings.credentials is None,\n"
        "    len(settings.program_archive) > 80000, sys.flags.safe_path)))\n"
        "os.kill(os.getpid(), signal.SIGSTOP)\n"
        "print('to the output', flush=True)\n"
        "print('to the errors', file=sys.stderr)\n"
        "os.read(0, 1)\n"
    )
    prog = write_program(tmp_path, "print('up', flush=True); input(); print('done')")
    remote = stand_in(tmp_path, "remote", f"import os; os.chdir({str(tmp_path)!r})\n{told}")
    run = start("run", "--ssh", server.command(), "--nodes", hosts(tmp_path, remote), prog)
    assert run.read_line() == "up"
    assert wait_until(lambda: any("T" in stat(pid) for pid in named(run, "remote.script")))
    (pid,) = named(run, "remote.script")
    os.kill(pid, signal.SIGCONT)
    assert run.read_line() == "to the output"
    said = iter(run.read_error, "")  # it ends with the run, even if it has not come so far
    assert next(line for line in said if "before" not in line) == "[127.0.0.1] to the errors"
    assert run.finish(b"\n") == (0, "done\n", "")
    addresses = r"\(\(\('127.0.0.1', [0-9]+\), .*\), '0.0.0.0', False, True, True\)"
    assert re.fullmatch(addresses, (tmp_path / "told").read_text())


def test_the_end_of_the_program_is_the_end_of_all_nodes(start: Start, server: SshServer, tmp_path: Path) -> None:
    remote = stand_in(tmp_path, "remote", OBEDIENT)
    prog = write_program(tmp_path, "print('done')")
    run = start("run", "--ssh", server.command(), "--nodes", hosts(tmp_path, remote, remote), prog)
    assert run.finish() == (0, "done\n", "")


@pytest.mark.parametrize("end", ["killed", "stubborn"])
def test_nothing_is_left_behind_ssh(start: Start, server: SshServer, tmp_path: Path, end: str) -> None:
    # The root that stands in lets the program begin before the other has come that far; and an interpreter that is
    # still being started, on a busy machine, takes longer to its end than what is to end may.
    told = tmp_path / "told"
    remote = stand_in(tmp_path, "remote", TOLD + f"open({str(told)!r}, 'w').close()\n" + JOINED + "os.read(0, 1)\n")
    prog = write_program(tmp_path, "print('up'); input()")
    run = start("run", "--ssh", server.command(), "--nodes", hosts(tmp_path, remote), prog)
    assert run.read_line() == "up"
    assert wait_until(told.exists)
    if end == "killed":
        run.process.kill()
    else:
        assert run.finish(b"\n")[0] == 0
    run.assert_nothing_left()


def test_chaos_reaches_a_node_behind_ssh_by_its_leash(start: Start, server: SshServer, tmp_path: Path) -> None:
    mortal = TOLD + "if os.read(0, 1) == b'K': os.kill(os.getpid(), signal.SIGKILL)\n"
    file = hosts(tmp_path, stand_in(tmp_path, "remote", mortal))
    prog = write_program(tmp_path, "input(); print('done')")
    run = start("run", "--kill-at", "0", "--seed", 1, "--ssh", server.command(), "--nodes", file, prog)
    assert run.process.stderr is not None
    said = [run.process.stderr.readline().decode() for _ in range(2)]
    assert said[1] == "hdphrs: chaos: killing node on 127.0.0.1 at 0 s, seed 1\n"
    assert wait_until(lambda: not named(run, "remote.script"))
    assert run.finish(b"\n") == (0, "done\n", "")


def test_a_refused_key_is_said_in_the_words_of_ssh(start: Start, server: SshServer, tmp_path: Path) -> None:
    file = unready_hosts(tmp_path, "python3")
    prog = write_program(tmp_path, "print('never')")
    status, output, errors = start("run", "--ssh", server.command(key="stranger"), "--nodes", file, prog).finish()
    assert (status, output) == (1, "")
    assert re.fullmatch(r"hdphrs: cannot reach 127\.0\.0\.1 with ssh: .*Permission denied \(publickey\)\.\n", errors)


def test_a_port_where_nobody_listens_is_said_in_the_words_of_ssh(
    start: Start, server: SshServer, tmp_path: Path
) -> None:
    file = unready_hosts(tmp_path, "python3")
    prog = write_program(tmp_path, "print('never')")
    with unused_port() as port:
        command = server.command(port=port)
        status, output, errors = start("run", "--ssh", command, "--nodes", file, prog).finish()
    assert (status, output) == (1, "")
    assert re.fullmatch(r"hdphrs: cannot reach 127\.0\.0\.1 with ssh: .*Connection refused\n", errors)


def test_a_missing_interpreter_is_named(start: Start, server: SshServer, tmp_path: Path) -> None:
    file = unready_hosts(tmp_path, "/nonexistent/python")
    prog = write_program(tmp_path, "print('never')")
    status, output, errors = start("run", "--ssh", server.command(), "--nodes", file, prog).finish()
    assert (status, output) == (1, "")
    assert re.fullmatch(
        r"hdphrs: 127\.0\.0\.1: cannot start /nonexistent/python: .*No such file or directory "
        r"\(name another one with python=PATH in the hosts file\)\n",
        errors,
    )


def test_another_version_of_python_is_named(start: Start, server: SshServer, tmp_path: Path) -> None:
    other = (
        "import platform, runpy, sys\n"
        "platform.python_version_tuple = lambda: ('3', '99', '0')\n"
        "sys.argv = ['node']\n"
        "runpy.run_module('hdphrs.node', run_name='__main__')\n"
    )
    file = unready_hosts(tmp_path, stand_in(tmp_path, "remote", other))
    prog = write_program(tmp_path, "print('never')")
    status, output, errors = start("run", "--ssh", server.command(), "--nodes", file, prog).finish()
    assert (status, output) == (1, "")
    assert re.fullmatch(
        r"hdphrs: 127\.0\.0\.1: the node ended during start-up \(exit status 1\): "
        r"this host runs Python 3\.99, the program's host runs [0-9.]+; install the same version.*\n",
        errors,
    )


def test_a_host_without_hdphrs_is_told_so(start: Start, server: SshServer, tmp_path: Path) -> None:
    file = unready_hosts(tmp_path, interpreter(tmp_path, "remote", "-I", "-S"))
    prog = write_program(tmp_path, "print('never')")
    run = start("run", "--ssh", server.command(), "--nodes", file, prog)
    assert run.finish() == (1, "", f"hdphrs: 127.0.0.1: hdphrs is not installed for {tmp_path}/remote\n")


def test_a_command_for_ssh_that_does_not_exist_is_named(start: Start, tmp_path: Path) -> None:
    file = unready_hosts(tmp_path, "python3")
    prog = write_program(tmp_path, "print('never')")
    run = start("run", "--ssh", "/nonexistent/ssh", "--nodes", file, prog)
    assert run.finish() == (
        1,
        "",
        "hdphrs: cannot start /nonexistent/ssh to reach 127.0.0.1: No such file or directory\n",
    )


@pytest.mark.parametrize("asks", ["5", "77"])
def test_ssh_asks_a_silent_host_whether_it_lives_unless_the_user_wants_it_otherwise(
    server: SshServer, asks: str
) -> None:
    words = [*server.command().split(), *(["-o", f"ServerAliveInterval={asks}"] if asks != "5" else [])]
    command = ssh_command(words, "127.0.0.1", "true")
    assert subprocess.run(command, check=False).returncode == 0
    told = subprocess.run([command[0], "-G", *command[1:]], capture_output=True, text=True, check=True).stdout
    assert {f"serveraliveinterval {asks}", "serveralivecountmax 3", "connecttimeout 15"} <= set(told.splitlines())


def test_ssh_whose_network_is_gone_ends_with_its_launcher(start: Start, server: SshServer, tmp_path: Path) -> None:
    remote = stand_in(tmp_path, "remote", OBEDIENT)
    prog = write_program(tmp_path, "print('up', flush=True); input()")
    run = start("run", "--ssh", server.command(), "--nodes", hosts(tmp_path, remote), prog)
    assert run.read_line() == "up"
    (ssh,) = [pid for pid, line in run.processes().items() if line.startswith("ssh ")]
    servers = connected_to(ssh)
    try:
        for pid in servers:  # nothing that the ssh sends is answered any more
            os.kill(pid, signal.SIGSTOP)
        run.process.kill()
        assert wait_until(lambda: not alive(ssh), GONE_S)
    finally:
        for pid in servers:
            os.kill(pid, signal.SIGCONT)


def alive(pid: int) -> bool:
    return (stat(pid) or "Z")[0] != "Z"


def connected_to(ssh: int) -> set[int]:
    """The processes of the server that serve this client: those that have its connection open."""
    rows = [row.split() for row in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    mine = sockets(ssh)
    theirs = {(row[2], row[1]) for row in rows if f"socket:[{row[9]}]" in mine}
    far = {f"socket:[{row[9]}]" for row in rows if (row[1], row[2]) in theirs}
    return {int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit() and sockets(entry.name) & far}


def sockets(pid: int | str) -> set[str]:
    found = set()
    with suppress(OSError):
        for entry in Path(f"/proc/{pid}/fd").iterdir():
            found.add(os.readlink(entry))
    return found
