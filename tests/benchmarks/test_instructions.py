"""The fast path runs no more bytecodes than were recorded: the regression test of the product, without a clock."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import instructions
from benchmarks.figures import Figure
from benchmarks.launch import BenchmarkError


def test_spawn_and_get_of_one_task_run_the_bytecodes_that_were_recorded() -> None:
    kept = instructions.recorded().get("bytecodes")
    if kept is None:
        pytest.skip(
            f"nothing is recorded for Python {instructions.minor()}: python -m benchmarks instructions --record"
        )
    found = instructions.bytecodes()
    assert found == pytest.approx(kept, abs=0.001), "if that is meant: python -m benchmarks instructions --record"


@pytest.mark.parametrize(("number", "calls"), [(1, 1), (2, 3), (5, 15), (12, 465), (25, 242_785)])
def test_calls_of_fib_are_known_without_making_them(number: int, calls: int) -> None:
    assert instructions.calls_of(number) == calls


def test_instructions_are_compared_only_with_those_of_the_same_build(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(instructions, "RECORD", tmp_path / "record.json")
    monkeypatch.setattr(instructions, "instructions", lambda: 1021.0)
    instructions.record([Figure("f", "bytecodes", (124.0,)), Figure("f", "instructions", (1000.0,))])
    assert [figure.verdict for figure in instructions.count_instructions()] == ["MISSED"]
    monkeypatch.setattr(instructions, "build", lambda: "another")
    assert [figure.verdict for figure in instructions.count_instructions()] == [""]


def test_without_valgrind_one_line_says_what_to_do(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def missing() -> float:
        raise BenchmarkError("there is no valgrind here")

    monkeypatch.setattr(instructions, "instructions", missing)
    assert instructions.main([]) == 2
    assert capsys.readouterr().err == "benchmarks: there is no valgrind here\n"
