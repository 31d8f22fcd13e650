"""Without the global interpreter lock nothing starts, with one line; and what relies on it is known."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

import hdphrs
from hdphrs.gil import WITHOUT, why_not

REPOSITORY = Path(hdphrs.__file__).parents[1]

FAKE = "import sys\nsys._is_gil_enabled = lambda: False\n"
"""What a build without the lock answers; none can be had here."""

PROGRAM = """
import hdphrs
with hdphrs.sequential():
    print(hdphrs.get(hdphrs.spawn(abs, -1)))
try:
    {call}
except hdphrs.errors.StartError as error:
    print(error)
"""


def run(folder: Path, *arguments: object) -> subprocess.CompletedProcess[str]:
    """In a Python that says that it has no lock."""
    (folder / "sitecustomize.py").write_text(FAKE)
    path = os.pathsep.join([str(folder), str(REPOSITORY)])
    return subprocess.run(
        [sys.executable, *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
        env=os.environ | {"PYTHONPATH": path},
    )


@pytest.mark.parametrize(
    "call",
    [
        "hdphrs.get(hdphrs.spawn(abs, -1))",
        "hdphrs.run(abs, -1)",
        "hdphrs.par_map(abs, [-1])",
        "hdphrs.all_nodes()",
        "hdphrs.Executor(2).submit(abs, -1).result()",
    ],
)
def test_first_call_of_a_program_is_refused_and_sequential_mode_works(tmp_path: Path, call: str) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM.format(call=call))
    completed = run(tmp_path, program)
    assert (completed.stdout, completed.stderr, completed.returncode) == (f"1\n{WITHOUT}\n", "", 0)


@pytest.mark.parametrize(
    "command",
    [
        ["-m", "hdphrs", "run", "program.py"],
        ["-m", "hdphrs", "run", "--local-nodes", "2", "program.py"],
        ["-m", "hdphrs.node", "root"],
        ["-m", "hdphrs.scheduler"],
    ],
    ids=["run", "nodes", "node", "scheduler"],
)
def test_processes_of_ours_refuse_to_start_with_one_line(tmp_path: Path, command: Sequence[str]) -> None:
    (tmp_path / "program.py").write_text("print('never')")
    completed = run(tmp_path, *[str(tmp_path / word) if word == "program.py" else word for word in command])
    assert (completed.stdout, completed.stderr) == ("", f"hdphrs: {WITHOUT}\n")
    assert completed.returncode == 1 or command[1:3] == ["hdphrs", "run"]
    assert completed.returncode != 0


def test_the_lock_is_seen_where_it_is_and_where_it_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    assert why_not() is None
    monkeypatch.setattr(sys, "_is_gil_enabled", lambda: True, raising=False)
    assert why_not() is None
    monkeypatch.setattr(sys, "_is_gil_enabled", lambda: False, raising=False)
    assert why_not() == WITHOUT
    monkeypatch.delattr(sys, "_is_gil_enabled")
    assert why_not() is None


def test_what_relies_on_the_lock_is_listed_in_the_documents() -> None:
    marks = {
        mark
        for file in (REPOSITORY / "hdphrs").rglob("*.py")
        for mark in re.findall(r"# GIL: ([a-z ]+[a-z])", file.read_text())
    }
    page = Path(__file__).parents[1].joinpath("docs", "pythons.md").read_text()
    listed = re.findall(r"^\| ([a-z ]+) \| ", page.split("## Without the global")[1], re.MULTILINE)
    assert marks
    assert sorted(marks) == sorted(set(listed) - {"place"})


def test_every_place_that_clears_a_function_of_a_future_after_reading_it_is_marked() -> None:
    """The take without a lock is the one that must not be forgotten: whoever compares and sets says so."""
    for file in (REPOSITORY / "hdphrs").rglob("*.py"):
        lines = file.read_text().splitlines()
        for number, line in enumerate(lines):
            if re.search(r"\bfuture\._function is (function|not None):", line) and "._function = " in lines[number + 1]:
                assert any("GIL: taking a future" in each for each in lines[number - 1 : number + 2]), (file, number)
