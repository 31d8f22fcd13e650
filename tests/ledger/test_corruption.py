"""Whatever happens to its files, a ledger gives no wrong value, and stops no run."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.ledger.corrupt import ENTRIES, make_ledger, trial


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """In memory where the system has such a place: a trial damages files by hand, so it need not wait for a disk."""
    memory = Path("/dev/shm")
    if not memory.is_dir():
        yield tmp_path
        return
    with tempfile.TemporaryDirectory(dir=memory) as name:
        yield Path(name)


def run_trials(folder: Path, kind: str, seeds: range) -> tuple[int, int]:
    """(trials in which something was lost, trials in which somebody complained)."""
    sound = folder / "sound"
    make_ledger(sound, kind)
    lost = complained = 0
    for seed in seeds:
        left, complaints = trial(sound, folder / "spoilt", kind, seed)
        lost += left < ENTRIES[kind]
        complained += complaints > 0
    return lost, complained


@pytest.mark.parametrize("kind", ["directory", "objects"])
def test_damage_of_any_kind_is_a_miss(folder: Path, kind: str) -> None:
    lost, complained = run_trials(folder, kind, range(150))
    assert lost > 20
    assert complained > 20


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "seeds"), [("directory", range(1_000, 9_000)), ("objects", range(1_000, 3_000))])
def test_ten_thousand_damages_are_misses(folder: Path, kind: str, seeds: range) -> None:
    lost, complained = run_trials(folder, kind, seeds)
    print(f"{len(seeds)} damaged ledgers ({kind}): in {lost} something was lost, in {complained} somebody complained")
    assert lost > len(seeds) // 8
