"""The program under `hdphrs run` is to its user what `python prog.py` would be: arguments, streams, signals, status.

The nodes are stand-ins: what is tested is the launcher and the program's process, not the cluster.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cluster.stand_ins import OBEDIENT, TOLD, stand_in
from tests.cluster.support import PATIENCE_S, Run, Start, environment, wait_until, write_program


@pytest.fixture
def nodes(tmp_path: Path) -> Path:
    """A hosts file with two local nodes."""
    file = tmp_path / "hosts"
    file.write_text(f"localhost slots=1 python={stand_in(tmp_path, 'python', OBEDIENT)}\n" * 2)
    return file


@pytest.fixture
def silent(tmp_path: Path) -> Path:
    """A hosts file with a node that is never ready."""
    file = tmp_path / "hosts"
    file.write_text(f"localhost slots=1 python={stand_in(tmp_path, 'python', TOLD + 'os.read(0, 1)')}\n")
    return file


def waiting(start: Start, nodes: Path, folder: Path, before: str = "") -> Run:
    """A run whose program has printed `up`, and waits."""
    # Not `pause()`: a signal that arrives just before it would be slept over for ever.
    text = f"import signal, sys, time\n{before}\nprint('up', flush=True)\nwhile True: time.sleep(0.01)\n"
    run = start("run", "--nodes", nodes, write_program(folder, text))
    assert run.read_line() == "up"
    return run


def test_all_that_follows_the_program_is_its_own(start: Start, nodes: Path, tmp_path: Path) -> None:
    prog = write_program(tmp_path, "import sys; print(sys.argv, __name__, __file__)")
    arguments = ["-h", "--cores", "0", "--", "x y", "", "ü", "--version"]
    status, output, errors = start("run", "--nodes", nodes, "--", "prog.py", *arguments).finish()
    assert (status, errors) == (0, "")
    assert output == f"{['prog.py', *arguments]} __main__ {prog}\n"
    assert prog.exists()


def test_standard_streams_are_the_programs(start: Start, nodes: Path, tmp_path: Path) -> None:
    prog = write_program(
        tmp_path, "import sys; data = sys.stdin.read(); print(data[::-1], end=''); print('aside', file=sys.stderr)"
    )
    assert start("run", "--nodes", nodes, prog).finish(b"a\nb") == (0, "b\na", "aside\n")


@pytest.mark.parametrize(
    ("text", "status", "complaint"),
    [
        ("pass", 0, ""),
        ("import sys; sys.exit(0)", 0, ""),
        ("import sys; sys.exit(77)", 77, ""),
        ("import sys; sys.exit('no such luck')", 1, "no such luck\n"),
        ("import os; os._exit(3)", 3, ""),
        ("raise ValueError('mine')", 1, "ValueError: mine\n"),
        ("1 +", 1, "SyntaxError: invalid syntax\n"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", -signal.SIGKILL, ""),
        ("import os, signal; os.kill(os.getpid(), signal.SIGUSR1)", -signal.SIGUSR1, ""),
        ("import os; os.abort()", -signal.SIGABRT, ""),
        ("raise KeyboardInterrupt", -signal.SIGINT, "KeyboardInterrupt\n"),
    ],
)
def test_the_exit_status_is_the_programs(
    start: Start, nodes: Path, tmp_path: Path, text: str, status: int, complaint: str
) -> None:
    code, output, errors = start("run", "--nodes", nodes, write_program(tmp_path, text)).finish()
    assert (code, output) == (status, "")
    assert errors.endswith(complaint)
    assert bool(errors) == bool(complaint)


def test_a_traceback_shows_the_program_and_nothing_of_ours(start: Start, nodes: Path, tmp_path: Path) -> None:
    prog = write_program(tmp_path, "def f():\n    raise ValueError('mine')\nf()\n")
    _, _, errors = start("run", "--nodes", nodes, prog).finish()
    plain = subprocess.run([sys.executable, prog], stderr=subprocess.PIPE, text=True, cwd=tmp_path)
    assert errors == plain.stderr


def test_a_program_may_handle_ctrl_c(start: Start, nodes: Path, tmp_path: Path) -> None:
    prog = write_program(
        tmp_path,
        "import time\ntry:\n    print('up', flush=True)\n    while True: time.sleep(0.01)\n"
        "except KeyboardInterrupt:\n    print('tidy')\n    raise SystemExit(5)\n",
    )
    run = start("run", "--nodes", nodes, prog)
    assert run.read_line() == "up"
    run.interrupt()
    assert run.finish() == (5, "tidy\n", "")


def test_ctrl_c_ends_a_program_that_does_not_handle_it(start: Start, nodes: Path, tmp_path: Path) -> None:
    run = waiting(start, nodes, tmp_path)
    run.interrupt()
    status, output, errors = run.finish()
    assert (status, output) == (-signal.SIGINT, "")
    assert errors.endswith("KeyboardInterrupt\n")
    assert "hdphrs" not in errors


INTERRUPTED_WHEN = """import signal, sys, time
if {circumstance}:
    print("up", flush=True)
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and signal.SIGINT not in signal.sigpending():
        time.sleep(0.01)
"""
"""Waits, under the given circumstance, for SIGINT: for one that is blocked, or for the end of the process."""


@pytest.mark.parametrize(
    ("module", "circumstance"),
    [
        ("click", "True"),  # the command has just begun
        ("sitecustomize", '"hdphrs.program" in sys.orig_argv'),  # the program's interpreter has
        ("msgpack", '"hdphrs.program" in sys.orig_argv'),  # the program's process loads what it needs
    ],
)
def test_ctrl_c_before_the_program_has_begun_shows_no_traceback(
    start: Start, silent: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, module: str, circumstance: str
) -> None:
    library = tmp_path / "library"
    library.mkdir()
    real = f"sys.path.remove({os.fspath(library)!r})\ndel sys.modules[{module!r}]\nimport {module}\n"
    text = INTERRUPTED_WHEN.format(circumstance=circumstance) + ("" if module == "sitecustomize" else real)
    write_program(library, text, f"{module}.py")
    monkeypatch.setenv("PYTHONPATH", os.fspath(library))
    run = start("run", "--nodes", silent, write_program(tmp_path, "print('begun')"))
    assert run.read_line() == "up"
    run.interrupt()
    assert run.finish() == (-signal.SIGINT, "", "")


def test_ctrl_c_while_the_program_waits_for_its_nodes_shows_no_traceback(
    start: Start, silent: Path, tmp_path: Path
) -> None:
    run = start("run", "--nodes", silent, write_program(tmp_path, "print('begun')"))
    assert wait_until(lambda: run.named("hdphrs.program"))
    run.interrupt()
    assert run.finish() == (-signal.SIGINT, "", "")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_to_the_launcher_reaches_the_program(
    start: Start, nodes: Path, tmp_path: Path, number: signal.Signals
) -> None:
    run = waiting(start, nodes, tmp_path, f"signal.signal({int(number)}, lambda *_: sys.exit(9))")
    run.process.send_signal(number)
    assert run.finish() == (9, "", "")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_that_ends_the_program_ends_the_launcher(
    start: Start, nodes: Path, tmp_path: Path, number: signal.Signals
) -> None:
    run = waiting(start, nodes, tmp_path)
    run.process.send_signal(number)
    assert run.finish() == (-number, "", "")


def test_a_program_under_nohup_does_not_hear_of_the_hangup(nodes: Path, tmp_path: Path) -> None:
    prog = write_program(
        tmp_path, "import signal; print(signal.getsignal(signal.SIGHUP) == signal.SIG_IGN, flush=True)"
    )
    command = [sys.executable, "-m", "hdphrs", "run", "--nodes", str(nodes), str(prog)]
    run = subprocess.run(
        ["nohup", *command],
        capture_output=True,
        cwd=tmp_path,
        env=os.environ | environment(tmp_path),
        timeout=PATIENCE_S,
    )
    assert (run.returncode, run.stdout) == (0, b"True\n")


@pytest.mark.parametrize("victim", ["program", "launcher"])
def test_kill_9_leaves_nothing(start: Start, nodes: Path, tmp_path: Path, victim: str) -> None:
    run = waiting(start, nodes, tmp_path)
    run.assert_all_there(4)
    os.kill(run.named("hdphrs.program")[0] if victim == "program" else run.process.pid, signal.SIGKILL)
    assert run.finish() == (-signal.SIGKILL, "", "")
    run.assert_nothing_left()


def test_a_stopped_run_goes_on(start: Start, nodes: Path, tmp_path: Path) -> None:
    run = waiting(start, nodes, tmp_path)
    os.killpg(run.process.pid, signal.SIGSTOP)
    os.killpg(run.process.pid, signal.SIGCONT)
    run.process.terminate()
    assert run.finish() == (-signal.SIGTERM, "", "")


def test_a_program_that_is_part_of_a_run_may_start_another(start: Start, nodes: Path, tmp_path: Path) -> None:
    write_program(tmp_path, "print('inner', flush=True)", "inner.py")
    prog = write_program(
        tmp_path,
        "import subprocess, sys\n"
        f"command = [sys.executable, '-m', 'hdphrs', 'run', '--nodes', {str(nodes)!r}, 'inner.py']\n"
        "print('outer', subprocess.run(command).returncode)\n",
    )
    run = start("run", "--nodes", nodes, prog)
    assert run.finish() == (0, "inner\nouter 0\n", "")
    assert wait_until(lambda: not run.processes())
