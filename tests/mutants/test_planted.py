"""Each planted bug is caught by the check that is known to catch it; `make mutants` does the same, with the models."""

from __future__ import annotations

import inspect

import pytest

from hdphrs.protocol.thief import Thief
from spin import mutants as models
from tests.mutants.checks import known
from tests.mutants.expected import KNOWN, MODELLED, SCENARIOS
from tests.mutants.patching import Edit, Mutant, Rotten, planted
from tests.mutants.planted import MUTANTS

IDLE = Mutant("idle", "no thief ever fishes", (Edit("thief.Thief.hunt", "while len(", "while False and len("),))


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_planted_bug_is_caught(mutant: Mutant) -> None:
    with planted(mutant):
        assert known(mutant) is not None, f"{mutant.name} survives: {mutant.breaks}"


def test_bug_is_there_for_the_length_of_the_block_only() -> None:
    right = Thief.hunt
    with planted(IDLE):
        assert Thief.hunt is not right
    assert Thief.hunt is right


def test_edit_that_no_longer_fits_is_an_error_and_leaves_nothing_behind() -> None:
    right = inspect.getattr_static(Thief, "hunt")
    rotten = Mutant("rotten", "", (*IDLE.edits, Edit("thief.Thief.expire", "text that is not there", "")))
    with pytest.raises(Rotten, match="0 times"), planted(rotten):
        pass
    assert inspect.getattr_static(Thief, "hunt") is right


def test_edit_of_a_function_that_is_gone_is_an_error() -> None:
    with pytest.raises(Rotten, match="no such function"), planted(Mutant("gone", "", (Edit("thief.Thief.x", "", ""),))):
        pass


def test_tables_name_each_mutant_once() -> None:
    names = [mutant.name for mutant in MUTANTS]
    assert len(set(names)) == len(names)
    assert {*KNOWN, *SCENARIOS} == set(names)
    assert not {*KNOWN} & {*SCENARIOS}
    assert {*MODELLED} <= set(names)
    assert {*MODELLED.values()} == {mutant.name for mutant in models.MUTANTS}
