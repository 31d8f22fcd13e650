"""`hdphrs explore`: its table, its exit statuses, its errors."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from hdphrs.explore.report import replay_file, search_all
from tests.mutants.patching import planted
from tests.mutants.planted import MUTANTS

BUGS = {mutant.name: mutant for mutant in MUTANTS}


def explore(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "hdphrs", "explore", *arguments],
        check=False,
        capture_output=True,
        text=True,
        timeout=600,
    )


def test_clean_scope_is_told_in_a_table_and_exits_0() -> None:
    done = explore("--scope", "orphans")
    assert done.returncode == 0, done.stderr
    title, row, *_ = done.stdout.splitlines()
    assert title.split()[:3] == ["scope", "states", "transitions"]
    assert row.split()[0] == "orphans"
    assert row.split()[-1] == "clean"


def test_scopes_are_listed() -> None:
    done = explore("--list")
    assert done.returncode == 0
    assert done.stdout.startswith("guards ")


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--scope", "nowhere"), "hdphrs: there is no scope 'nowhere'; there are guards, orphans, one"),
        (("--replay", "/nowhere/x.txt"), "hdphrs: cannot read the scenario /nowhere/x.txt: No such file or directory"),
        (("--replay", "/"), "hdphrs: cannot read the scenario /: Is a directory"),
        (("--scope", "one", "--replay", "x"), "hdphrs: --scope and --replay exclude each other"),
        (("--list", "--replay", "x"), "hdphrs: --list and --replay exclude each other"),
        (("extra",), "hdphrs: Got unexpected extra argument (extra)"),
    ],
)
def test_misuse_is_one_line_and_exits_2(arguments: tuple[str, ...], told: str) -> None:
    done = explore(*arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(told)
    assert done.stderr.count("\n") == 1


def test_file_that_is_no_scenario_is_told_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "x.txt"
    path.write_bytes(b"scope one\nfly 1\n")
    done = explore("--replay", str(path))
    assert (done.returncode, done.stderr) == (2, f"hdphrs: {path}: line 2: there is no move 'fly 1'\n")
    path.write_bytes(b"\xff")
    done = explore("--replay", str(path))
    assert (done.returncode, done.stderr) == (2, f"hdphrs: cannot read the scenario {path}: it is no text\n")


def test_violation_is_written_as_a_scenario_that_replays_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    told: list[str] = []
    with planted(BUGS["no-recovery"]):
        assert not search_all(["guards"], told.append)
        assert "VIOLATION: invariant 1" in told[1]
        assert "  replay with: hdphrs explore --replay explore-guards.txt" in told
        assert not replay_file("explore-guards.txt", told.append)
        assert told[-1].startswith("violated: Violation: invariant 1")
    assert replay_file("explore-guards.txt", told.append)
    assert told[-1] == "clean: all futures are full"
