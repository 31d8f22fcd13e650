"""What the command line refuses: one clear line, status 2, and nothing started."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hdphrs import __version__
from hdphrs.form import form
from tests.cluster.support import Start, write_program

NO_PROGRAM = "cannot run nowhere.py: No such file or directory"


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        ([], "Missing command. See hdphrs --help"),
        (["frob"], "No such command 'frob'. See hdphrs --help"),
        (["prog.py"], "No such command 'prog.py'. To run it: hdphrs run prog.py"),
        (["run"], "Missing argument 'prog.py'."),
        (["run", "nowhere.py"], NO_PROGRAM),
        (["run", "."], "cannot run .: there is no __main__.py in this folder"),
        (["run", "prog.py/x"], "cannot run prog.py/x: Not a directory"),
        (["run", "/dev/null"], "cannot run /dev/null: it is not a regular file"),
        (["run", "--cores", "0", "prog.py"], "Invalid value for '--cores': 0 is not in the range 1<=x<=1024."),
        (["run", "--cores", "x", "prog.py"], "Invalid value for '--cores': 'x' is not a valid integer range."),
        (
            ["run", "--local-nodes", "-1", "prog.py"],
            "Invalid value for '--local-nodes': -1 is not in the range 1<=x<=256.",
        ),
        (
            ["run", "--kill-at", "3,nan", "prog.py"],
            "Invalid value for '--kill-at': expected seconds, at least 0, not 'nan'",
        ),
        (
            ["run", "--kill-at", "", "prog.py"],
            "Invalid value for '--kill-at': expected seconds, at least 0, not ''",
        ),
        (
            ["run", "--memory-max", "2X", "prog.py"],
            "Invalid value for '--memory-max': expected a size like 2G, at least 64M, not '2X'",
        ),
        (
            ["run", "--memory-max", "63M", "prog.py"],
            "Invalid value for '--memory-max': expected a size like 2G, at least 64M, not '63M'",
        ),
        (
            ["run", "--detect-after", "0", "prog.py"],
            "Invalid value for '--detect-after': expected seconds, at least 0.1, not '0'",
        ),
        (
            ["run", "--attempts", "0", "prog.py"],
            "Invalid value for '--attempts': 0 is not in the range 1<=x<=1000.",
        ),
        (
            ["run", "--grace", "-1", "prog.py"],
            "Invalid value for '--grace': expected seconds, at least 0, not '-1'",
        ),
        (
            ["run", "--restarts", "5/m", "prog.py"],
            "Invalid value for '--restarts': expected restarts an hour like 5/h, not '5/m'",
        ),
        (
            ["run", "--restarts", "5", "--sequential", "prog.py"],
            "--sequential and --restarts exclude each other",
        ),
        (["drain"], "Missing argument 'HOST[:PID]...'."),
        (["drain", "host:x"], "expected HOST or HOST:PID, not 'host:x'"),
        (["drain", "localhost:1"], "process 1 is no node of yours"),
        (["run", "--ssh", "", "--nodes", "hosts", "prog.py"], "--ssh expects a command"),
        (["run", "--ssh", "'", "--nodes", "hosts", "prog.py"], '--ssh "\'": No closing quotation'),
        (["run", "--nodes", "h", "--local-nodes", "2", "prog.py"], "--nodes and --local-nodes exclude each other"),
        (
            ["run", "--local-nodes", "3", "--kill-at", "1", "--chaos-monkey", "prog.py"],
            "--kill-at and --chaos-monkey exclude each other",
        ),
        (["run", "--sequential", "--unreliable", "prog.py"], "--sequential and --unreliable exclude each other"),
        (["run", "--sequential", "--local-nodes", "2", "prog.py"], "--sequential and --local-nodes exclude each other"),
        (["run", "--sequential", "--report", "x", "prog.py"], "--sequential and --report exclude each other"),
        (
            ["run", "--sequential", "--trace-protocol", "x", "prog.py"],
            "--sequential and --trace-protocol exclude each other",
        ),
        (["replay"], "Missing argument 'DIR'."),
        (["replay", "nowhere"], "cannot read the traces in nowhere: No such file or directory"),
        (["replay", "prog.py"], "cannot read the traces in prog.py: Not a directory"),
        (["replay", "."], "there is no trace in ."),
        (
            ["run", "--chaos-monkey", "prog.py"],
            "--chaos-monkey needs a second node: the root node is never killed",
        ),
        (
            ["run", "--local-nodes", "2", "--kill-at", "1,2", "prog.py"],
            "--kill-at names 2 times, but there is 1 node beside the root node, which is never killed",
        ),
        (["run", "--nodes", "nowhere", "prog.py"], "cannot read the hosts file nowhere: No such file or directory"),
        (
            ["run", "--nodes", "bad-hosts", "prog.py"],
            "bad-hosts, line 2: expected slots=N or python=PATH after the host, not 'cores=3'",
        ),
        (
            ["run", "--nodes", "/dev/null", "prog.py"],
            "/dev/null names no host; expected lines of the form: host [slots=N] [python=PATH]",
        ),
    ],
)
def test_bad_input_is_refused_in_one_line(start: Start, tmp_path: Path, arguments: list[str], line: str) -> None:
    write_program(tmp_path, "print('never')")
    (tmp_path / "hosts").write_text("localhost\n")
    (tmp_path / "bad-hosts").write_text("localhost\nlocalhost cores=3\n")
    assert start(*arguments).finish() == (2, "", f"hdphrs: {line}\n")


def test_a_report_that_could_not_be_written_is_refused_before_the_run(start: Start, tmp_path: Path) -> None:
    prog = write_program(tmp_path, "print('never')")
    status, output, errors = start("run", "--report", tmp_path, prog).finish()
    assert (status, output) == (2, "")
    assert errors == f"hdphrs: cannot write the report {tmp_path}: it is a directory\n"
    status, output, errors = start("run", "--report", "no/where", prog).finish()
    assert (status, output) == (2, "")
    assert errors.endswith(f"/no/where: there is no directory {tmp_path / 'no'}\n")


@pytest.mark.skipif(os.getuid() == 0, reason="root may read every file")
def test_an_unreadable_program_is_refused(start: Start, tmp_path: Path) -> None:
    prog = write_program(tmp_path, "print('never')")
    prog.chmod(0)
    assert start("run", prog).finish() == (2, "", f"hdphrs: cannot run {prog}: Permission denied\n")


def test_the_version_is_told(start: Start) -> None:
    assert start("--version").finish() == (0, f"hdphrs {__version__} ({form()})\n", "")


def test_help_is_ours_before_the_program(start: Start) -> None:
    status, output, errors = start("run", "--help").finish()
    assert (status, errors) == (0, "")
    assert "--kill-at" in output


def test_sequential_mode_is_one_process_with_arguments_streams_and_status_of_the_program(
    start: Start, tmp_path: Path
) -> None:
    prog = write_program(
        tmp_path,
        "import hdphrs, sys\n"
        "print(sys.argv[1:], hdphrs.get(hdphrs.spawn(pow, 2, 10)), input(), hdphrs.all_nodes(), flush=True)\n"
        "sys.stdin.read()\n"
        "sys.exit(7)\n",
    )
    run = start("run", "--sequential", prog, "-h", "--cores", "0")
    assert run.process.stdin is not None
    run.process.stdin.write(b"hello\n")
    run.process.stdin.flush()
    assert run.read_line() == "['-h', '--cores', '0'] 1024 hello [0]"
    assert len(run.processes()) == 1
    assert run.finish() == (7, "", "")
