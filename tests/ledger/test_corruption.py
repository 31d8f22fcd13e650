"""Whatever happens to its files, a ledger gives no wrong value, and stops no run."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.ledger.corrupt import ENTRIES, make_ledger, trial


def run_trials(folder: Path, kind: str, seeds: range) -> tuple[int, int]:
    """(trials in which something was lost, trials in which somebody complained)."""
    sound = folder / "sound"
    make_ledger(sound, kind)
    lost = complained = 0
    for seed in seeds:
        left, complaints = trial(sound, folder / "spoilt", kind, seed)
        lost += left < ENTRIES
        complained += complaints > 0
    return lost, complained


@pytest.mark.parametrize("kind", ["directory", "objects"])
def test_damage_of_any_kind_is_a_miss(tmp_path: Path, kind: str) -> None:
    lost, complained = run_trials(tmp_path, kind, range(150))
    assert lost > 20
    assert complained > 20


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "seeds"), [("directory", range(1_000, 9_000)), ("objects", range(1_000, 3_000))])
def test_ten_thousand_damages_are_misses(tmp_path: Path, kind: str, seeds: range) -> None:
    lost, complained = run_trials(tmp_path, kind, seeds)
    print(f"{len(seeds)} damaged ledgers ({kind}): in {lost} something was lost, in {complained} somebody complained")
    assert lost > len(seeds) // 8
