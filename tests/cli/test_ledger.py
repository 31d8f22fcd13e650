"""`hdphrs ledger`, and what `hdphrs run` refuses of one."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cluster.support import Start, write_program
from tests.ledger.support import Opener, entry_of, file_location


@pytest.mark.parametrize("kind", ["directory", "objects"])
def test_a_ledger_is_listed_measured_verified_and_shrunk(start: Start, tmp_path: Path, kind: str) -> None:
    location = str(tmp_path / "ledger") if kind == "directory" else file_location(tmp_path)
    store = Opener(location)()
    store.write([entry_of(number) for number in range(60)])
    store.close()
    status, output, errors = start("ledger", "ls", "-n", 2, location).finish()
    assert (status, errors) == (0, "")
    first, second, rest = output.splitlines()
    assert first.split()[1:5] == second.split()[1:5] == ["1.000", "s", "40", "B"]
    assert rest == "... and 58 more"
    cost = "cost: 60.0 s\n" if kind == "directory" else ""
    status, output, errors = start("ledger", "stat", location).finish()
    assert (status, output.splitlines()[0], errors) == (0, "entries: 60", "")
    assert output.endswith(cost)
    assert start("ledger", "verify", location).finish() == (0, "sound: 60\ndamaged: 0\n", "")
    if kind == "objects":
        victim = next(file for file in (tmp_path / "objects").rglob("*") if file.is_file())
        victim.write_bytes(b"x")
        status, output, errors = start("ledger", "verify", location).finish()
        assert (status, output) == (1, "sound: 59\ndamaged: 1\n")
        assert "is damaged" in errors
        assert start("ledger", "verify", "--remove", location).finish()[:2] == (0, "sound: 59\ndamaged: 1, removed\n")
        assert start("ledger", "gc", "--max", "0", location).finish() == (0, "dropped: 59\n", "")
    else:
        assert start("ledger", "gc", "--max", "0", location).finish() == (0, "dropped: 60\n", "")
        assert start("ledger", "gc", location).finish() == (0, "dropped: 0\n", "")


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["ledger", "ls", "nowhere"], "there is no ledger in nowhere"),
        (["ledger", "stat", "file:///nowhere/at/all"], "there is no ledger at file:///nowhere/at/all"),
        (["ledger", "gc", "--max", "x", "."], "Invalid value for '--max': expected a size like 2G, not 'x'"),
        (["ledger"], "Missing command. See hdphrs ledger --help"),
        (["run", "--ledger-max", "x", "prog.py"], "Invalid value for '--ledger-max': expected a size like 2G, not 'x'"),
        (
            ["run", "--ledger", "/dev/null", "prog.py"],
            "--ledger /dev/null: the ledger /dev/null cannot be used: it is no directory",
        ),
    ],
)
def test_what_is_no_ledger_is_refused_with_one_line(
    start: Start, tmp_path: Path, arguments: list[str], line: str
) -> None:
    write_program(tmp_path, "print('never')")
    assert start(*arguments).finish() == (2, "", f"hdphrs: {line}\n")
