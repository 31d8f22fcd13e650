"""The programs of `python -m tests.foreign --suite programs`, in small, and their answers."""

from __future__ import annotations

from importlib import import_module

import pytest

import hdphrs
from benchmarks.kernels import uts
from tests.foreign.programs import __main__ as runner
from tests.foreign.programs import fib, floorplan, nqueens


@pytest.mark.parametrize("name", runner.NAMES)
def test_a_program_gives_the_right_result_in_one_process(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with hdphrs.sequential():
        assert runner.main(name, "small") == 0
    assert capsys.readouterr().out == f"{name} small: right\n"


@pytest.mark.parametrize("name", runner.NAMES)
def test_a_wrong_result_is_seen(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    program = import_module(f"tests.foreign.programs.{name}")
    size = program.SIZES["small"]
    with hdphrs.sequential():
        right = program.main(size)
    wrong = (
        {}.fromkeys([(0, 0)], [[0] * 6] * 6) if name == "sparselu" else (right[1], right[0]) if name == "fft" else None
    )
    monkeypatch.setattr(hdphrs, "run", lambda main, size: wrong)
    assert runner.main(name, "small") == 1


def test_published_figures_are_those_of_the_plain_computation() -> None:
    assert fib.plain(20) == fib.ANSWERS[20]
    with hdphrs.sequential():
        assert [nqueens.main(size) for size in range(4, 9)] == [2, 10, 4, 40, 92]


def test_a_floor_plan_is_never_smaller_than_its_cells() -> None:
    with hdphrs.sequential():
        assert floorplan.main(3) == floorplan.answer(3) >= sum(floorplan.AREAS[:3])


def test_the_tree_of_uts_is_the_published_one() -> None:
    """T1 has 4,130,071 nodes at depth 10; a child is hashed from its parent, so the upper levels are those of T1."""
    root = uts.root_of(uts.T1)
    stack = [root]
    assert uts.walk(uts.T1, 1, stack) == 1
    assert all(depth == 1 for _, depth in stack)
