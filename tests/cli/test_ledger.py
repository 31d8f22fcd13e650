"""`hdphrs ledger`, and what `hdphrs run` refuses of one."""

from __future__ import annotations

from pathlib import Path

import pytest

from hdphrs.ledger import Entry, open_store
from tests.cluster.support import Start, write_program
from tests.ledger.support import BYTES_MAX, Opener, entry_of, file_location, memo_of


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


def test_a_key_is_made_once_for_this_user_alone_and_tells_what_is_signed(start: Start, tmp_path: Path) -> None:
    key, location = tmp_path / "key", str(tmp_path / "ledger")
    status, output, errors = start("ledger", "key", "key").finish()
    assert (status, output, errors) == (0, f"hdphrs run --ledger-key {key} --ledger DIR|URL prog.py\n", "")
    assert (key.stat().st_mode & 0o777, key.stat().st_size) == (0o600, 32)
    kept = key.read_bytes()
    assert start("ledger", "key", key).finish() == (2, "", f"hdphrs: cannot make the key {key}: File exists\n")
    assert key.read_bytes() == kept
    store = open_store(location, BYTES_MAX, print)
    store.write([entry_of(1), entry_of(2)])
    store.close()
    store = open_store(location, BYTES_MAX, print, key=kept)
    store.write([entry_of(3)])
    store.close()
    assert len(start("ledger", "ls", location).finish()[1].splitlines()) == 3
    status, output, errors = start("ledger", "ls", "--ledger-key", "key", location).finish()
    listed, rest = output.splitlines()
    assert (status, listed[:12], rest, errors) == (0, memo_of(3)[1:7].hex(), "unsigned, and not listed: 2", "")
    verify = ["ledger", "verify", "--ledger-key", "key"]
    assert start(*verify, location).finish() == (1, "sound: 1\ndamaged: 0\nunsigned: 2\n", "")
    assert start(*verify, "--remove", location).finish() == (0, "sound: 1\ndamaged: 0\nunsigned: 2, removed\n", "")
    assert start("ledger", "verify", location).finish() == (0, "sound: 1\ndamaged: 0\n", "")


def test_a_key_that_others_can_read_is_refused_with_what_to_do(start: Start, tmp_path: Path) -> None:
    key = tmp_path / "key"
    key.write_bytes(bytes(15))
    key.chmod(0o640)
    write_program(tmp_path, "print('never')")
    run = ["run", "--ledger", "ledger", "--ledger-key", "key", "prog.py"]
    begin = "hdphrs: --ledger-key key: the key of the ledger cannot be"
    line = f"{begin} trusted: others can read {key} (mode 0640); chmod 600 {key}\n"
    assert start(*run).finish() == (2, "", line)
    key.chmod(0o600)
    line = f"{begin} trusted: {key} has 15 bytes; expected 16 to 4096\n"
    assert start(*run).finish() == (2, "", line)
    key.unlink()
    line = f"{begin} read: there is no file key; make one: hdphrs ledger key key\n"
    assert start(*run).finish() == (2, "", line)


@pytest.mark.parametrize("command", ["ls", "stat", "verify", "gc"])
@pytest.mark.parametrize("kind", ["directory", "objects"])
def test_no_command_reads_a_ledger_that_others_can_write_to(
    start: Start, tmp_path: Path, kind: str, command: str
) -> None:
    folder = tmp_path / ("ledger" if kind == "directory" else "objects/ledger-1")
    location = str(folder) if kind == "directory" else file_location(tmp_path)
    store = Opener(location)()
    store.write([entry_of(1)])
    store.close()
    folder.chmod(0o770)
    why = f"its group can write to {folder} (mode 0770); chmod go-w {folder}"
    line = f"hdphrs: the ledger {location} cannot be trusted: {why}\n"
    assert start("ledger", command, location).finish() == (2, "", line)


def test_the_name_of_a_function_does_not_steer_a_terminal(start: Start, tmp_path: Path) -> None:
    location = str(tmp_path / "ledger")
    store = Opener(location)()
    name = "f\x1b]0;x\x07\x1b[2J\n\u202eg\u00e4"
    store.write([Entry(memo_of(1), memo_of(1), b"\1", name, 1.0, b"")])
    store.close()
    status, output, errors = start("ledger", "ls", location).finish()
    assert (status, errors) == (0, "")
    assert output.endswith("  f\\x1b]0;x\\x07\\x1b[2J\\n\\u202eg\u00e4\n")
