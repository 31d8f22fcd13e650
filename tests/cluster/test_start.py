"""Starting, with stand-ins for nodes that do as they are told: what the launcher does when a node does not.

A stand-in takes the place of the interpreter in a line `localhost python=...` of the hosts file.
"""

from __future__ import annotations

import os
import re
import signal
import socket
import sys
from itertools import chain
from pathlib import Path

import pytest

from hdphrs.cluster import launch as launcher
from hdphrs.cluster.options import RunOptions
from hdphrs.cluster.plan import NodePlan
from hdphrs.errors import StartError
from hdphrs.program.entry import entry_of
from hdphrs.wire import local
from hdphrs.wire.settings import TOLD_STATUS, NodeSettings, start_node
from tests.cluster.stand_ins import JOINED, OBEDIENT, SERVES, TOLD, stand_in
from tests.cluster.support import Start, environment, processes_of, wait_until, write_program


def hosts(folder: Path, *scripts: str) -> Path:
    """A hosts file with one local node for each of these scripts, the root first."""
    lines = []
    for number, script in enumerate(scripts):
        path = stand_in(folder, f"python{number}", script)
        lines.append(f"localhost slots=1 python={path}\n")
    file = folder / "hosts"
    file.write_text("".join(lines))
    return file


def test_the_program_runs_when_all_nodes_have_joined(start: Start, tmp_path: Path) -> None:
    prog = write_program(tmp_path, "print('hello')")
    run = start("run", "--nodes", hosts(tmp_path, OBEDIENT, OBEDIENT), prog)
    assert run.finish() == (0, "hello\n", "")


def test_all_addresses_are_known_beforehand_and_secrets_are_in_no_argument(start: Start, tmp_path: Path) -> None:
    tell = TOLD + (
        "port = settings.root_addresses and settings.root_addresses[0][1]\n"
        "if settings.root:\n"
        "    listener = socket.socket(fileno=settings.listen_fd)\n"
        "    port = address_of(listener)[1]\n"
        "told = [settings.expected, port, settings.secret.hex(), settings.bind, settings.seed]\n"
        "os.write(2, ' '.join(map(str, told)).encode() + b'\\n')  # at once: they share it\n"
    )
    prog = write_program(tmp_path, "import sys; sys.stdin.read()")
    file = hosts(tmp_path, tell + JOINED + SERVES, tell + "os.read(0, 1)")
    run = start("run", "--seed", 7, "--nodes", file, prog)
    first, second = sorted((run.read_error().split() for _ in range(2)), reverse=True)
    run.assert_all_there(4)
    lines = list(run.processes().values())
    assert run.finish() == (0, "", "")
    assert (first[0], second[0]) == ("1", "0")
    assert first[1:4] == second[1:4]
    assert len(first[2]) == 64
    assert first[3].startswith("@hdphrs-" if sys.platform == "linux" else "127.0.0.1")
    assert {first[4], second[4]} == {"7", "8"}
    assert not any(first[2] in line for line in lines)


@pytest.mark.parametrize("position", [0, 1])
@pytest.mark.parametrize(
    ("end", "status"),
    [("sys.exit(3)", "exit status 3"), ("os.kill(os.getpid(), signal.SIGKILL)", "killed by SIGKILL")],
)
def test_a_node_that_dies_during_start_up_ends_the_run(
    start: Start, tmp_path: Path, position: int, end: str, status: str
) -> None:
    scripts = [TOLD + "os.read(0, 1)\n"] * 3
    scripts[position] = TOLD + end
    run = start("run", "--nodes", hosts(tmp_path, *scripts), write_program(tmp_path, "print('never')"))
    exit_status, output, errors = run.finish()
    assert (exit_status, output) == (1, "")
    kind = "root node" if position == 0 else "node"
    assert errors.splitlines()[-1].startswith(f"hdphrs: the {kind} on localhost (pid ")
    assert errors.splitlines()[-1].endswith(f") ended during start-up ({status})")


@pytest.mark.parametrize("content", [None, "not executable"])
def test_an_interpreter_that_cannot_be_started_is_named(start: Start, tmp_path: Path, content: str | None) -> None:
    python = tmp_path / "python"
    if content is not None:
        python.write_text(content)
    file = tmp_path / "hosts"
    file.write_text(f"localhost\nlocalhost python={python}\n")
    reason = "No such file or directory" if content is None else "Permission denied"
    run = start("run", "--nodes", file, write_program(tmp_path, "print('never')"))
    assert run.finish() == (1, "", f"hdphrs: localhost: cannot start {python}: {reason}\n")


def test_a_program_that_is_interrupted_before_it_began_ends_the_run(start: Start, tmp_path: Path) -> None:
    file = hosts(tmp_path, TOLD + "os.read(0, 1)\n")
    run = start("run", "--nodes", file, write_program(tmp_path, "print('never')"))
    assert wait_until(lambda: len(run.named("hdphrs.program")) == 1)
    run.process.terminate()
    status, output, _ = run.finish()
    assert (status, output) == (-signal.SIGTERM, "")


def test_r12_nodes_that_do_not_join_in_time_end_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in environment(tmp_path).items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(launcher, "START_DEADLINE_S", 0.5)
    idle = NodePlan("localhost", 1, str(stand_in(tmp_path, "python", TOLD + "os.read(0, 1)\n")))
    options = RunOptions(
        program=entry_of(str(write_program(tmp_path, "print('never')")), module=False),
        args=(),
        nodes=(idle, idle),
        ssh=("ssh",),
        reliable=True,
        speculate=False,
        attempts_max=3,
        memory_bytes_max=None,
        detect_after_s=5.0,
        grace_s=25.0,
        restarts_max=0,
        seed=0,
        report=None,
        trace=None,
        verbose=False,
        say=lambda line: pytest.fail(line),
    )
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGCHLD)]
    with pytest.raises(StartError, match=r"not all nodes joined within 0\.5 s \(hosts: localhost\)"):
        launcher.Launcher(options, None).run()
    assert before == [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGCHLD)]
    assert not processes_of(tmp_path)


def test_nodes_that_do_not_end_are_ended(start: Start, tmp_path: Path) -> None:
    stubborn = TOLD + JOINED + "signal.pause()\n"
    prog = write_program(tmp_path, "print('done')")
    run = start("run", "--nodes", hosts(tmp_path, stubborn, stubborn), prog)
    assert run.finish() == (0, "done\n", "")
    run.assert_nothing_left()


def test_a_dead_root_ends_the_run_with_one_line(start: Start, tmp_path: Path) -> None:
    prog = write_program(tmp_path, "import signal; print('up'); signal.pause()")
    run = start("run", "--nodes", hosts(tmp_path, OBEDIENT, OBEDIENT), prog)
    assert run.read_line() == "up"
    os.kill(run.named("hdphrs.node")[0], signal.SIGKILL)
    status, _, errors = run.finish()
    assert status == 1
    (line,) = errors.splitlines()
    assert line.startswith("hdphrs: the root node on localhost (pid ")
    assert line.endswith(") died (killed by SIGKILL); the program cannot go on")


@pytest.mark.parametrize(
    ("status", "fate"), [(TOLD_STATUS, "was told to end"), (3, "died (exit status 3)")], ids=["told", "failed"]
)
def test_a_root_that_ends_after_the_program_that_it_has_left_is_told_of_too(
    start: Start, tmp_path: Path, status: int, fate: str
) -> None:
    """Who dies closes its links first, and the program may be gone before anybody sees that the root is."""
    leaves = "link.shutdown(socket.SHUT_WR)\nwhile link.recv(1024):\n    pass\n"
    prog = write_program(tmp_path, "import hdphrs; hdphrs.get(hdphrs.spawn(abs, -1))")
    root = TOLD + JOINED + "link.recv(1)\n" + leaves + f"sys.exit({status})\n"
    run = start("run", "--nodes", hosts(tmp_path, root), prog)
    ended, said, errors = run.finish()
    assert (ended, said) == (1, "")
    (line,) = errors.splitlines()
    assert re.fullmatch(
        rf"hdphrs: the root node on localhost \(pid \d+\) {re.escape(fate)}; the program cannot go on", line
    )


def test_launcher_is_told_before_the_program_begins(capfd: pytest.CaptureFixture[str]) -> None:
    """Else a node that dies just after the program's first words is taken for one that could not be started."""
    ours, theirs = socket.socketpair()
    unwritable, writing = os.pipe()
    os.close(writing)
    with ours, theirs:
        settings = NodeSettings(
            root=True,
            host="localhost",
            slots=1,
            secret=bytes(32),
            program_fd=theirs.fileno(),
            status_fd=unwritable,
        )
        with start_node(settings, pass_fds=[theirs.fileno(), unwritable]) as process:
            os.close(unwritable)
            theirs.close()
            link = local.Link(ours)
            heard = list(chain.from_iterable(iter(lambda: link.receive(block=True), None)))
    assert process.returncode != 0
    assert "Bad file descriptor" in capfd.readouterr().err
    assert local.READY not in [message[0] for message in heard]


def test_how_a_node_died_is_said_if_asked_and_the_program_goes_on(start: Start, tmp_path: Path) -> None:
    prog = write_program(tmp_path, "print('up'); input(); print('done')")
    run = start("run", "-v", "--nodes", hosts(tmp_path, OBEDIENT, OBEDIENT), prog)
    assert run.read_line() == "up"
    assert wait_until(lambda: len(run.named("hdphrs.node")) == 2)
    victim = run.named("hdphrs.node")[1]
    os.kill(victim, signal.SIGKILL)
    assert run.process.stderr is not None
    lines = [run.process.stderr.readline().decode() for _ in range(4)]
    assert lines[1] == f"hdphrs: started node on localhost (pid {victim}), 1 schedulers\n"
    assert re.fullmatch(r"hdphrs: the seed of this run is ([0-9]+); --seed \1 repeats it\n", lines[2])
    assert lines[3] == f"hdphrs: node on localhost (pid {victim}) died (killed by SIGKILL)\n"
    assert run.finish(b"\n") == (0, "done\n", "")


def test_chaos_kills_whom_the_seed_draws_when_it_is_told(start: Start, tmp_path: Path) -> None:
    prog = write_program(tmp_path, "input(); print('done')")
    file = hosts(tmp_path, *[OBEDIENT] * 4)
    run = start("run", "--kill-at", "0.3,0", "--seed", 5, "--nodes", file, prog)
    assert run.read_error() == "hdphrs: chaos: 2 nodes to be killed; the same ones again with --seed 5"
    line = r"hdphrs: chaos: killing node on localhost \(pid ([0-9]+)\) at ([0-9.]+) s, seed 5"
    told = [re.fullmatch(line, run.read_error()) for _ in range(2)]
    assert [match and match[2] for match in told] == ["0", "0.3"]
    killed = {int(match[1]) for match in told if match}
    assert len(killed) == 2
    assert wait_until(lambda: not killed & run.processes().keys())
    assert any(line.rstrip().endswith(" -m hdphrs.node root") for line in run.processes().values())
    assert run.finish(b"\n") == (0, "done\n", "")


def test_a_seed_is_drawn_and_told_when_nodes_are_to_die(start: Start, tmp_path: Path) -> None:
    prog = write_program(tmp_path, "print('done')")
    run = start("run", "--chaos-monkey", "--nodes", hosts(tmp_path, OBEDIENT, OBEDIENT), prog)
    status, output, errors = run.finish()
    assert (status, output) == (0, "done\n")
    assert "hdphrs: chaos: 1 node to be killed; the same ones again with --seed " in errors


def test_a_launcher_that_is_killed_leaves_nothing(start: Start, tmp_path: Path) -> None:
    prog = write_program(tmp_path, "import signal; print('up'); signal.pause()")
    run = start("run", "--nodes", hosts(tmp_path, OBEDIENT, OBEDIENT), prog)
    assert run.read_line() == "up"
    run.assert_all_there(4)
    run.process.kill()
    run.assert_nothing_left()
