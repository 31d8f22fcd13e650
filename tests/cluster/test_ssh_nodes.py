"""Real nodes behind a real OpenSSH server: the whole way, with mutual TLS."""

from __future__ import annotations

import json
import os
import re
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from hdphrs.api.depth import deep
from hdphrs.observe.replay import replay
from tests.cluster import sshd
from tests.cluster.sshd import SshServer, ssh_server
from tests.cluster.stand_ins import interpreter
from tests.cluster.support import Start, wait_until, write_program

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sshd.missing() is not None, reason=str(sshd.missing())),
]

WORK = """
import sys
import hdphrs
import helper

def work(low, high):
    if high - low <= 10:
        return sum(helper.phi(n) for n in range(low, high))
    middle = (low + high) // 2
    right = hdphrs.spawn(work, middle, high)
    return work(low, middle) + hdphrs.get(right)

if __name__ == "__main__":
    print(hdphrs.all_nodes(), flush=True)
    if len(sys.argv) > 1:
        input()
    placed = [hdphrs.spawn_at(node, helper.phi, 97) for node in hdphrs.all_nodes()]
    print([hdphrs.get(future) for future in placed])
    print("result:", hdphrs.run(work, 1, 1001))
"""
HELPER = """
from math import gcd

def phi(n):
    return sum(gcd(n, k) == 1 for k in range(1, n + 1))
"""
RESULT = "result: 304192"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SshServer]:
    with ssh_server(tmp_path_factory.mktemp("sshd")) as running:
        yield running


@pytest.fixture
def program(tmp_path: Path) -> Path:
    write_program(tmp_path, HELPER, "helper.py")
    return write_program(tmp_path, WORK)


@pytest.fixture
def hosts(tmp_path: Path) -> Path:
    """A local root, another local node, and two behind ssh."""
    python = interpreter(tmp_path, "python")
    file = tmp_path / "hosts"
    file.write_text(f"localhost slots=1\n127.0.0.1 slots=1 python={python}\n" * 2)
    return file


def test_nodes_behind_ssh_work_with_the_programs_own_modules(
    start: Start, server: SshServer, hosts: Path, program: Path, tmp_path: Path
) -> None:
    report = tmp_path / "report.json"
    run = start("run", "--ssh", server.command(), "--nodes", hosts, "--report", report, program)
    status, output, errors = run.finish()
    assert (status, errors) == (0, "")
    assert output.splitlines() == ["[0, 1, 2, 3]", "[96, 96, 96, 96]", RESULT]
    nodes = json.loads(report.read_text())["nodes"]
    assert sorted(node["host"] for node in nodes) == ["127.0.0.1", "127.0.0.1", "localhost", "localhost"]


def test_chaos_behind_ssh_leaves_the_answer_right_and_the_record_conforms(
    start: Start, server: SshServer, hosts: Path, program: Path, tmp_path: Path
) -> None:
    options = ("--ssh", server.command(), "--nodes", hosts, "--trace-protocol", tmp_path / "trace")
    run = start("run", *options, "--kill-at", "0,0,0", program, "wait")
    assert run.read_line() == "[0, 1, 2, 3]"
    assert wait_until(lambda: len(run.named("hdphrs.node")) == 1)
    status, output, errors = run.finish(b"\n")
    assert (status, output.splitlines()[-1]) == (0, RESULT)
    assert errors.count("hdphrs: chaos: killing node on ") == 3
    verdict = replay(str(tmp_path / "trace"))
    assert verdict.conforming, verdict.sentences()
    assert verdict.tally.deaths == 3


@pytest.mark.parametrize("victim", ["launcher", "root node", "program"])
def test_kill_9_leaves_nothing_behind_ssh(
    start: Start, server: SshServer, hosts: Path, program: Path, victim: str
) -> None:
    run = start("run", "--ssh", server.command(), "--nodes", hosts, program, "wait")
    assert run.read_line() == "[0, 1, 2, 3]"
    pid = {
        "launcher": run.process.pid,
        "root node": run.named("hdphrs.node")[0],
        "program": run.named("hdphrs.program")[0],
    }[victim]
    os.kill(pid, signal.SIGKILL)
    assert run.finish()[0] == (1 if victim == "root node" else -signal.SIGKILL)
    run.assert_nothing_left()


@pytest.mark.parametrize("named", [False, True], ids=["found", "named"])
def test_node_behind_ssh_is_drained(
    start: Start, server: SshServer, hosts: Path, program: Path, tmp_path: Path, named: bool
) -> None:
    """With the interpreter that the hosts file names for it, which knows hdphrs, as that of the path does not."""
    report = tmp_path / "report.json"
    run = start("run", "--ssh", server.command(), "--nodes", hosts, "--report", report, program, "wait")
    assert run.read_line() == "[0, 1, 2, 3]"
    leaver = run.named("hdphrs.node member")[-1]
    python = ("--python", f"{tmp_path}/python") if named else ()
    drain = ("drain", "--ssh", server.command(), *python, f"127.0.0.1:{leaver}")
    told = f"hdphrs: told node process {leaver} to leave\nhdphrs: node process {leaver} is gone\n"
    assert start(*drain).finish() == (0, "", told)
    status, output, errors = run.finish(b"\n")
    assert (status, output.splitlines()[-1]) == (0, RESULT)
    assert re.fullmatch(rf"hdphrs: node [0-9] on \S+ \(process {leaver}\) has left\n", errors)
    assert [node["left"] for node in json.loads(report.read_text())["nodes"]].count(True) == 1


def test_a_host_without_a_node_is_asked_with_the_usual_interpreter(start: Start, server: SshServer) -> None:
    status, output, errors = start("drain", "--ssh", server.command(), "127.0.0.1:1").finish()
    assert (status != 0, output) == (True, "")
    said = ("No module named hdphrs", "process 1 is no node of yours", "python3: not found")
    assert any(words in errors for words in said)


SURROUNDED = """
import os, sys, warnings
import hdphrs

def look():
    old = os.umask(0)
    os.umask(old)
    return [
        sys.argv[1:], os.environ.get("MINE"), os.environ.get("GIVEN"), "PATH" in os.environ, os.getcwd(), oct(old),
        sys.getrecursionlimit(), sys.get_int_max_str_digits(), warnings.filters[0][0], sys.flags.optimize,
        hash("the same everywhere"), os.environ.get("HOME"),
    ]

if __name__ == "__main__":
    for directory in sys.argv[1:]:
        os.environ["MINE"] = directory
        os.environ["HOME"] = "/nowhere"
        os.chdir(directory)
        os.umask(0o037)
        sys.setrecursionlimit(3000)
        sys.set_int_max_str_digits(9000)
        warnings.simplefilter("error")
        seen = [hdphrs.get(hdphrs.spawn_at(node, look)) for node in hdphrs.all_nodes()]
        print(all(one == seen[0] for one in seen), seen[0][:2], seen[0][3:10], seen[0][11], flush=True)
"""


def test_nodes_behind_ssh_have_the_programs_surroundings(
    start: Start, server: SshServer, hosts: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONHASHSEED", "7")
    monkeypatch.setenv("GIVEN", "by a shell")
    monkeypatch.setenv("PYTHONOPTIMIZE", "1")
    folders = [str(tmp_path), "/"]
    run = start("run", "--ssh", server.command(), "--nodes", hosts, write_program(tmp_path, SURROUNDED), *folders)
    status, output, errors = run.finish()
    assert (status, errors) == (0, "")
    wanted = [[True, folder, "0o37", deep(3000), 9000, "error", 1] for folder in folders]
    assert output.splitlines() == [
        f"True {[folders, folder]} {rest} /nowhere" for folder, rest in zip(folders, wanted, strict=True)
    ]


def test_a_working_directory_that_a_host_does_not_have_is_told_of_once(
    start: Start, server: SshServer, hosts: Path, tmp_path: Path
) -> None:
    source = """
import os, hdphrs

def look():
    return os.path.isdir(os.getcwd())

if __name__ == "__main__":
    os.getcwd = lambda: "/not/there"
    print([hdphrs.get(hdphrs.spawn_at(node, look)) for node in hdphrs.all_nodes() * 3] == [True] * 12)
"""
    run = start("run", "--ssh", server.command(), "--nodes", hosts, write_program(tmp_path, source))
    status, output, errors = run.finish()
    assert (status, output) == (0, "True\n")
    lines = sorted(errors.splitlines())
    assert [line.partition(" has no")[0] for line in lines] == [
        f"hdphrs: warning: {h}" for h in ("127.0.0.1", "localhost")
    ]
    assert all(
        "has no working directory '/not/there' (No such file or directory); tasks there have" in x for x in lines
    )


@pytest.mark.parametrize("how", ["folder", "archive", "module", "package"])
def test_programs_of_any_kind_find_their_modules_behind_ssh(
    start: Start, server: SshServer, hosts: Path, tmp_path: Path, how: str
) -> None:
    import zipapp

    folder = tmp_path / "app"
    (folder / "inner").mkdir(parents=True)
    (folder / "inner" / "__init__.py").write_text("")
    (folder / "inner" / "helper.py").write_text(HELPER)
    work = WORK.replace("import helper", "from inner import helper")
    (folder / "__main__.py").write_text(work)
    (folder / "inner" / "work.py").write_text(WORK.replace("import helper", "from . import helper"))
    (folder / "inner" / "__main__.py").write_text(WORK.replace("import helper", "from . import helper"))
    zipapp.create_archive(folder, tmp_path / "app.pyz", "/usr/bin/env python3")
    ways: dict[str, list[object]] = {
        "folder": [folder],
        "archive": [tmp_path / "app.pyz"],
        "module": ["-m", "app.inner.work"],
        "package": ["-m", "app.inner"],
    }
    run = start("run", "--ssh", server.command(), "--nodes", hosts, *ways[how])
    status, output, errors = run.finish()
    assert (status, errors) == (0, "")
    assert output.splitlines() == ["[0, 1, 2, 3]", "[96, 96, 96, 96]", RESULT]
