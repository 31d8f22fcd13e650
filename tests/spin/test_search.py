"""The smallest search of all, from the model to the verdict; and what a planted bug leads to."""

from __future__ import annotations

import pytest

from spin.__main__ import judge
from spin.mutants import MUTANTS, run
from spin.pan import HERE, Search, missing_tools, search
from spin.runs import INVARIANTS, Run

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(bool(missing_tools()), reason=f"not installed: {' '.join(missing_tools())}"),
]

SMALLEST = ("-DNODES=3", "-DKILLS=1", "-DFISH_MAX=1")


def test_smallest_model_holds_and_knows_which_lines_it_has_reached() -> None:
    before = sorted(HERE.iterdir())
    report = search(Search("one_spark", SMALLEST))
    assert judge(Run("", INVARIANTS, Search("one_spark", SMALLEST)), report) is None
    assert report.states > 1000
    assert report.reached < report.lines
    assert sorted(HERE.iterdir()) == before


def test_planted_bug_is_caught_and_its_story_told() -> None:
    mutant = next(mutant for mutant in MUTANTS if mutant.name == "R15")
    caught = run(mutant)
    assert caught.check.startswith("invariant 1")
    assert any("on_req, sends AUTH" in step for step in caught.trace)
